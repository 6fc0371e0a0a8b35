"""Kernels: one operation of one contract, ready to launch on a context's device."""
from __future__ import annotations

import ctypes
import sys
import weakref
from ctypes import byref, c_int, c_int64, c_void_p
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from . import _native as native
from ._numbers import of_launch, whole
from ._plan import Plan, Plans
from ._staging import Staged
from .context import Buffer, Context, Stream
from .contract import Contract, contract_of, operation_number
from .errors import check, diagnostics, failure
from .tensors import BITS, Axes, Packed, TensorView, describe, describe_as, number_of

ROLES = ("none", "input", "output", "updated")
ProgressCall = Callable[[int, int, str], None]  # kernels done, their number, contract's name; from any thread


@dataclass(frozen=True)
class Sizes:
    """Of launches that may come: seqs, rows, kv_heads, longest (tokens) and listed of decode, tokens of write. splits 0: by policy."""

    seqs: int = 0
    rows: int = 0
    kv_heads: int = 0
    longest: int = 0
    splits: int = 0
    tokens: int = 0
    listed: int = 0


class Job(NamedTuple):
    contract: Any  # a Contract, a spec's text or the path of its file
    operation: str
    variant: str | None = None
    shape: Sizes | None = None


class TensorSpec(NamedTuple):
    role: str  # "input", "output", "updated"
    dtype: str
    shape: str  # text with names in it: "[seqs*rows, q_heads, 128]"


class Part(NamedTuple):
    symbol: str
    grid: tuple[int, int, int]
    threads: int
    lds_bytes: int
    launched: bool


class KernelInfo(NamedTuple):
    contract_name: str
    contract_key: str
    operation: str
    target: str
    variant: str
    code_key: str
    compiler: str
    origin: str  # "compiled", "cache", "embedded"
    descriptor: str  # JSON
    compile_seconds: float
    parts: int
    tile_tokens: int
    choice: str


class Scales:
    """K's and V's scale as far as they are plain numbers, which contracts with scale.source: argument take."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        numbers = {n: given[n] for n in native.SCALES if isinstance(given.get(n), Real)}
        self.pointers = {n: ctypes.pointer(ctypes.c_float(value)) for n, value in numbers.items()}


class Kernel:
    """Any number of threads may use one. Keep it while work that was launched runs, and while graphs hold launches of it."""

    def __init__(self, context: Context, contract: Contract, operation: str, handle: c_void_p) -> None:
        self.context, self.contract, self.operation, self._handle = context, contract, operation, handle
        weakref.finalize(self, native.library.hd_kernel_release, handle)
        self._sizes: dict[tuple[Any, ...], int] = {}  # workspace bytes that were asked for before
        self._tensors = {n: t for n in native.TENSORS for t in [self._tensor(n)] if t is not None}
        self._written = {n for n, t in self._tensors.items() if t.role != "input"}
        self._group, self._page = contract.number("heads_per_kv"), contract.number("page")
        self._head_lists = "per: kv_head" in contract.text
        self._plans = Plans()

    def _tensor(self, name: str) -> TensorSpec | None:
        role, dtype, shape = c_int(), c_int(), ctypes.create_string_buffer(256)
        check(native.library.hd_kernel_tensor(self._handle, native.TENSOR_NUMBER[name], byref(role), byref(dtype), shape, 256), f"asking about {name}")
        if role.value == native.ROLE_NONE:
            return None
        return TensorSpec(ROLES[role.value], native.DTYPES[dtype.value], native.text(shape.value) or "")

    @property
    def tensors(self) -> Mapping[str, TensorSpec]:
        """What it takes, by name."""
        return dict(self._tensors)

    @property
    def info(self) -> KernelInfo:
        i = native.KernelInfo()
        check(native.library.hd_kernel_get_info(self._handle, byref(i)), "asking about a kernel")
        return KernelInfo._make(native.text(value) if isinstance(value, bytes) else value for value in (getattr(i, f) for f in KernelInfo._fields))

    def ready(self) -> None:
        """Prepares a lazy kernel now."""
        why = diagnostics()
        check(native.library.hd_kernel_ready(self._handle, why.handle), f"preparing {self.contract.name}", why)

    # Queries

    def splits(self, sizes: Sizes) -> int:
        out = c_int64()
        check(native.library.hd_kernel_splits(self._handle, byref(_sizes(sizes)), byref(out)), "asking for the split count")
        return out.value

    def workspace_bytes(self, sizes: Sizes) -> int:
        """Enough for every launch whose sizes are at most these."""
        out = c_int64()
        check(native.library.hd_kernel_workspace(self._handle, byref(_sizes(sizes)), byref(out)), "asking for the workspace")
        return out.value

    def part(self, index: int, sizes: Sizes) -> Part:
        p = native.Part()
        check(native.library.hd_kernel_part(self._handle, index, byref(_sizes(sizes)), byref(p)), f"asking about part {index}")
        return Part(native.text(p.symbol) or "", tuple(p.grid), p.threads, p.lds_bytes, bool(p.launched))

    def sizes_of(self, views: Mapping[str, TensorView], splits: int = 0, longest: int = 0) -> Sizes:
        """Of a launch with these tensors."""
        if self.operation == "write":
            return Sizes(tokens=views["k"].shape[0])
        rows_in_all, heads = views["q"].shape[:2]
        lists = views.get("block_list") or views.get("token_list")
        listed = lists.shape[-1] if lists else 0
        heads = max(heads // self._group, 1)
        seqs = _sequences(views, heads if self._head_lists else 1, rows_in_all)
        if longest == 0:
            longest = _room(views, self._page)
        return Sizes(seqs, max(rows_in_all // max(seqs, 1), 1), heads, longest, splits, 0, listed)

    def workspace_needed(self, views: Mapping[str, TensorView], splits: int = 0, longest: int = 0) -> int:
        """Bytes for a launch with these tensors."""
        if self.operation == "write":
            return 0
        sizes = self.sizes_of(views, splits, longest)
        key = (sizes, splits)
        if key not in self._sizes:
            self._sizes[key] = self.workspace_bytes(replace(sizes, splits=splits or self.splits(sizes)))
        return self._sizes[key]

    # Launching

    def views(self, tensors: Mapping[str, Any]) -> dict[str, TensorView]:
        """The tensors as this kernel takes them; storage gets the contract's dtype. Raises for what can't lie on the device."""
        return {name: self._view(name, what) for name, what in tensors.items() if what is not None}

    def _view(self, name: str, what: Any) -> TensorView:
        number_of(name)
        view = describe_as(name, what)
        wanted = self._tensors.get(name)
        if view.dtype in BITS and wanted is not None:
            view = describe_as(name, view, wanted.dtype)
        if not self.context.info.emulated and view.on_host:
            raise TypeError(f"{name} lies in the host's memory, the kernel on {self.context.info.device}")
        if not view.on_host and view.index != self.context.index:
            raise TypeError(f"{name} lies on device {view.index}, the kernel on {self.context.info.device}")
        return view

    def launch(self, tensors: Mapping[str, Any] | None = None, /, *, stream: Any = None, workspace: Any = None, splits: int = 0,
               longest: int = 0, logits_scale: float = 0.0, lists_settled: bool = False, axes: Mapping[str, Axes] | None = None,
               **named: Any) -> None:  # fmt: skip
        """Launches it on tensors by name, in a mapping or as keywords: launch(q=q, k_cache=…, out=out).

        stream: heddle's, torch's, cupy's, or a number; None: torch's current one where a tensor is torch's, else the one that a
        tensor's array interface names, else the default stream. workspace: a tensor; None: the context's own of that stream.
        splits, longest: of decode, 0: by policy, for the capacity of the page table. k_scale, v_scale: plain numbers where the
        contract's scale.source is argument. lists_settled: the kernel just before this one on the stream writes no page table and
        no lengths, so they may be read before it has ended.
        """
        splits, longest, logits_scale = of_launch(splits, longest, logits_scale)
        scales, given = _split({**(tensors or {}), **named})
        plan = self._plan(given, splits, longest) if axes is None else None
        if plan is not None:
            return self._launch_plan(plan, given, scales, stream, workspace, logits_scale, lists_settled)
        views = self.views(given)
        number = stream_number(stream, views)
        staged = Staged(self.context, views, self._written) if self.context.info.emulated else None
        if staged and number in self.context._capturing:
            raise ValueError("under capture an emulated device takes tensors in its own memory only: Context.zeros, Context.array")
        packed = Packed(staged.views if staged else views, axes)
        arguments, keep = self._arguments(packed, views, scales, workspace, number, splits, longest, logits_scale, lists_settled)
        why = diagnostics()
        check(native.library.hd_launch(self._handle, byref(arguments), number, why.handle), f"launching {self}", why)
        if staged:
            staged.finish(number)
        del keep

    def _plan(self, tensors: Mapping[str, Any], splits: int, longest: int) -> Plan | None:
        """For tensors that are all PyTorch's, on a device."""

        def make() -> tuple[Mapping[str, TensorView], int]:
            views = self.views(tensors)
            return views, self.workspace_needed(views, splits, longest) if "q" in views else 0

        return None if self.context.info.emulated else self._plans.find(tensors, splits, longest, make)

    def _launch_plan(self, plan: Plan, tensors: Mapping[str, Any], scales: Scales, stream: Any, workspace: Any,
                     logits_scale: float, lists_settled: bool) -> None:  # fmt: skip
        number = stream_number(stream, {}) if stream is not None else current_stream(plan.device)
        if workspace is None and plan.needed:
            workspace = self.context.workspace(plan.needed, number)
        held = describe(workspace) if workspace is not None else None
        arguments, why = plan.arguments, diagnostics()
        plan.put(tensors)
        arguments.logits_scale, arguments.lists_settled = logits_scale, lists_settled
        arguments.k_scale, arguments.v_scale = scales.pointers.get("k_scale"), scales.pointers.get("v_scale")
        arguments.workspace, arguments.workspace_bytes = (held.address, held.span) if held else (0, 0)
        status = native.library.hd_launch(self._handle, byref(arguments), number, why.handle)
        if status != native.OK:
            check(status, f"launching {self}", why)

    def _arguments(self, packed: Packed, views: Mapping[str, TensorView], scales: Scales, workspace: Any, stream: int, splits: int,
                   longest: int, logits_scale: float, lists_settled: bool) -> tuple[native.Arguments, Any]:  # fmt: skip
        if workspace is None:
            needed = self.workspace_needed(views, splits, longest) if "q" in views else 0
            workspace = self.context.workspace(needed, stream) if needed else None
        held = describe(workspace) if workspace is not None else None
        room = held.span if held else 0
        if held is not None and self.context.info.emulated and not isinstance(workspace, Buffer) and not self.context.owns(held):
            workspace = self.context.workspace(room, stream)  # scratch: nothing to copy; not the room that it may have
            held = describe(workspace)
        return native.Arguments(tensors=packed.array, tensor_count=packed.count, workspace=held.address if held else 0,
                                workspace_bytes=room, splits=splits, longest=longest,
                                logits_scale=logits_scale, lists_settled=lists_settled, **scales.pointers), (packed, workspace)  # fmt: skip

    def bind(self, tensors: Mapping[str, Any] | None = None, /, *, workspace: Any = None, splits: int = 0, longest: int = 0,
             logits_scale: float = 0.0, lists_settled: bool = False, axes: Mapping[str, Axes] | None = None, **named: Any) -> Binding:  # fmt: skip
        """Arguments bound once, for launches that differ in addresses only. Without `workspace` the binding has one of its own."""
        splits, longest, logits_scale = of_launch(splits, longest, logits_scale)
        scales, given = _split({**(tensors or {}), **named})
        views = self.views(given)
        if self.context.info.emulated and any(v.on_host and not self.context.owns(v) for v in views.values()):
            raise ValueError("bound tensors of an emulated device lie in its own memory: Context.zeros, Context.array")
        if workspace is None:
            needed = self.workspace_needed(views, splits, longest)
            workspace = Buffer(self.context, (needed,), "int8") if needed else None
        arguments, keep = self._arguments(Packed(views, axes), views, scales, workspace, 0, splits, longest, logits_scale, lists_settled)
        handle, why = c_void_p(), diagnostics()
        check(native.library.hd_bind(self._handle, byref(arguments), byref(handle), why.handle), f"binding {self}", why)
        return Binding(self, handle, keep)

    def __repr__(self) -> str:
        return f"<heddle.Kernel {self.contract.name}/{self.operation} on {self.context.info.device}>"


def _split(given: Mapping[str, Any]) -> tuple[Scales, dict[str, Any]]:
    """Scales that are numbers, and the tensors."""
    scales = Scales(given)
    return scales, {name: what for name, what in given.items() if what is not None and name not in scales.pointers}


def _sequences(views: Mapping[str, TensorView], lists_each: int, rows: int) -> int:
    """lists_each: ragged lists that a sequence has."""
    if "page_table" in views and "row_sequences" not in views:
        return views["page_table"].shape[0]
    if "last_page_len" in views:
        return views["last_page_len"].shape[0] // lists_each
    return views["lengths"].shape[0] if "lengths" in views else rows


def _room(views: Mapping[str, TensorView], page: int) -> int:
    """Tokens that a row of the page table or list has room for."""
    for name, each in (("page_table", page), ("kv_indices", page), ("token_list", 1)):
        if name in views:
            return min(views[name].shape[-1] * each, 2**31 - 1)
    return 0


class Binding:
    """Of one thread at a time."""

    def __init__(self, kernel: Kernel, handle: c_void_p, keep: Any) -> None:
        self.kernel, self._handle, self._keep = kernel, handle, [keep]
        self._replaced: dict[str, Any] = {}
        weakref.finalize(self, native.library.hd_binding_destroy, handle)

    def set(self, name: str, what: Any) -> None:
        """Another tensor of the same dtype, shape and strides."""
        view = self.kernel._view(name, what)
        check(native.library.hd_binding_set_address(self._handle, native.TENSOR_NUMBER[name], view.address), f"binding {name}")
        self._replaced[name] = view

    def set_scales(self, k_scale: float | None = None, v_scale: float | None = None) -> None:
        """Other scales of K and V, where the contract takes them as numbers. None: that one stays."""
        scales = Scales({"k_scale": k_scale, "v_scale": v_scale})
        check(native.library.hd_binding_set_scales(self._handle, *(scales.pointers.get(n) for n in native.SCALES)), "binding scales")

    def set_workspace(self, what: Any) -> None:
        view = describe(what)
        check(native.library.hd_binding_set_workspace(self._handle, view.address), "binding a workspace")
        self._replaced["workspace"] = view

    def launch(self, stream: Any = None) -> None:
        """stream: as Kernel.launch has it, but None is the default stream."""
        why = diagnostics()
        check(native.library.hd_binding_launch(self._handle, stream_number(stream, {}), why.handle), f"launching {self.kernel}", why)


def current_stream(device: Any) -> int:
    """PyTorch's, of its device."""
    return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)


def stream_number(stream: Any, views: Mapping[str, TensorView]) -> int:
    if stream is None:
        torch = sys.modules.get("torch")
        for view in views.values():
            if torch is not None and isinstance(view.owner, torch.Tensor) and not view.on_host:
                return current_stream(view.owner.device)
        return next((v.stream for v in views.values() if v.stream is not None), 0)
    if isinstance(stream, Stream):
        return stream.handle
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    return int(stream)


def _sizes(sizes: Sizes) -> native.Sizes:
    if not isinstance(sizes, Sizes):
        raise TypeError(f"a shape is heddle.Sizes(seqs=…, kv_heads=…, longest=…), not {sizes!r}")
    return native.Sizes(**{name: whole(name, value) for name, value in asdict(sizes).items()})


def _jobs(jobs: Sequence[Any]) -> tuple[Any, list[Job], Any]:
    """The C library's jobs, ours with contracts, and what they point to."""
    ours = [Job(*job) for job in jobs]
    ours = [job._replace(contract=contract_of(job.contract)) for job in ours]
    array, keep = (native.Job * max(len(ours), 1))(), []
    for slot, job in zip(array, ours):
        slot.size = ctypes.sizeof(native.Job)
        slot.contract = job.contract._handle
        slot.operation = operation_number(job.operation)
        slot.variant = native.encoded(job.variant)
        if job.shape is not None:
            shape = _sizes(job.shape)
            keep.append(shape)
            slot.shape = ctypes.pointer(shape)
    return array, ours, keep


def prepare(context: Context, contract: Any, operation: str, variant: str | None, shape: Sizes | None, lazily: bool) -> Kernel:
    array, ours, keep = _jobs([Job(contract, operation, variant, shape)])
    handle, why = c_void_p(), diagnostics()
    function = native.library.hd_prepare_lazily if lazily else native.library.hd_prepare
    check(function(context._handle, array, byref(handle), why.handle), f"preparing {ours[0].contract.name}/{operation}", why)
    del keep
    return Kernel(context, ours[0].contract, operation, handle)


def _progress(call: ProgressCall | None) -> Any:
    if call is None:
        return native.ProgressFunction()
    return native.ProgressFunction(lambda _, p: call(p.contents.done, p.contents.count, native.text(p.contents.name) or ""))


def prepare_many(context: Context, jobs: list[Any], progress: ProgressCall | None) -> list[Kernel]:
    array, ours, keep = _jobs(jobs)
    handles, statuses, why = (c_void_p * max(len(ours), 1))(), (c_int * max(len(ours), 1))(), diagnostics()
    status = native.library.hd_prepare_many(context._handle, array, len(ours), _progress(progress), None, handles, statuses, why.handle)
    said = why.read()
    kernels = [Kernel(context, j.contract, j.operation, c_void_p(h)) for j, h in zip(ours, handles) if h]
    if status != native.OK:
        raise failure(status, f"preparing {len(ours)} kernels", said)
    del keep
    return kernels


class Future:
    """Kernels that are prepared in the background. Of one thread at a time; done() is for any."""

    def __init__(self, context: Context, jobs: list[Any], progress: ProgressCall | None) -> None:
        array, self._jobs, keep = _jobs(jobs)
        self.context, handle, why, callback = context, c_void_p(), diagnostics(), _progress(progress)
        check(native.library.hd_prepare_async(context._handle, array, len(self._jobs), callback, None, byref(handle), why.handle),
              "starting to prepare", why)  # fmt: skip
        self._handle = handle
        weakref.finalize(self, _destroy_future, handle, callback)
        del keep

    def done(self) -> bool:
        return bool(native.library.hd_future_done(self._handle))

    def wait(self, seconds: float = -1) -> bool:
        """At most so long; less than 0: as long as it takes. Whether all are finished."""
        status = native.library.hd_future_wait(self._handle, seconds)
        if status not in (native.OK, native.UNAVAILABLE):
            check(status, "waiting for kernels")
        return bool(status == native.OK)

    def take(self, index: int = 0) -> Kernel:
        """Waits, and gives the kernel of a job away, once; raises what went wrong with it."""
        handle, why = c_void_p(), diagnostics()
        job = self._jobs[index]
        status = native.library.hd_future_take(self._handle, index, byref(handle), why.handle)
        check(status, f"preparing {job.contract.name}/{job.operation}", why)
        return Kernel(self.context, job.contract, job.operation, handle)


def _destroy_future(handle: c_void_p, callback: Any) -> None:
    native.library.hd_future_destroy(handle)  # waits: the callback lives until here
    del callback


