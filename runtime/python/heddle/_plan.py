"""Launches of PyTorch's tensors on a device, again and again. The layers of a model launch a kernel with tensors that differ in their
addresses alone, so what describing and packing them comes to is kept by what they are like, and a launch only puts in the addresses."""
from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Mapping

from . import _native as native
from .tensors import Packed, TensorView

MOST = 64  # plans of a kernel and thread; then all are made anew


class Plan:
    """Of one thread: a launch changes it. Holds no tensor."""

    __slots__ = ("_slots", "_numbers", "arguments", "needed", "device")

    def __init__(self, views: Mapping[str, TensorView], needed: int, splits: int, longest: int, device: Any) -> None:
        packed = Packed(views)
        self._slots, self._numbers = [packed.array[i] for i in range(packed.count)], packed.numbers
        self.arguments = native.Arguments(tensors=packed.array, tensor_count=packed.count, splits=splits, longest=longest)
        self.needed, self.device = needed, device

    def put(self, tensors: Mapping[str, Any]) -> None:
        for slot, tensor in zip(self._slots, tensors.values()):
            slot.address = tensor.data_ptr()


class Plans(threading.local):
    """A kernel's."""

    def __init__(self) -> None:
        self._by_likeness: dict[Any, Plan] = {}

    def find(self, tensors: Mapping[str, Any], splits: int, longest: int, make: Callable[[], tuple[Mapping[str, TensorView], int]]) -> Plan | None:
        """None where not all are PyTorch's, on a device. make: their descriptions, and the bytes of workspace."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        likeness: list[Any] = [splits, longest]
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
                return None
            likeness += (name, tensor.dtype, tensor.shape, tensor.stride(), tensor.device)
        key = tuple(likeness)
        plan = self._by_likeness.get(key)
        if plan is None and tensors:
            if len(self._by_likeness) == MOST:
                self._by_likeness.clear()
            views, needed = make()
            plan = self._by_likeness[key] = Plan(views, needed, splits, longest, next(iter(tensors.values())).device)
        return plan
