"""transformers over heddle: a paged KV cache in any format of heddle's, and an attention implementation that reads it.

    import heddle_cache
    model = AutoModelForCausalLM.from_pretrained(…, dtype=torch.bfloat16, attn_implementation="heddle")
    cache = heddle_cache.HeddleCache(heddle.Context("cuda:0"), model.config, batch=1, longest=4096, kv="fp8_e4m3")
    model.generate(**inputs, past_key_values=cache)

The cache's update() quantises new tokens into pages (heddle's write) and gives back what it was given; attention then reads the pages
alone, for prompts as for single tokens. Prompts go eight query rows at a time, in one launch. All sequences of a batch are of one length:
transformers makes no mask for implementations of others, so padding can't be seen here.
"""
import heddle
import heddle.torch
import torch
from transformers import AttentionInterface
from transformers.cache_utils import Cache, CacheLayerMixin

PAGE, ROWS = 64, 8

SPEC = """heddle: 1
name: transformers
kernels: [write, decode]
query: {{dtype: bf16, heads_per_kv: {group}, rows: {rows}}}
head_dim: {dim}
kv: {{dtype: {kv}, page: {page}, k: {k}, v: {v}}}
{scale}
logits: {{scale: argument}}
output: {{dtype: bf16}}
"""
LAYOUTS = {
    "bf16": ("[b, h, s, d]", "[b, h, s, d]"),
}
CODES = ("[b, h, d/16, s, d%16]", "[b, h, s/16, d, s%16]")  # 16 codes are 16 bytes
LAYOUTS |= {"fp8_e4m3": CODES, "int8": CODES, "{k: int8, v: fp8_e4m3}": CODES}


def spec(kv, heads_per_kv, dim, rows, channels=None):
    """channels: how many of them share a scale; None: all of a head."""
    k, v = LAYOUTS[kv]
    granularity = f"{{group: {channels}}}" if channels else "token_head"
    scale = "" if kv == "bf16" else f"scale: {{granularity: {granularity}}}"
    return SPEC.format(kv=kv, group=heads_per_kv, dim=dim, rows=rows, page=PAGE, k=k, v=v, scale=scale)


class Kernels:
    """The writer, decode of one row, and decode of eight: three contracts of one cache."""

    def __init__(self, context, kv, heads_per_kv, dim, channels):
        one, many = (spec(kv, heads_per_kv, dim, rows, channels) for rows in (1, ROWS))
        self.write, self.one, self.many = context.prepare_many([(one, "write"), (one, "decode"), (many, "decode")])


class Pages:
    """What all layers share: where sequences have their pages, and the tensors that say so for the tokens of the current step."""

    def __init__(self, batch, longest, device):
        self.batch, self.device, self.count = batch, device, -(-longest // PAGE)
        # Sequence b has page p at p · batch + b: no two pages of one sequence lie beside each other.
        self.table = torch.arange(self.count * batch, dtype=torch.int32, device=device).reshape(self.count, batch).T.contiguous()
        self.step = None

    def of_step(self, start, tokens):
        """(slots of the new tokens, page table and lengths as decode takes them, query rows in front that stand for nothing)."""
        if self.step is None or self.step[0] != (start, tokens):
            at = torch.arange(start, start + tokens, device=self.device)
            slots = self.table[:, at // PAGE].long() * PAGE + at % PAGE
            rows = 1 if tokens == 1 else ROWS
            blocks = -(-tokens // rows)
            # Rows are filled up in front, so that the last row of every block is a real one: block j ends rows · (blocks - 1 - j) early.
            lengths = start + tokens - rows * torch.arange(blocks - 1, -1, -1, dtype=torch.int32, device=self.device)
            table = self.table.repeat_interleave(blocks, 0)
            self.step = ((start, tokens), slots.reshape(-1), table, lengths.repeat(self.batch).int(), blocks * rows - tokens)
        return self.step[1:]


class HeddleLayer(CacheLayerMixin):
    def __init__(self, kernels, pages, kv_heads):
        super().__init__()
        self.kernels, self.pages, self.length, self.is_initialized = kernels, pages, 0, True
        tensors = kernels.write.tensors
        self.cache = [self._empty(tensors[n], kv_heads) for n in ("k_cache", "v_cache")]
        self.scales = [self._empty(tensors[n], kv_heads) for n in ("k_scale", "v_scale") if n in tensors]

    def _empty(self, tensor, kv_heads):
        """In the shape that the contract has: "[pages, kv_heads, 4, 64, 16]"."""
        sizes = {"pages": self.pages.count * self.pages.batch, "kv_heads": kv_heads}
        shape = [sizes.get(n) or int(n) for n in tensor.shape.strip("[]").split(", ")]
        dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}.get(tensor.dtype, torch.uint8)  # codes: whatever the contract says
        return torch.zeros(shape, dtype=dtype, device=self.pages.device)

    def lazy_initialization(self, key_states, value_states):
        pass

    def update(self, key_states, value_states, *args, **kwargs):
        batch, heads, tokens, dim = key_states.shape
        if batch != self.pages.batch or self.length + tokens > self.pages.count * PAGE:
            raise ValueError(f"{batch} sequences of {self.length + tokens} tokens; the cache has room for {self.pages.batch} of {self.pages.count * PAGE}")
        slots = self.pages.of_step(self.length, tokens)[0]
        k, v = (t.transpose(1, 2).reshape(-1, heads, dim) for t in (key_states, value_states))
        heddle.torch.write(self.kernels.write, k, v, slots, *self.cache, *self.scales)
        self.length += tokens
        key_states.heddle_layer = self  # how attention, which is given keys and values, finds the cache
        return key_states, value_states

    def attend(self, query, scaling):
        """query: [batch, q_heads, tokens, dim], of the tokens that came with the last update."""
        batch, heads, tokens, dim = query.shape
        _, table, lengths, front = self.pages.of_step(self.length - tokens, tokens)
        q = torch.nn.functional.pad(query.transpose(1, 2), (0, 0, 0, 0, front, 0)).reshape(-1, heads, dim)
        kernel = self.kernels.one if tokens == 1 else self.kernels.many
        named = dict(zip(("k_scale", "v_scale"), self.scales))
        out = heddle.torch.decode(kernel, q, *self.cache, page_table=table, lengths=lengths, **named, logits_scale=scaling)
        return out.reshape(batch, tokens + front, heads, -1)[:, front:]

    def get_mask_sizes(self, query_length):
        return self.length + query_length, 0

    def get_seq_length(self):
        return self.length

    def get_max_length(self):
        return self.pages.count * PAGE

    def reset(self):
        self.length, self.pages.step = 0, None


class HeddleCache(Cache):
    """For `batch` sequences of at most `longest` tokens. kv: a key of LAYOUTS, as kv.dtype has it in a spec. channels: how many share
    a scale, of 8 bits; None: all of a head."""

    def __init__(self, context, config, *, batch, longest, kv, channels=None, kernels=None):
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.kernels = kernels or Kernels(context, kv, config.num_attention_heads // config.num_key_value_heads, dim, channels)
        device = "cpu" if context.info.emulated else f"cuda:{context.index}"
        self.pages = Pages(batch, longest, device)
        super().__init__(layers=[HeddleLayer(self.kernels, self.pages, config.num_key_value_heads) for _ in range(config.num_hidden_layers)])

    def bytes(self):
        return sum(t.numel() * t.element_size() for layer in self.layers for t in layer.cache + layer.scales)


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    layer = getattr(key, "heddle_layer", None)
    if layer is None:
        raise ValueError('attn_implementation="heddle" needs past_key_values=HeddleCache(…)')
    return layer.attend(query, scaling), None


AttentionInterface.register("heddle", attention)
