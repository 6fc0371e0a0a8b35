"""Custom operators of PyTorch over heddle's kernels, with fake kernels: they go through torch.compile, torch.export and CUDA/HIP graphs.

    import heddle.torch
    heddle.torch.write(writer, k, v, slot_mapping, k_cache, v_cache, k_scale, v_scale)
    out = heddle.torch.decode(decode, q, k_cache, v_cache, k_scale=…, v_scale=…, page_table=table, lengths=lengths)

The operators are torch.ops.heddle.decode, .decode_out and .write; a kernel is named by a string there (kernel_name), so that graphs can
hold it. Kernels that were named stay alive until forget(). No derivatives.
"""
from __future__ import annotations

import threading
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from ._native import SCALES
from .kernel import Kernel, Scales
from .tensors import torch_dtype

_kernels: dict[str, Kernel] = {}
_lock = threading.Lock()

_OPTIONAL = ("v_cache", "k_scale", "v_scale", "page_table", "lengths", "kv_indptr", "kv_indices", "last_page_len", "sinks", "block_list",
             "token_list", "row_sequences")  # fmt: skip
_INPUTS = "str kernel, Tensor q, Tensor k_cache, *, " + ", ".join(f"Tensor? {name}=None" for name in _OPTIONAL)
_NUMBERS = "float? k_scale_value=None, float? v_scale_value=None"  # where scale.source is argument
_SETTINGS = f"int splits=0, int longest=0, float logits_scale=0.0, bool lists_settled=False, {_NUMBERS}"

_library = torch.library.Library("heddle", "DEF")
# Compilers may choose other strides for what they compute; these operators say which ones they take.
_tags = tuple(getattr(torch.Tag, t) for t in ("needs_exact_strides",) if hasattr(torch.Tag, t)) or (torch.Tag.needs_fixed_stride_order,)
_library.define(f"decode({_INPUTS}, {_SETTINGS}) -> (Tensor, Tensor)", tags=_tags)
_library.define(f"decode_out({_INPUTS}, Tensor(a!) out, Tensor(b!)? lse=None, Tensor(c!)? workspace=None, {_SETTINGS}) -> ()", tags=_tags)
_library.define("write(str kernel, Tensor k, Tensor? v, Tensor slot_mapping, Tensor(a!) k_cache, Tensor(b!)? v_cache=None, "
                f"Tensor(c!)? k_scale=None, Tensor(d!)? v_scale=None, {_NUMBERS}) -> ()", tags=_tags)  # fmt: skip


def kernel_name(kernel: Kernel) -> str:
    """What names the kernel in operators. The same kernel has the same name."""
    name: str | None = getattr(kernel, "_torch_name", None)
    if name is None:
        with _lock:
            name = f"{kernel.contract.name}/{kernel.operation}/{kernel.contract.key[:12]}@{kernel.context.info.device}#{len(_kernels)}"
            _kernels[name] = kernel
            kernel._torch_name = name  # type: ignore[attr-defined]
    return name


def forget(kernel: Kernel) -> None:
    """Lets go of a kernel that was named. Graphs that hold it can't run any more."""
    with _lock:
        _kernels.pop(getattr(kernel, "_torch_name", ""), None)


def _find(name: str) -> Kernel:
    if name not in _kernels:
        raise KeyError(f'there is no kernel "{name}": heddle.torch.kernel_name names one')
    return _kernels[name]


def _outputs(kernel: Kernel, q: Tensor) -> tuple[Tensor, Tensor]:
    """out and lse; lse has no elements where the contract gives none."""
    known: tuple[int, torch.dtype, bool] | None = getattr(kernel, "_torch_outputs", None)
    if known is None:
        spec = kernel._tensors["out"]
        known = int(spec.shape.rstrip("]").rpartition(",")[2]), torch_dtype(spec.dtype), "lse" in kernel._tensors
        kernel._torch_outputs = known  # type: ignore[attr-defined]
    channels, dtype, has_lse = known
    rows, heads = q.shape[:2]
    return q.new_empty((rows, heads, channels), dtype=dtype), q.new_empty((rows, heads) if has_lse else (0,), dtype=torch.float32)


def _empty(bytes_needed: int, device: Any) -> Tensor | None:
    """Workspace from torch's allocator, which knows about streams and graphs."""
    return torch.empty(bytes_needed, dtype=torch.uint8, device=device) if bytes_needed else None


def _numbers(k_scale: float | None, v_scale: float | None) -> dict[str, float]:
    return {n: value for n, value in zip(SCALES, (k_scale, v_scale)) if value is not None}


def _by_type(scales: dict[str, Any]) -> dict[str, Any]:
    """Scales as the operators take them: tensors by their names, numbers as k_scale_value and v_scale_value."""
    return {f"{n}_value" if isinstance(scale, Real) else n: scale for n, scale in scales.items()}


def _decode_out(kernel: str, q: Tensor, k_cache: Tensor, *, out: Tensor, lse: Tensor | None = None, workspace: Tensor | None = None,
                splits: int = 0, longest: int = 0, logits_scale: float = 0.0, lists_settled: bool = False, k_scale_value: float | None = None,
                v_scale_value: float | None = None, **optional: Tensor | None) -> None:  # fmt: skip
    k = _find(kernel)
    # Kernels take dense rows, which those of a fused projection aren't; what is dense isn't copied.
    tensors: dict[str, Any] = {"q": q.contiguous(), "k_cache": k_cache, **{n: t for n, t in optional.items() if t is not None}, "out": out}
    if lse is not None and lse.numel() > 0:
        tensors["lse"] = lse
    scales = _numbers(k_scale_value, v_scale_value)
    plan = k._plan(tensors, splits, longest)
    if plan is None:  # an emulated device has a workspace of its own, and other tensors are refused
        k.launch(tensors | scales, workspace=workspace, splits=splits, longest=longest, logits_scale=logits_scale, lists_settled=lists_settled)
        return
    if workspace is None:
        workspace = _empty(plan.needed, q.device)
    k._launch_plan(plan, tensors, Scales(scales), None, workspace, logits_scale, lists_settled)


def _decode(kernel: str, q: Tensor, k_cache: Tensor, **rest: Any) -> tuple[Tensor, Tensor]:
    out, lse = _outputs(_find(kernel), q)
    _decode_out(kernel, q, k_cache, out=out, lse=lse, **rest)
    return out, lse


def _write(kernel: str, k: Tensor, v: Tensor | None, slot_mapping: Tensor, k_cache: Tensor, v_cache: Tensor | None = None,
           k_scale: Tensor | None = None, v_scale: Tensor | None = None, k_scale_value: float | None = None,
           v_scale_value: float | None = None) -> None:  # fmt: skip
    tensors = {"k": k.contiguous(), "v": v if v is None else v.contiguous(), "slot_mapping": slot_mapping, "k_cache": k_cache, "v_cache": v_cache, "k_scale": k_scale, "v_scale": v_scale}
    _find(kernel).launch({n: t for n, t in tensors.items() if t is not None} | _numbers(k_scale_value, v_scale_value))


_library.impl("decode", _decode, "CompositeExplicitAutograd")
_library.impl("decode_out", _decode_out, "CompositeExplicitAutograd")
_library.impl("write", _write, "CompositeExplicitAutograd")


@torch.library.register_fake("heddle::decode", lib=_library)
def _fake_decode(kernel: str, q: Tensor, k_cache: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
    return _outputs(_find(kernel), q)


@torch.library.register_fake("heddle::decode_out", lib=_library)
def _fake_decode_out(kernel: str, q: Tensor, k_cache: Tensor, **_: Any) -> None:
    return None


@torch.library.register_fake("heddle::write", lib=_library)
def _fake_write(kernel: str, k: Tensor, v: Tensor | None, slot_mapping: Tensor, k_cache: Tensor, *_: Any, **__: Any) -> None:
    return None


def decode(kernel: Kernel, q: Tensor, k_cache: Tensor, v_cache: Tensor | None = None, *, out: Tensor | None = None, lse: Tensor | None = None,
           workspace: Tensor | None = None, splits: int = 0, longest: int = 0, logits_scale: float = 0.0, lists_settled: bool = False,
           **tensors: Tensor | float | None) -> Any:  # fmt: skip
    """Attention of q [seqs · rows, q_heads, head_dim] over the cache, on torch's current stream: out, or (out, lse) where the contract
    has lse. `tensors`: the other inputs by name; k_scale and v_scale are numbers where scale.source is argument. Given `out` it is
    filled, and nothing is returned. workspace: None: torch's allocator."""
    name, tensors = kernel_name(kernel), _by_type(tensors)
    if out is not None:
        torch.ops.heddle.decode_out(name, q, k_cache, v_cache=v_cache, **tensors, out=out, lse=lse, workspace=workspace, splits=splits,
                                    longest=longest, logits_scale=logits_scale, lists_settled=lists_settled)  # fmt: skip
        return None
    result = torch.ops.heddle.decode(name, q, k_cache, v_cache=v_cache, **tensors, splits=splits, longest=longest,
                                     logits_scale=logits_scale, lists_settled=lists_settled)  # fmt: skip
    return result if "lse" in kernel._tensors else result[0]


def write(kernel: Kernel, k: Tensor, v: Tensor | None, slot_mapping: Tensor, k_cache: Tensor, v_cache: Tensor | None = None,
          k_scale: Tensor | float | None = None, v_scale: Tensor | float | None = None) -> None:  # fmt: skip
    """Tokens' k and v [tokens, kv_heads, head_dim] into the cache's slots, quantised as the contract says."""
    scales = _by_type({"k_scale": k_scale, "v_scale": v_scale})
    torch.ops.heddle.write(kernel_name(kernel), k, v, slot_mapping, k_cache, v_cache, **scales)
