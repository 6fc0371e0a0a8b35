"""Tensors of others, described for heddle without a copy.

Taken, in this order: what heddle.Buffer and describe() give, torch tensors, objects with `__cuda_array_interface__`,
`__array_interface__` (numpy), `__dlpack__`, and the buffer protocol. Elements of unsigned 8 or 16 bits are storage: they are
whatever dtype of that width the contract has there (numpy has no bf16 or fp8).
"""
from __future__ import annotations

import sys
from ctypes import c_int64, cast, POINTER
from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from . import _dlpack, _native as native
from .errors import DiagnosticsList, check

BITS = {"bits8": 1, "bits16": 2}
# Array interface: kind and bytes to dtype.
_TYPES = {"f2": "fp16", "f4": "fp32", "i1": "int8", "i4": "int32", "i8": "int64", "u1": "bits8", "u2": "bits16", "V1": "bits8", "V2": "bits16"}


@dataclass(frozen=True)
class TensorView:
    """Where a tensor lies and what it is like. Keeps what it describes alive."""

    address: int
    dtype: str  # of heddle, or "bits8", "bits16": storage
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None  # elements; None: dense, row-major
    on_host: bool = False
    index: int = 0  # of the device
    stream: int | None = None  # its producer's, where it says so
    owner: Any = field(default=None, repr=False, compare=False)

    @property
    def itemsize(self) -> int:
        return BITS.get(self.dtype) or native.DTYPE_BYTES[native.DTYPE_NUMBER[self.dtype]]

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last."""
        if 0 in self.shape:
            return 0
        if self.strides is None:
            count = 1
            for n in self.shape:
                count *= n
            return count * self.itemsize
        return (1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))) * self.itemsize


def _of_torch(tensor: Any) -> TensorView:
    torch = sys.modules["torch"]
    if tensor.device.type not in ("cuda", "cpu"):
        raise TypeError(f"a torch tensor lies on {tensor.device}; heddle takes cuda (also ROCm's) and cpu")
    name = _torch_dtypes(torch).get(tensor.dtype)
    if name is None:
        raise TypeError(f"a torch tensor has dtype {tensor.dtype}, which heddle has none for")
    on_host = tensor.device.type == "cpu"
    return TensorView(tensor.data_ptr(), name, tuple(tensor.shape), tuple(tensor.stride()), on_host,
                      0 if on_host else tensor.device.index or 0, None, tensor)  # fmt: skip


_torch_table: dict[Any, str] = {}


def _torch_dtypes(torch: Any) -> dict[Any, str]:
    if not _torch_table:
        names = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8_e4m3fn", "float8_e4m3fnuz": "fp8_e4m3fnuz",
                 "float8_e5m2": "fp8_e5m2", "float8_e8m0fnu": "e8m0", "int8": "int8", "int32": "int32", "int64": "int64", "uint8": "bits8",
                 "uint16": "bits16"}  # fmt: skip
        _torch_table.update({getattr(torch, t): n for t, n in names.items() if hasattr(torch, t)})
    return _torch_table


def torch_dtype(name: str) -> Any:
    import torch

    return next(t for t, n in _torch_dtypes(torch).items() if n == name)


def _of_interface(what: Any, interface: Mapping[str, Any], on_host: bool) -> TensorView:
    name = _TYPES.get(interface["typestr"][1:])
    if name is None or interface["typestr"][0] == ">":
        raise TypeError(f"an array has elements of type {interface['typestr']}, which heddle has none for")
    itemsize, strides = int(interface["typestr"][2:]), interface.get("strides")
    if strides is not None:
        if any(s % itemsize for s in strides):
            raise ValueError("an array's strides are no whole numbers of elements")
        strides = tuple(s // itemsize for s in strides)
    index = 0 if on_host else getattr(getattr(what, "device", None), "id", 0)
    return TensorView(interface["data"][0], name, tuple(interface["shape"]), strides, on_host, index, interface.get("stream"), what)


def _of_dlpack(what: Any) -> TensorView:
    d = _dlpack.Described(what.__dlpack__())
    return TensorView(d.address, d.dtype, d.shape, d.strides, d.on_host, d.index, None, d.capsule)


def _of_buffer(what: Any) -> TensorView:
    import ctypes

    view = memoryview(what)
    code = {"e": "f2", "f": "f4", "b": "i1", "i": "i4", "l": "i8", "q": "i8", "B": "u1", "H": "u2"}.get(view.format.lstrip("@=<"))
    if code is None or not view.c_contiguous or int(code[1]) != view.itemsize:
        raise TypeError(f"a buffer of format {view.format} that isn't dense, or that heddle has no dtype for")
    if view.readonly:
        raise TypeError("its buffer is read only")
    held = (ctypes.c_char * max(view.nbytes, 1)).from_buffer(view.cast("B")) if view.nbytes else ctypes.create_string_buffer(1)
    return TensorView(ctypes.addressof(held), _TYPES[code], tuple(view.shape or ()), None, True, 0, None, (held, view))


def describe(what: Any, dtype: str | None = None) -> TensorView:
    """What heddle needs to know of a tensor. `dtype` names the elements of storage ("bf16" of uint16)."""
    view = _describe(what)
    if dtype is None or dtype == view.dtype:
        return view
    if dtype not in native.DTYPE_NUMBER or native.DTYPE_BYTES[native.DTYPE_NUMBER[dtype]] != view.itemsize:
        raise TypeError(f"elements of {view.itemsize} bytes ({view.dtype}) can't be taken as {dtype}")
    return replace(view, dtype=dtype)


def describe_as(name: str, what: Any, dtype: str | None = None) -> TensorView:
    """The same of a tensor that has a name among others, which what is wrong with it then begins with."""
    try:
        return describe(what, dtype)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _describe(what: Any) -> TensorView:
    if isinstance(what, TensorView):
        return what
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(what, torch.Tensor):
        return _of_torch(what)
    own = getattr(what, "_heddle_view", None)
    if own is not None:
        return own()  # type: ignore[no-any-return]
    for attribute, on_host in (("__cuda_array_interface__", False), ("__array_interface__", True)):
        interface = getattr(what, attribute, None)
        if interface is not None:
            return _of_interface(what, interface, on_host)
    if hasattr(what, "__dlpack__"):
        return _of_dlpack(what)
    try:
        return _of_buffer(what)
    except TypeError as error:
        raise TypeError(f"{type(what).__name__} is no tensor that heddle can take: {error}") from None


class Axes:
    """Which digit of which axis each dimension of a permuted cache is: Axes("[b, s, h, d]", page=16, head_dim=128)."""

    def __init__(self, text: str, page: int, head_dim: int) -> None:
        import weakref
        from ctypes import byref, c_void_p

        handle, why = c_void_p(), DiagnosticsList()
        check(native.library.hd_axes_parse(text.encode(), page, head_dim, byref(handle), why.handle), f'axes "{text}"', why)
        self._handle = handle
        weakref.finalize(self, native.library.hd_axes_destroy, handle)


def number_of(name: str) -> int:
    """Of a tensor's name, in the C library."""
    if name not in native.TENSOR_NUMBER:
        raise TypeError(f'there is no tensor "{name}"; names are: {", ".join(native.TENSORS)}')
    return native.TENSOR_NUMBER[name]


class Packed:
    """Tensors as the C library takes them; keeps alive what they point to."""

    def __init__(self, views: Mapping[str, TensorView], axes: Mapping[str, Axes] | None = None) -> None:
        self.count = len(views)
        self.array = (native.Tensor * max(self.count, 1))()
        self.views = dict(views)
        self.numbers: list[Any] = []  # shapes and strides
        self._axes = axes
        for name, said in (axes or {}).items():
            if not isinstance(said, Axes):
                raise TypeError(f'axes of {name}: it takes heddle.Axes("[b, s, h, d]", page=…, head_dim=…), not {said!r}')
            if name not in views:
                raise TypeError(f"axes of {name}: there is no such tensor among {', '.join(views)}")
        for slot, (name, view) in zip(self.array, views.items()):
            number = number_of(name)
            if view.dtype == "bits16":
                raise TypeError(f"{name} is storage of {view.itemsize * 8} bits: say which dtype, describe(tensor, dtype=…)")
            rank = len(view.shape)
            numbers = (c_int64 * max(2 * rank, 1))(*view.shape, *(view.strides or ()))
            self.numbers.append(numbers)
            slot.name = number
            slot.dtype = native.DTYPE_NUMBER["uint8" if view.dtype == "bits8" else view.dtype]  # bytes: records are taken so
            slot.address = view.address
            slot.rank = rank
            slot.shape = cast(numbers, POINTER(c_int64))
            if view.strides is not None:
                slot.strides = cast(native.byref(numbers, rank * 8), POINTER(c_int64))
            if axes and name in axes:
                slot.axes = axes[name]._handle


def unpack(array: Any, count: int, owner: Any, index: int) -> dict[str, TensorView]:
    """What the C library describes, in the memory of device `index`, as views that keep `owner` alive."""
    found = {}
    for i in range(count):
        t = array[i]
        strides: Sequence[int] | None = t.strides[: t.rank] if t.strides else None
        found[native.TENSORS[t.name]] = TensorView(t.address, native.DTYPES[t.dtype], tuple(t.shape[: t.rank]),
                                                   tuple(strides) if strides is not None else None, index=index, owner=owner)  # fmt: skip
    return found
