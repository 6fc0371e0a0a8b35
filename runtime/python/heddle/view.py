"""The same memory under another contract (docs/match.md). Never copies, moves or reads an element."""
from __future__ import annotations

import weakref
from ctypes import POINTER, byref, c_int64, c_void_p
from typing import Any, Mapping

from . import _native as native
from .context import Context
from .contract import Contract, contract_of
from .errors import check, diagnostics
from .tensors import Packed, TensorView, describe_as, unpack

MEANINGS = {"bytes": 0, "storage": 1}


class View:
    """`contract`: what the viewed tensors hold to. `tensors`: those; page tables and lengths, whose values would be others, are not
    among them. Page id of part j of page p, for kv head h: (p · parts + j) · heads + h. `meaning`: "bytes": each element is the byte
    that it was; "storage": what is read through the view was written through it."""

    def __init__(self, handle: c_void_p, keep: Any, index: int) -> None:
        self._handle = handle
        weakref.finalize(self, native.library.hd_view_destroy, handle)
        array = POINTER(native.Tensor)()
        count = native.library.hd_view_tensors(handle, byref(array))
        self.tensors: dict[str, TensorView] = unpack(array, count, (self, keep), index)
        self.contract: Contract = Contract._from_handle(c_void_p(native.library.hd_view_contract(handle)), owner=self)
        self.meaning = next(m for m, n in MEANINGS.items() if n == native.library.hd_view_meaning(handle))
        parts, heads = c_int64(), c_int64()
        native.library.hd_view_pages(handle, byref(parts), byref(heads))
        self.parts, self.heads = parts.value, heads.value


def page_split(context: Context, contract: Any, tensors: Mapping[str, Any], page: int, meaning: str = "bytes") -> View:
    """Pages of `page` tokens where the contract has longer ones. Raises Declined ("view.…")."""
    ours, views, handle, why = contract_of(contract), _views(tensors), c_void_p(), diagnostics()
    packed = Packed(views)
    status = native.library.hd_view_page_split(context._handle, ours._handle, packed.array, packed.count, page, MEANINGS[meaning],
                                               byref(handle), why.handle)  # fmt: skip
    check(status, f"viewing {ours.name} in pages of {page}", why)
    return View(handle, views, context.index)


def collapse_heads(context: Context, contract: Any, tensors: Mapping[str, Any]) -> View:
    """Every (page, kv head) a page of its own with one head, every (query row, kv head) a sequence of its own."""
    ours, views, handle, why = contract_of(contract), _views(tensors), c_void_p(), diagnostics()
    packed = Packed(views)
    status = native.library.hd_view_collapse_heads(context._handle, ours._handle, packed.array, packed.count, byref(handle), why.handle)
    check(status, f"viewing {ours.name} head by head", why)
    return View(handle, views, context.index)


def _views(tensors: Mapping[str, Any]) -> dict[str, TensorView]:
    return {name: describe_as(name, what) for name, what in tensors.items() if what is not None}
