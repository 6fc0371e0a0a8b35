"""The backend, against the interface of vllm.v1.attention.backend. What of it could be run, and what couldn't, is in ../README.md.

Every token of a batch, of a prompt or generated, is attended as a decode of its own: its page table is its sequence's, its length its
position + 1. So decodes, prompts in chunks and drafts may stand in one batch in any order, and it is one launch; but a prompt of n
tokens reads its cache n times, which is right and not fast.
"""
import functools
import os
from dataclasses import dataclass

import heddle
import heddle.torch
import torch
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)

SPEC = """heddle: 1
name: vllm
kernels: [write, decode]
query: {{dtype: {dtype}, heads_per_kv: {group}}}
head_dim: {dim}
kv: {{dtype: {cache}, page: {page}, k: [b, s, h, d{pad}], v: [b, s, h, d{pad}]}}
{scale}
mask: {{window: {window}, sinks: {sinks}}}
logits: {{scale: argument, softcap: {softcap}}}
output: {{dtype: {dtype}}}
"""
INLINE = """scale:
  granularity: token_head
  k: {{inside: k, at: {dim}, layout: [b, s, h]}}
  v: {{inside: v, at: {dim}, layout: [b, s, h]}}
  writer: {{amax_floor: 4.48e-4, zero_row: 1e-6}}
"""  # behind the codes of each head; max(amax / 448, 1e-6)
SCALE_BYTES = 4

# vLLM's cache dtypes: heddle's, and its scales.
PLAIN = ("auto", "bfloat16", "float16")
PER_TENSOR = ("fp8", "fp8_e4m3")
PER_TOKEN_HEAD = ("fp8_per_token_head",)


@functools.lru_cache(maxsize=None)
def context(device):
    """One for each device of the process. HEDDLE_DEVICE names another than torch's (an emulated one)."""
    kind = "hip" if torch.version.hip else "cuda"
    return heddle.Context(os.environ.get("HEDDLE_DEVICE") or f"{kind}:{device.index or 0}")


@functools.lru_cache(maxsize=None)
def kernels(device, text):
    """(write, decode) of a contract; all layers that are alike share them."""
    return tuple(context(device).prepare_many([(text, "write"), (text, "decode")]))


def spec(*, dtype, cache_dtype, group, dim, page, window, softcap, sinks):
    name = {torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
    cache, pad, scale = name, "", ""
    if cache_dtype in PER_TENSOR:
        cache, scale = "fp8_e4m3", "scale: {granularity: tensor}"
    elif cache_dtype in PER_TOKEN_HEAD:
        cache, pad, scale = "fp8_e4m3", f"+{SCALE_BYTES}", INLINE.format(dim=dim)
    return SPEC.format(dtype=name, group=group, dim=dim, cache=cache, page=page, pad=pad, scale=scale, window=window or "none",
                       softcap=softcap or "none", sinks="per_head" if sinks else "none")  # fmt: skip


@dataclass
class HeddleMetadata(AttentionMetadata):
    tokens: int  # without padding
    page_table: torch.Tensor  # int32 [tokens, pages]
    lengths: torch.Tensor  # int32 [tokens]
    slot_mapping: torch.Tensor  # int64 [tokens]


class HeddleMetadataBuilder(AttentionMetadataBuilder[HeddleMetadata]):
    # A captured decode reads lengths and page tables when it is replayed; its split count is that of the longest sequence that the
    # table has room for. Batches with prompts have tables that are made here, so they aren't captured.
    _cudagraph_support = AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        m = common_attn_metadata
        tokens = m.num_actual_tokens
        if m.causal is not True:
            raise NotImplementedError("attention that isn't causal")
        if m.max_query_len == 1:  # decodes alone: a token a sequence, in their order
            return HeddleMetadata(tokens, m.block_table_tensor[:tokens], m.seq_lens[:tokens], m.slot_mapping[:tokens])
        at = torch.arange(tokens, device=m.query_start_loc.device, dtype=m.query_start_loc.dtype)
        ends = m.query_start_loc[1 : m.num_reqs + 1]
        sequence = torch.searchsorted(ends, at, right=True)
        lengths = m.seq_lens[sequence] - (ends[sequence] - 1 - at).to(m.seq_lens.dtype)
        return HeddleMetadata(tokens, m.block_table_tensor[sequence], lengths, m.slot_mapping[:tokens])


class HeddleBackend(AttentionBackend):
    supported_dtypes = [torch.bfloat16, torch.float16]
    supported_kv_cache_dtypes = [*PLAIN, *PER_TENSOR, *PER_TOKEN_HEAD]
    forward_includes_kv_cache_update = True

    @staticmethod
    def get_name():
        return "CUSTOM"

    @staticmethod
    def get_impl_cls():
        return HeddleImpl

    @staticmethod
    def get_builder_cls():
        return HeddleMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes():
        return [MultipleOf(16)]

    @staticmethod
    def get_kv_cache_shape(num_blocks, block_size, num_kv_heads, head_size, cache_dtype_str="auto"):
        """K and V of a block behind each other; with a scale for each token and head, that behind the head's codes."""
        pad = SCALE_BYTES if cache_dtype_str in PER_TOKEN_HEAD else 0
        return (num_blocks, 2, block_size, num_kv_heads, head_size + pad)

    @classmethod
    def supports_head_size(cls, head_size):
        return head_size % 8 == 0 and head_size <= 512

    @classmethod
    def supports_sink(cls):
        return True


class HeddleImpl(AttentionImpl):
    def __init__(self, num_heads, head_size, scale, num_kv_heads=None, alibi_slopes=None, sliding_window=None, kv_cache_dtype="auto",
                 logits_soft_cap=None, attn_type=AttentionType.DECODER, kv_sharing_target_layer_name=None, sinks=None):  # fmt: skip
        if attn_type != AttentionType.DECODER:
            raise NotImplementedError(f"attention of type {attn_type}")
        if alibi_slopes is not None:
            raise NotImplementedError("ALiBi")
        if kv_cache_dtype not in HeddleBackend.supported_kv_cache_dtypes:
            raise NotImplementedError(f"a cache of dtype {kv_cache_dtype}")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.sliding_window, self.logits_soft_cap = sliding_window, logits_soft_cap
        self.kv_cache_dtype, self.sinks = kv_cache_dtype, sinks
        self.shares_cache = kv_sharing_target_layer_name is not None

    def _kernels(self, query, kv_cache):
        return kernels(query.device, spec(dtype=query.dtype, cache_dtype=self.kv_cache_dtype, group=self.num_heads // self.num_kv_heads, dim=self.head_size,
                       page=kv_cache.shape[2], window=self.sliding_window, softcap=self.logits_soft_cap, sinks=self.sinks is not None))  # fmt: skip

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None):
        """query, key, value: [tokens, heads, head_size]; kv_cache as get_kv_cache_shape has it; output: as query, or flat."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("output that is quantised in the same step")
        if attn_metadata is None:  # a run that measures memory
            return output.fill_(0)
        m, n = attn_metadata, attn_metadata.tokens
        write, decode = self._kernels(query, kv_cache)
        codes = kv_cache.view(torch.uint8) if self.kv_cache_dtype not in PLAIN else kv_cache
        caches = codes.unbind(1)
        scales = [layer._k_scale.reshape(1), layer._v_scale.reshape(1)] if self.kv_cache_dtype in PER_TENSOR else []
        if not self.shares_cache and key is not None:
            heddle.torch.write(write, key[:n], value[:n], m.slot_mapping, *caches, *scales)
        named = dict(zip(("k_scale", "v_scale"), scales))
        if self.sinks is not None:
            named["sinks"] = self.sinks.float()
        heddle.torch.decode(decode, query[:n], *caches, page_table=m.page_table, lengths=m.lengths, **named, logits_scale=self.scale,
                            out=output.view(-1, self.num_heads, self.head_size)[:n])  # fmt: skip
        return output
