"""A device with a cache of code objects and a compiler; its memory, streams and graphs."""
from __future__ import annotations

import ctypes
import os
import weakref
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from . import _dlpack, _native as native
from .errors import SEVERITIES, check, diagnostics
from .tensors import TensorView

Log = Callable[[str, str], None]  # severity, one line; from any thread

# Array interface of heddle's dtypes; storage where numpy has none.
_TYPESTR = {"fp16": "<f2", "fp32": "<f4", "int8": "|i1", "int32": "<i4", "int64": "<i8", "bf16": "<u2"}


class ContextInfo(NamedTuple):
    device: str
    name: str
    target: str
    cache_directory: str
    compute_units: int
    emulated: bool
    memory_bytes: int


class Context:
    """A device ("cuda:0", "hip:0", "emu:gfx950"), a cache of code objects, and a compiler. Any number of threads may use one.

    cache_directory: None, HEDDLE_CACHE_DIR or else the user's; "": in memory only. compiler: "hiprtc", "llvm", "nvrtc". tuned: a
    tuned record or a folder of them. log: called with a severity and a line; must not call heddle.
    """

    def __init__(self, device: str, *, cache_directory: str | None = None, compiler: str | None = None, log: Log | None = None,
                 compile_seconds: float = 0, jobs: int = 0, tuned: str | None = None) -> None:  # fmt: skip
        if not isinstance(device, str):
            raise TypeError(f'device is {device!r}: it takes a name, "cuda:0", "hip:0" or "emu:gfx950"')
        options = native.ContextOptions(device=device.encode(), cache_directory=native.encoded(cache_directory),
                                        compiler=native.encoded(compiler), compile_seconds=compile_seconds, jobs=jobs,
                                        tuned=native.encoded(tuned))  # fmt: skip
        self._log = native.LogFunction(lambda _, severity, line: log(SEVERITIES[severity], native.text(line) or "")) if log else None
        if self._log:
            options.log = self._log
        handle, why = c_void_p(), diagnostics()
        check(native.library.hd_context_create(byref(options), byref(handle), why.handle), f"opening {device}", why)
        self._handle = handle
        weakref.finalize(self, _destroy_context, handle, self._log)
        info, text = native.ContextInfo(), native.text
        check(native.library.hd_context_get_info(handle, byref(info)), f"asking about {device}")
        self.info = ContextInfo(device, text(info.name) or "", text(info.target) or "", text(info.cache_directory) or "",
                                info.compute_units, bool(info.emulated), info.memory_bytes)  # fmt: skip
        self.index = 0 if self.info.emulated else int(device.partition(":")[2] or 0)
        self._ranges: dict[int, int] = {}  # of our own memory: address, bytes
        self._workspaces: dict[int, Buffer] = {}  # by stream
        self._capturing: set[int] = set()  # streams

    @property
    def target(self) -> str:
        return self.info.target

    def __repr__(self) -> str:
        return f"<heddle.Context {self.info.device} ({self.info.name})>"

    def add_pack(self, path: str | os.PathLike[str]) -> None:
        """Finds kernels in a file that `heddle pack` wrote, too. Not while another thread prepares."""
        why = diagnostics()
        check(native.library.hd_context_add_pack(self._handle, os.fsencode(path), why.handle), f"adding the pack {path}", why)

    # Kernels: kernel.py

    def prepare(self, contract: Any, operation: str, variant: str | None = None, *, shape: Any = None, lazily: bool = False) -> Any:
        """The operation ("write", "decode") of a contract (a Contract, a spec's text or path) as a Kernel, compiled or from the
        cache. shape: Sizes to look up tuned records for. lazily: check the contract now, compile at the first launch."""
        from .kernel import prepare

        return prepare(self, contract, operation, variant, shape, lazily)

    def prepare_many(self, jobs: Iterable[Any], progress: Any = None) -> list[Any]:
        """Jobs, several compiled at a time; progress(done, count, name) after each. Raises when one fails, after all are done."""
        from .kernel import prepare_many

        return prepare_many(self, list(jobs), progress)

    def prepare_async(self, jobs: Iterable[Any], progress: Any = None) -> Any:
        """The same in the background: a Future."""
        from .kernel import Future

        return Future(self, list(jobs), progress)

    # Memory

    def zeros(self, shape: Sequence[int], dtype: str) -> Buffer:
        """Device memory of heddle's own, zeroed. Emulated devices read and write this in place, anything else through copies."""
        return Buffer(self, tuple(shape), dtype)

    def array(self, what: Any, dtype: str | None = None) -> Buffer:
        """A dense tensor of the host, copied into device memory of heddle's own."""
        from .tensors import describe

        view = describe(what, dtype)
        if not view.on_host:
            raise TypeError("array() copies from the host's memory")
        buffer = Buffer(self, view.shape, view.dtype)
        buffer.copy_from(view)
        return buffer

    def workspace(self, bytes: int, stream: int = 0) -> Buffer:
        """The context's own workspace of a stream, made larger when it must be: launches on one stream share it."""
        held = self._workspaces.get(stream)
        if held is None or held.nbytes < bytes:
            if held is not None:
                self.wait(stream)  # what was launched with the smaller one may still run
            self._workspaces[stream] = held = Buffer(self, (bytes,), "int8", counted=False)
        return held

    def owns(self, view: TensorView) -> bool:
        return any(start <= view.address and view.address + view.span <= start + size for start, size in self._ranges.items())

    # Streams and graphs

    def stream(self) -> Stream:
        return Stream(self)

    def wait(self, stream: int = 0) -> None:
        """Until all work of the stream has ended; 0: all work of the device."""
        why = diagnostics()
        check(native.library.hd_stream_wait(self._handle, stream, why.handle), "waiting for a stream", why)

    def capture(self, stream: Stream) -> Capture:
        """with context.capture(stream) as graph: launches on the stream are recorded; graph.launch() executes them."""
        return Capture(self, stream)


def _destroy_context(handle: c_void_p, log: Any) -> None:
    native.library.hd_context_destroy(handle)
    del log  # the callback lives until here


class Buffer:
    """Device memory, dense. On an emulated device it is the host's memory too: numpy.asarray(b) and torch.from_dlpack(b) share it."""

    def __init__(self, context: Context, shape: tuple[int, ...], dtype: str, counted: bool = True) -> None:
        self.context, self.shape = context, shape
        self.dtype = "bits8" if dtype == "fp8_e4m3" else dtype  # the target's own dialect
        self._view = TensorView(0, self.dtype, shape)
        self.nbytes = self._view.span
        address, why = c_uint64(), diagnostics()
        check(native.library.hd_memory_allocate(context._handle, self.nbytes, byref(address), why.handle), f"allocating {self.nbytes} bytes", why)
        self.address = address.value
        ranges = context._ranges if counted else {}
        ranges[self.address] = self.nbytes
        weakref.finalize(self, _release_memory, context, self.address, ranges)
        check(native.library.hd_memory_fill(context._handle, None, self.address, 0, self.nbytes, why.handle), "filling", why)
        self._view = TensorView(self.address, self.dtype, shape, None, False, context.index)

    def _heddle_view(self) -> TensorView:
        from dataclasses import replace

        return replace(self._view, owner=self)

    def copy_from(self, what: Any, stream: int = 0) -> None:
        """From dense host memory of as many bytes."""
        from .tensors import describe

        view = describe(what)
        if not view.on_host or view.span != self.nbytes or not _dense(view):
            raise ValueError(f"{self.nbytes} bytes of dense host memory are expected")
        why = diagnostics()
        check(native.library.hd_memory_copy_in(self.context._handle, stream, self.address, view.address, self.nbytes, why.handle), "copying", why)

    def tobytes(self, stream: int = 0) -> bytes:
        """A copy in the host's memory, after the stream's earlier work."""
        out, why = ctypes.create_string_buffer(max(self.nbytes, 1)), diagnostics()
        check(native.library.hd_memory_copy_out(self.context._handle, stream, out, self.address, self.nbytes, why.handle), "copying", why)
        return out.raw[: self.nbytes]

    def _on_host(self) -> None:
        if not self.context.info.emulated:
            raise BufferError("this memory lies on a device: tobytes() copies it")

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self.context.info.emulated:
            raise AttributeError("this memory lies on a device: tobytes() copies it")
        return {"version": 3, "shape": self.shape, "typestr": _TYPESTR.get(self.dtype, "|u1"), "data": (self.address, False)}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.context.info.device.startswith(("cuda", "hip")):
            raise AttributeError("this memory lies on the host")
        return {"version": 3, "shape": self.shape, "typestr": _TYPESTR.get(self.dtype, "|u1"), "data": (self.address, False), "stream": None}

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        self._on_host()
        code, bits = (1, 8) if self.dtype == "bits8" else _dlpack.CODES[self.dtype]
        if bits == 8 and code > 8:
            code = 1  # fp8 travels as storage: few consumers know it
        return _dlpack.capsule_of(self.address, code, bits, self.shape, self)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._on_host()
        return (_dlpack.CPU, 0)

    def __repr__(self) -> str:
        return f"<heddle.Buffer {self.dtype} {list(self.shape)} on {self.context.info.device}>"


def _dense(view: TensorView) -> bool:
    if view.strides is None:
        return True
    step = 1
    for n, s in zip(reversed(view.shape), reversed(view.strides)):
        if n != 1 and s != step:
            return False
        step *= n
    return True


def _release_memory(context: Context, address: int, ranges: dict[int, int]) -> None:
    ranges.pop(address, None)
    native.library.hd_memory_release(context._handle, address, None)


class Stream:
    """A stream of heddle's own. Launches take it, or any other library's stream as a number."""

    def __init__(self, context: Context) -> None:
        handle, why = c_void_p(), diagnostics()
        check(native.library.hd_stream_create(context._handle, byref(handle), why.handle), "creating a stream", why)
        self.context, self.handle = context, handle.value or 0
        weakref.finalize(self, _destroy_stream, context, self.handle)

    def wait(self) -> None:
        self.context.wait(self.handle)


def _destroy_stream(context: Context, handle: int) -> None:
    native.library.hd_stream_destroy(context._handle, handle)


class Capture:
    """What is launched on the stream inside the with block is recorded, not executed."""

    def __init__(self, context: Context, stream: Stream) -> None:
        self.context, self.stream, self._graph = context, stream, c_void_p()

    def __enter__(self) -> Capture:
        why = diagnostics()
        check(native.library.hd_capture_begin(self.context._handle, self.stream.handle, why.handle), "beginning a capture", why)
        self.context._capturing.add(self.stream.handle)
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        why = diagnostics()
        self.context._capturing.discard(self.stream.handle)
        status = native.library.hd_capture_end(self.context._handle, self.stream.handle, byref(self._graph), why.handle)
        if status == native.OK:
            weakref.finalize(self, _destroy_graph, self.context, self._graph)
        if kind is None:
            check(status, "ending a capture", why)

    def launch(self, stream: Stream | None = None) -> None:
        """Executes all of it, with the memory behind the addresses as it is then."""
        why = diagnostics()
        check(native.library.hd_graph_launch(self.context._handle, self._graph, (stream or self.stream).handle, why.handle), "launching a graph", why)


def _destroy_graph(context: Context, graph: c_void_p) -> None:
    native.library.hd_graph_destroy(context._handle, graph)



