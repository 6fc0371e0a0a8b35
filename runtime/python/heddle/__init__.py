"""heddle: paged-attention kernels for the KV cache that you have, from Python.

    context = heddle.Context("cuda:0")                      # hip:0, emu:gfx950
    decode = context.prepare("my-cache.yaml", "decode")
    decode.launch(q=q, k_cache=k, v_cache=v, page_table=table, lengths=lengths, out=out)

docs/python.md is the guide, runtime/heddle.h the reference of what lies below. Tensors are torch's, cupy's, numpy's or anybody's
with DLPack or an array interface, and are never copied (but for emulated devices). heddle.torch has custom operators for
torch.compile; nothing else imports torch.
"""
from . import _native
from .context import Buffer, Capture, Context, ContextInfo, Stream
from .contract import Contract
from .errors import Declined, DeviceError, Diagnostic, FileError, HeddleError, InternalError, Invalid, OutOfMemory, Unavailable
from .kernel import Binding, Future, Job, Kernel, KernelInfo, Part, Sizes, TensorSpec
from .match import Match, Request, match
from .tensors import Axes, TensorView, describe
from .view import View, collapse_heads, page_split

__version__ = "0.1.0"


def library_version() -> str:
    """Of the C library that is loaded."""
    return _native.text(_native.library.hd_version_text()) or ""


__all__ = [
    "Axes", "Binding", "Buffer", "Capture", "Context", "ContextInfo", "Contract", "Declined", "DeviceError", "Diagnostic", "FileError",
    "Future", "HeddleError", "InternalError", "Invalid", "Job", "Kernel", "KernelInfo", "Match", "OutOfMemory", "Part", "Request", "Sizes",
    "Stream", "TensorSpec", "TensorView", "Unavailable", "View", "collapse_heads", "describe", "library_version", "match", "page_split",
]  # fmt: skip
