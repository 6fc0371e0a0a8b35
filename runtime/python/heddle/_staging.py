"""Emulated devices reach their own memory only. Tensors that lie elsewhere in the host's memory are copied there for a launch, and
what it writes is copied back. Tensors that overlap (K and V cut out of one cache) are copied as the one range that they are."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from . import _native as native
from .context import Buffer, Context
from .errors import check, diagnostics
from .tensors import TensorView


class Staged:
    """`views` with addresses in the device's memory; finish() copies back."""

    def __init__(self, context: Context, views: Mapping[str, TensorView], written: set[str]) -> None:
        for name, view in views.items():
            if min(view.strides or (0,)) < 0:
                raise ValueError(f"{name} has a negative stride")
        foreign = {n: v for n, v in views.items() if v.on_host and v.span > 0 and not context.owns(v)}
        self.context, self.views = context, dict(views)
        self._ranges: list[tuple[Buffer, int, int, bool]] = []  # where, host's address, bytes, whether it is written
        for names in _overlapping(foreign):
            start = min(foreign[n].address for n in names)
            size = max(foreign[n].address + foreign[n].span for n in names) - start
            buffer, why = Buffer(context, (size,), "int8", counted=False), diagnostics()
            check(native.library.hd_memory_copy_in(context._handle, None, buffer.address, start, size, why.handle), "copying a tensor", why)
            self._ranges.append((buffer, start, size, bool(written & set(names))))
            for name in names:
                self.views[name] = replace(foreign[name], address=buffer.address + foreign[name].address - start)

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def finish(self, stream: int) -> None:
        why = diagnostics()
        for buffer, start, size, is_written in self._ranges:
            if is_written:
                check(native.library.hd_memory_copy_out(self.context._handle, stream, start, buffer.address, size, why.handle), "copying back", why)


def _overlapping(views: Mapping[str, TensorView]) -> list[list[str]]:
    groups: list[list[str]] = []
    end: Any = None
    for name, view in sorted(views.items(), key=lambda item: item[1].address):
        if end is not None and view.address < end:
            groups[-1].append(name)
        else:
            groups.append([name])
            end = 0
        end = max(end, view.address + view.span)
    return groups
