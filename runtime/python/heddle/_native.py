"""The C library: where it is found, its structs and its functions. runtime/heddle.h is the reference; the names are the same.

tests/python/test_native.py holds every struct here against the layouts that the library's programs were compiled with.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Sequence

VERSION = (0, 1)  # that this package is written for: within it, later libraries serve too
MAX_RANK = 16

OK, DECLINED, INVALID, OUT_OF_MEMORY, IO, UNAVAILABLE, DEVICE, INTERNAL = range(8)
WRITE, DECODE = 0, 1
ROLE_NONE, ROLE_INPUT, ROLE_OUTPUT, ROLE_UPDATED = range(4)

DTYPES = ("bf16", "fp16", "fp32", "fp8_e4m3fn", "fp8_e4m3fnuz", "fp8_e5m2", "int8", "e8m0", "int32", "int64", "uint8")
DTYPE_BYTES = (2, 2, 4, 1, 1, 1, 1, 1, 4, 8, 1)
TENSORS = (
    "q", "k_cache", "v_cache", "k_scale", "v_scale", "page_table", "lengths", "kv_indptr", "kv_indices", "last_page_len",
    "sinks", "k", "v", "slot_mapping", "out", "lse", "block_list", "token_list", "row_sequences",
)  # fmt: skip
SCALES = ("k_scale", "v_scale")  # what may also be a number
DTYPE_NUMBER = {name: number for number, name in enumerate(DTYPES)}
TENSOR_NUMBER = {name: number for number, name in enumerate(TENSORS)}


class Struct(ctypes.Structure):
    """Zeroed; a struct that says how large it is says so from the start."""

    def __init__(self, **fields: Any) -> None:
        if self._fields_[0][0] == "size":
            fields.setdefault("size", ctypes.sizeof(self))
        super().__init__(**fields)


class Diagnostic(Struct):
    _fields_ = [("severity", c_int), ("code", c_char_p), ("field", c_char_p), ("message", c_char_p), ("found", c_char_p),
                ("allowed", c_char_p), ("line", c_int), ("column", c_int)]  # fmt: skip


class Tensor(Struct):
    _fields_ = [("name", c_int), ("dtype", c_int), ("address", c_uint64), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("axes", c_void_p), ("rank", c_int32), ("reserved", c_int32)]  # fmt: skip


class MatchRequest(Struct):
    _fields_ = [("size", c_size_t), ("operation", c_int), ("lse", c_int32), ("sinks", c_int32), ("causal", c_int32),
                ("prefix", c_int32), ("window", c_int32), ("splits", c_int32), ("tensors", POINTER(Tensor)),
                ("tensor_count", c_size_t), ("longest", c_int64), ("rows", c_int64), ("query_heads", c_int64),
                ("kv_heads", c_int64), ("softcap", c_double), ("logits_scale", c_double), ("incumbent", c_char_p),
                ("block", c_int32), ("reserved", c_int32), ("k_scale", POINTER(c_float)), ("v_scale", POINTER(c_float))]  # fmt: skip


class Candidate(Struct):
    _fields_ = [("contract", c_void_p), ("better_than", POINTER(c_char_p)), ("better_count", c_size_t)]


LogFunction = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class ContextOptions(Struct):
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("cache_directory", c_char_p), ("compiler", c_char_p),
                ("log", LogFunction), ("log_user", c_void_p), ("compile_seconds", c_double), ("jobs", c_int32),
                ("reserved", c_int32), ("tuned", c_char_p)]  # fmt: skip


class ContextInfo(Struct):
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("name", c_char_p), ("target", c_char_p),
                ("cache_directory", c_char_p), ("compute_units", c_int32), ("emulated", c_int32),
                ("memory_bytes", c_int64)]  # fmt: skip


class Sizes(Struct):
    _fields_ = [("size", c_size_t), ("seqs", c_int64), ("rows", c_int64), ("kv_heads", c_int64), ("longest", c_int64),
                ("splits", c_int64), ("tokens", c_int64), ("listed", c_int64)]  # fmt: skip


class Job(Struct):
    _fields_ = [("size", c_size_t), ("contract", c_void_p), ("operation", c_int), ("reserved", c_int32), ("variant", c_char_p),
                ("shape", POINTER(Sizes))]  # fmt: skip


class Progress(Struct):
    _fields_ = [("done", c_size_t), ("count", c_size_t), ("index", c_size_t), ("status", c_int), ("name", c_char_p)]


ProgressFunction = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Progress))


class KernelInfo(Struct):
    _fields_ = [("size", c_size_t), ("contract_name", c_char_p), ("contract_key", c_char_p), ("operation", c_char_p),
                ("target", c_char_p), ("variant", c_char_p), ("code_key", c_char_p), ("compiler", c_char_p),
                ("origin", c_char_p), ("descriptor", c_char_p), ("code_object", c_void_p), ("code_object_bytes", c_size_t),
                ("compile_seconds", c_double), ("parts", c_int32), ("tile_tokens", c_int32),
                ("choice", c_char_p)]  # fmt: skip


class Part(Struct):
    _fields_ = [("size", c_size_t), ("symbol", c_char_p), ("grid", c_uint32 * 3), ("threads", c_uint32),
                ("lds_bytes", c_uint32), ("launched", c_int32)]  # fmt: skip


class Arguments(Struct):
    _fields_ = [("size", c_size_t), ("tensors", POINTER(Tensor)), ("tensor_count", c_size_t), ("workspace", c_uint64),
                ("workspace_bytes", c_int64), ("splits", c_int64), ("longest", c_int64), ("logits_scale", c_float),
                ("lists_settled", c_int32), ("k_scale", POINTER(c_float)), ("v_scale", POINTER(c_float))]  # fmt: skip


# Struct of the header: class here.
STRUCTS = {
    "hd_diagnostic": Diagnostic, "hd_tensor": Tensor, "hd_match_request": MatchRequest, "hd_candidate": Candidate,
    "hd_context_options": ContextOptions, "hd_context_info": ContextInfo, "hd_job": Job, "hd_progress": Progress,
    "hd_kernel_info": KernelInfo, "hd_sizes": Sizes, "hd_part": Part, "hd_arguments": Arguments,
}  # fmt: skip

_handle, _out = c_void_p, POINTER(c_void_p)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "hd_version": (c_uint32, []),
    "hd_version_text": (c_char_p, []),
    "hd_status_text": (c_char_p, [c_int]),
    "hd_diagnostics_create": (c_int, [_out]),
    "hd_diagnostics_destroy": (None, [_handle]),
    "hd_diagnostics_count": (c_size_t, [_handle]),
    "hd_diagnostics_get": (c_int, [_handle, c_size_t, POINTER(Diagnostic)]),
    "hd_contract_parse": (c_int, [c_char_p, c_size_t, _out, _handle]),
    "hd_contract_read": (c_int, [c_char_p, _out, _handle]),
    "hd_contract_destroy": (None, [_handle]),
    "hd_contract_name": (c_char_p, [_handle]),
    "hd_contract_key": (c_char_p, [_handle]),
    "hd_contract_text": (c_char_p, [_handle]),
    "hd_contract_has": (c_int, [_handle, c_int]),
    "hd_axes_parse": (c_int, [c_char_p, c_int64, c_int64, _out, _handle]),
    "hd_axes_destroy": (None, [_handle]),
    "hd_match": (c_int, [POINTER(MatchRequest), POINTER(Candidate), c_size_t, c_char_p, POINTER(c_size_t), POINTER(c_void_p)]),
    "hd_context_create": (c_int, [POINTER(ContextOptions), _out, _handle]),
    "hd_context_destroy": (None, [_handle]),
    "hd_context_get_info": (c_int, [_handle, POINTER(ContextInfo)]),
    "hd_context_add_pack": (c_int, [_handle, c_char_p, _handle]),
    "hd_prepare": (c_int, [_handle, POINTER(Job), _out, _handle]),
    "hd_prepare_lazily": (c_int, [_handle, POINTER(Job), _out, _handle]),
    "hd_prepare_many": (c_int, [_handle, POINTER(Job), c_size_t, ProgressFunction, c_void_p, _out, POINTER(c_int), _handle]),
    "hd_prepare_async": (c_int, [_handle, POINTER(Job), c_size_t, ProgressFunction, c_void_p, _out, _handle]),
    "hd_future_done": (c_int, [_handle]),
    "hd_future_wait": (c_int, [_handle, c_double]),
    "hd_future_take": (c_int, [_handle, c_size_t, _out, _handle]),
    "hd_future_destroy": (None, [_handle]),
    "hd_kernel_ready": (c_int, [_handle, _handle]),
    "hd_kernel_release": (None, [_handle]),
    "hd_kernel_get_info": (c_int, [_handle, POINTER(KernelInfo)]),
    "hd_kernel_tensor": (c_int, [_handle, c_int, POINTER(c_int), POINTER(c_int), c_char_p, c_size_t]),
    "hd_kernel_splits": (c_int, [_handle, POINTER(Sizes), POINTER(c_int64)]),
    "hd_kernel_workspace": (c_int, [_handle, POINTER(Sizes), POINTER(c_int64)]),
    "hd_kernel_part": (c_int, [_handle, c_int, POINTER(Sizes), POINTER(Part)]),
    "hd_launch": (c_int, [_handle, POINTER(Arguments), _handle, _handle]),
    "hd_bind": (c_int, [_handle, POINTER(Arguments), _out, _handle]),
    "hd_binding_destroy": (None, [_handle]),
    "hd_binding_set_scales": (c_int, [_handle, POINTER(c_float), POINTER(c_float)]),
    "hd_binding_set_address": (c_int, [_handle, c_int, c_uint64]),
    "hd_binding_set_workspace": (c_int, [_handle, c_uint64]),
    "hd_binding_launch": (c_int, [_handle, _handle, _handle]),
    "hd_view_page_split": (c_int, [_handle, _handle, POINTER(Tensor), c_size_t, c_int, c_int, _out, _handle]),
    "hd_view_collapse_heads": (c_int, [_handle, _handle, POINTER(Tensor), c_size_t, _out, _handle]),
    "hd_view_destroy": (None, [_handle]),
    "hd_view_contract": (c_void_p, [_handle]),
    "hd_view_tensors": (c_size_t, [_handle, POINTER(POINTER(Tensor))]),
    "hd_view_meaning": (c_int, [_handle]),
    "hd_view_pages": (None, [_handle, POINTER(c_int64), POINTER(c_int64)]),
    "hd_memory_allocate": (c_int, [_handle, c_size_t, POINTER(c_uint64), _handle]),
    "hd_memory_release": (c_int, [_handle, c_uint64, _handle]),
    "hd_memory_copy_in": (c_int, [_handle, _handle, c_uint64, c_void_p, c_size_t, _handle]),
    "hd_memory_copy_out": (c_int, [_handle, _handle, c_void_p, c_uint64, c_size_t, _handle]),
    "hd_memory_fill": (c_int, [_handle, _handle, c_uint64, ctypes.c_ubyte, c_size_t, _handle]),
    "hd_stream_create": (c_int, [_handle, _out, _handle]),
    "hd_stream_destroy": (None, [_handle, _handle]),
    "hd_stream_wait": (c_int, [_handle, _handle, _handle]),
    "hd_capture_begin": (c_int, [_handle, _handle, _handle]),
    "hd_capture_end": (c_int, [_handle, _handle, _out, _handle]),
    "hd_graph_launch": (c_int, [_handle, _handle, _handle, _handle]),
    "hd_graph_destroy": (None, [_handle, _handle]),
}


def _candidates() -> Sequence[str]:
    named = os.environ.get("HEDDLE_LIBRARY")
    if named:
        return [named]
    inside = pathlib.Path(__file__).parent / "lib" / "libheddle.so"  # where a wheel has it
    return [*([str(inside)] if inside.exists() else []), f"libheddle.so.{VERSION[0]}.{VERSION[1]}", "libheddle.so"]


def _load() -> ctypes.CDLL:
    failures = []
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            failures.append(f"{name}: {error}")
            continue
        library.hd_version.restype = c_uint32
        version = library.hd_version()
        found = (version // 1_000_000, version // 1000 % 1000)
        if found != VERSION:
            failures.append(f"{name}: version {found[0]}.{found[1]}, needed is {VERSION[0]}.{VERSION[1]}")
            continue
        for function, (result, arguments) in _FUNCTIONS.items():
            getattr(library, function).restype = result
            getattr(library, function).argtypes = arguments
        return library
    raise ImportError("heddle's C library can't be loaded (HEDDLE_LIBRARY may name it); tried:\n  " + "\n  ".join(failures))


library = _load()


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def encoded(value: str | os.PathLike[str] | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


__all__ = ["library", "byref", "text", "encoded"]
