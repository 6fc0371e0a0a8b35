"""Errors: a status of the C library that isn't HD_OK, as an exception with the diagnostics that came with it."""
from __future__ import annotations

import threading
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import Sequence

from . import _native as native

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong and where. `code` is stable (docs/declines.md lists all); the wording of `message` isn't."""

    severity: str
    code: str
    field: str | None
    message: str
    found: str | None = None
    allowed: str | None = None
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line else ""
        return f"{place}{self.severity}: {self.message} [{self.code}]"


class HeddleError(Exception):
    """`code` and `field` are those of the first error among `diagnostics`; `code` is "" when there is none."""

    status: int = native.INTERNAL

    def __init__(self, what: str, diagnostics: Sequence[Diagnostic] = (), status: int | None = None) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        if status is not None:
            self.status = status
        first = next((d for d in self.diagnostics if d.severity == "error"), None)
        self.code: str = first.code if first else ""
        self.field: str | None = first.field if first else None
        self.found: str | None = first.found if first else None
        self.allowed: str | None = first.allowed if first else None
        said = "; ".join(map(str, self.diagnostics))
        super().__init__(f"{what}: {said}" if said else what)


class Declined(HeddleError):
    """An answer, no failure: the contract isn't served, a tensor doesn't fit, a source doesn't compile."""

    status = native.DECLINED


class Invalid(HeddleError, ValueError):
    status = native.INVALID


class OutOfMemory(HeddleError, MemoryError):
    status = native.OUT_OF_MEMORY


class FileError(HeddleError):
    status = native.IO


class Unavailable(HeddleError):
    """A library, compiler or device that isn't there; time that ran out."""

    status = native.UNAVAILABLE


class DeviceError(HeddleError):
    status = native.DEVICE


class InternalError(HeddleError):
    status = native.INTERNAL


_BY_STATUS = {c.status: c for c in (Declined, Invalid, OutOfMemory, FileError, Unavailable, DeviceError, InternalError)}


class DiagnosticsList:
    """hd_diagnostics: one for each thread, filled by each call anew."""

    def __init__(self) -> None:
        handle = c_void_p()
        if native.library.hd_diagnostics_create(byref(handle)) != native.OK:
            raise OutOfMemory("creating a list of diagnostics")
        self.handle = handle
        self._destroy = native.library.hd_diagnostics_destroy

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._destroy(self.handle)

    def read(self) -> list[Diagnostic]:
        return [self._get(i) for i in range(native.library.hd_diagnostics_count(self.handle))]

    def _get(self, index: int) -> Diagnostic:
        d = native.Diagnostic()
        native.library.hd_diagnostics_get(self.handle, index, byref(d))
        text = native.text
        return Diagnostic(SEVERITIES[d.severity], text(d.code) or "", text(d.field), text(d.message) or "", text(d.found),
                          text(d.allowed), d.line, d.column)  # fmt: skip


_of_thread = threading.local()


def diagnostics() -> DiagnosticsList:
    """This thread's list."""
    try:
        return _of_thread.list  # type: ignore[no-any-return]
    except AttributeError:
        _of_thread.list = DiagnosticsList()
        return _of_thread.list  # type: ignore[no-any-return]


def failure(status: int, what: str, said: Sequence[Diagnostic]) -> HeddleError:
    if not said:
        what = f"{what}: {native.text(native.library.hd_status_text(status))}"
    return _BY_STATUS.get(status, InternalError)(what, said, status)


def check(status: int, what: str, why: DiagnosticsList | None = None) -> None:
    """Raises what a call said when it didn't say HD_OK."""
    if status != native.OK:
        raise failure(status, what, why.read() if why else ())
