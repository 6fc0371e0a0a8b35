"""Contracts: what two programs must agree on to share a KV cache (docs/spec.md)."""
from __future__ import annotations

import os
import re
import weakref
from ctypes import byref, c_void_p
from typing import Any, Iterable

from . import _native as native
from .errors import check, diagnostics

OPERATIONS = {"write": native.WRITE, "decode": native.DECODE}


def operation_number(operation: str) -> int:
    if operation not in OPERATIONS:
        raise ValueError(f'operation is "{operation}", allowed are: {", ".join(OPERATIONS)}')
    return OPERATIONS[operation]


class Contract:
    """From a spec's text, Contract("heddle: 1 …"), or its file, Contract.read(path). Immutable; any thread."""

    def __init__(self, yaml: str) -> None:
        data, handle, why = yaml.encode(), c_void_p(), diagnostics()
        check(native.library.hd_contract_parse(data, len(data), byref(handle), why.handle), "reading a spec", why)
        self._own(handle)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Contract:
        handle, why = c_void_p(), diagnostics()
        check(native.library.hd_contract_read(os.fsencode(path), byref(handle), why.handle), f"reading {os.fspath(path)}", why)
        return cls._from_handle(handle)

    @classmethod
    def _from_handle(cls, handle: c_void_p, owner: Any = None) -> Contract:
        """Of a handle that `owner` has, or, without one, that is ours from now on."""
        self = cls.__new__(cls)
        if owner is None:
            self._own(handle)
        else:
            self._handle, self._owner = handle, owner
        return self

    def _own(self, handle: c_void_p) -> None:
        self._handle, self._owner = handle, None
        weakref.finalize(self, native.library.hd_contract_destroy, handle)

    @property
    def name(self) -> str:
        return native.text(native.library.hd_contract_name(self._handle)) or ""

    @property
    def key(self) -> str:
        """SHA-256 of the canonical text: two specs with the same key mean the same."""
        return native.text(native.library.hd_contract_key(self._handle)) or ""

    @property
    def text(self) -> str:
        """The canonical text: every field that applies, one spelling; itself a spec."""
        return native.text(native.library.hd_contract_text(self._handle)) or ""

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(o for o, n in OPERATIONS.items() if native.library.hd_contract_has(self._handle, n))

    def number(self, field: str) -> int:
        """A whole number of the canonical text: "page", "heads_per_kv", "rows", "block"."""
        found = re.search(rf"\b{field}: (\d+)", self.text)
        if found is None:
            raise KeyError(f"the contract {self.name} has no number {field}")
        return int(found.group(1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contract) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<heddle.Contract {self.name} {self.key[:12]}>"


def contract_of(what: Contract | str | os.PathLike[str]) -> Contract:
    """A contract, a spec's text (more than one line), or the path of its file."""
    if isinstance(what, Contract):
        return what
    if isinstance(what, str) and "\n" in what:
        return Contract(what)
    if not isinstance(what, (str, os.PathLike)):
        raise TypeError(f"a contract is a heddle.Contract, a spec's text, or the path of its file, not {what!r}")
    return Contract.read(what)


def contracts_of(many: Iterable[Contract | str | os.PathLike[str]]) -> list[Contract]:
    return [contract_of(one) for one in many]
