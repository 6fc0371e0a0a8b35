"""Numbers that a caller gives, judged where they come in: ctypes would name neither the argument nor what it takes."""
from __future__ import annotations

import operator
from typing import Any

# What an argument that is left out stands for.
_LEFT_OUT = {"logits_scale": "1/sqrt(head_dim.qk), or what the contract fixes", "splits": "heddle's choice",
             "longest": "what a row of the page table has room for"}  # fmt: skip


def _refused(name: str, value: Any, takes: str) -> TypeError:
    left_out = f"; left out, it is {_LEFT_OUT[name]}" if name in _LEFT_OUT else ""
    return TypeError(f"{name} is {value!r}: it takes {takes}{left_out}")


def number(name: str, value: Any) -> float:
    if value.__class__ is float:
        return value
    try:
        return float(value.__float__())
    except (AttributeError, TypeError, ValueError):
        raise _refused(name, value, "a number") from None


def whole(name: str, value: Any) -> int:
    try:
        index = operator.index(value)
    except TypeError:
        raise _refused(name, value, "a whole number") from None
    if index < 0:
        raise ValueError(f"{name} is {index}: it is 0 or more")
    return index


def of_launch(splits: Any, longest: Any, logits_scale: Any) -> tuple[int, int, float]:
    return whole("splits", splits), whole("longest", longest), number("logits_scale", logits_scale)
