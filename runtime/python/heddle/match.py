"""Which of several contracts serves what an engine has and wants (docs/match.md). Nothing is compiled or read."""
from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from . import _native as native
from ._numbers import number, whole
from .contract import Contract, contract_of, operation_number
from .errors import Declined, Diagnostic, DiagnosticsList, failure
from .kernel import Scales
from .tensors import Axes, Packed, describe_as


@dataclass(frozen=True)
class Request:
    """0 and None mean "as the tensors say", "none" or "no"; hd_match_request in heddle.h has each."""

    lse: bool = False
    sinks: bool = False
    causal: bool = False
    prefix: bool = False
    window: int = 0
    splits: int = 0
    longest: int = 0
    rows: int = 0
    query_heads: int = 0
    kv_heads: int = 0
    softcap: float = 0.0
    logits_scale: float = 0.0
    incumbent: str | None = None
    block: int = 0


@dataclass(frozen=True)
class Match:
    index: int | None  # of the contract that was chosen; None: none serves
    answers: tuple[tuple[Diagnostic, ...], ...]  # why not, for each candidate

    def chosen(self) -> int:
        """The index; raises Declined with every reason when there is none."""
        if self.index is None:
            raise Declined("no contract serves the request", [d for answer in self.answers for d in answer])
        return self.index


def _values(request: Request) -> dict[str, Any]:
    """Its fields as the C library takes them, but for the incumbent's name."""
    judges = {"bool": lambda _, value: bool(value), "int": whole, "float": number}
    return {n: judges[f.type](n, getattr(request, n)) for n, f in request.__dataclass_fields__.items() if f.type in judges}


def match(candidates: Sequence[Any], operation: str, tensors: Mapping[str, Any], target: str, request: Request = Request(), *,
          axes: Mapping[str, Axes] | None = None, better_than: Mapping[int, Sequence[str]] | None = None) -> Match:  # fmt: skip
    """`candidates`: contracts, texts or paths of specs. `tensors`: by name; of storage say the dtype, describe(t, dtype="bf16").
    k_scale and v_scale may be numbers there, which only contracts with scale.source: argument take.
    `better_than`: incumbents that the candidate of an index is known to be faster than."""
    contracts: list[Contract] = [contract_of(c) for c in candidates]
    count = len(contracts)
    scales = Scales(tensors)
    packed = Packed({n: describe_as(n, t) for n, t in tensors.items() if t is not None and n not in scales.pointers}, axes)
    r = native.MatchRequest(operation=operation_number(operation), tensors=packed.array, tensor_count=packed.count,
                            incumbent=native.encoded(request.incumbent), **scales.pointers,
                            **_values(request))  # fmt: skip
    array, keep = (native.Candidate * max(count, 1))(), []
    for i, contract in enumerate(contracts):
        known = (better_than or {}).get(i, ())
        names = (c_char_p * max(len(known), 1))(*(n.encode() for n in known))
        keep.append(names)
        array[i].contract, array[i].better_than, array[i].better_count = contract._handle, names, len(known)
    lists = [DiagnosticsList() for _ in contracts]
    handles = (c_void_p * max(count, 1))(*(one.handle for one in lists))
    chosen = c_size_t()
    status = native.library.hd_match(byref(r), array, count, target.encode(), byref(chosen), ctypes.cast(handles, ctypes.POINTER(c_void_p)))
    answers = tuple(tuple(one.read()) for one in lists)
    del keep
    if status not in (native.OK, native.DECLINED):
        raise failure(status, "matching", answers[0] if answers else ())
    return Match(chosen.value if status == native.OK else None, answers)
