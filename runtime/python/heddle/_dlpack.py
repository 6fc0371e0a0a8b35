"""Reading a DLPack capsule without an extension module, and making one. The structs are those of dlpack.h, version 0.x and 1.x."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13
ON_HOST, ON_DEVICE = (CPU, CUDA_HOST, ROCM_HOST), (CUDA, ROCM, CUDA_MANAGED)

# (code, bits) of dlpack.h: a name of heddle's. Unsigned numbers are storage of whatever the contract says.
_NAMES = {
    (0, 8): "int8", (0, 32): "int32", (0, 64): "int64", (1, 8): "bits8", (1, 16): "bits16", (2, 16): "fp16", (2, 32): "fp32",
    (4, 16): "bf16", (10, 8): "fp8_e4m3fn", (11, 8): "fp8_e4m3fnuz", (12, 8): "fp8_e5m2", (14, 8): "e8m0",
}  # fmt: skip


class Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("index", c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", Device), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8),
                ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", _Deleter)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", _Deleter), ("flags", c_uint64),
                ("tensor", DLTensor)]  # fmt: skip


_api = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", _api))
_CapsuleDestructor = ctypes.PYFUNCTYPE(None, c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, _CapsuleDestructor)(("PyCapsule_New", _api))
_raw_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
_raw_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))


class Described:
    """What a capsule says. The memory lives as long as `capsule`, which stays unconsumed: its own destructor gives it back."""

    def __init__(self, capsule: Any) -> None:
        if _is_valid(capsule, b"dltensor_versioned"):
            managed = ManagedVersioned.from_address(_pointer(capsule, b"dltensor_versioned"))
            if managed.major != 1:
                raise ValueError(f"DLPack of version {managed.major}, known is 1")
            t = managed.tensor
        elif _is_valid(capsule, b"dltensor"):
            t = Managed.from_address(_pointer(capsule, b"dltensor")).tensor
        else:
            raise ValueError("__dlpack__ gave no DLPack capsule, or one that was consumed")
        if t.lanes != 1 or (t.code, t.bits) not in _NAMES:
            raise TypeError(f"a tensor's elements are of a type that heddle has none for (DLPack code {t.code}, {t.bits} bits, {t.lanes} lanes)")
        self.capsule = capsule
        self.address = (t.data or 0) + t.byte_offset
        self.dtype = _NAMES[t.code, t.bits]
        self.shape = tuple(t.shape[i] for i in range(t.ndim))
        self.strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else None
        self.on_host = t.device.type in ON_HOST
        self.index = t.device.index
        if not self.on_host and t.device.type not in ON_DEVICE:
            raise TypeError(f"a tensor lies on a device that heddle doesn't know (DLPack device type {t.device.type})")


_owners: dict[int, Any] = {}  # address of a Managed: it, and what it shares memory with


def _forget(managed: int) -> None:
    _owners.pop(managed, None)


def _forget_unconsumed(capsule: int) -> None:
    if _raw_is_valid(capsule, b"dltensor"):
        _forget(_raw_pointer(capsule, b"dltensor"))


_release, _drop = _Deleter(_forget), _CapsuleDestructor(_forget_unconsumed)


def capsule_of(address: int, code: int, bits: int, shape: tuple[int, ...], owner: Any) -> Any:
    """A capsule over host memory that `owner` keeps alive. Dense, row-major."""
    sizes = (c_int64 * max(len(shape), 1))(*shape)
    managed = Managed()
    managed.tensor = DLTensor(address, Device(CPU, 0), len(shape), code, bits, 1, ctypes.cast(sizes, POINTER(c_int64)), None, 0)
    managed.deleter = _release
    at = ctypes.addressof(managed)
    _owners[at] = (managed, sizes, owner)
    return _new(at, b"dltensor", _drop)


CODES = {name: code_bits for code_bits, name in _NAMES.items() if not name.startswith("bits")}
