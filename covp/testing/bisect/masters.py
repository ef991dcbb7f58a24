"""`MasterLog`: what accelerators store by themselves, as bus masters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covp.codegen.program import AcceleratorInstance
from covp.device.abilities import Emulator
from covp.hardware.observer import Observer

_MODEL_METHODS = ("compute", "accept")
"""Where a model makes its result: `Accelerator.compute`, `JobUnit.accept`."""
_FRAMES = ("covp.accelerator.declared", "covp.hardware.declared_unit", "covp.hardware.job_unit")
"""What is the same for all accelerators, and not where one computes."""


class MasterStore(NamedTuple):
    """A store of an accelerator's model.

    Attributes:
        master: the accelerator's name in the program.
        place: "Class.method (file.py:12)": where the model computes its results.
        driver: "function (file.c:12)" of the code that ran meanwhile.
        address: of the first byte.
        data: that was stored.
    """

    master: str
    place: str
    driver: str
    address: int
    data: bytes

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.data)


class MasterLog(Observer):
    """Tells of each store of a program's accelerators, while it observes the bus.

    Args:
        device: that they are attached to.
        accelerators: of the program; instructions in the core have no bus and are left out.
        on_store: called with each store before it is done.
    """

    def __init__(
        self,
        device: Emulator,
        accelerators: Sequence[AcceleratorInstance],
        on_store: Callable[[MasterStore], None],
    ) -> None:
        self._device, self._on_store = device, on_store
        there = device.board.peripherals
        self._units = {a.name: (a, there[a.name][1]) for a in accelerators if a.name in there}

    def store(self, master: str, address: int, data: NDArray[np.uint8]) -> None:
        """See `Observer`."""
        if master not in self._units:
            return
        accelerator, unit = self._units[master]
        core = self._device.core
        calls = self._device.board.call_stack(core.counter.block(), core.registers(), core)
        own = [call for call in calls if any(f"({file}:" in call for file in accelerator.files)]
        driver, place = next(iter([*own, *calls]), ""), _computed_at(accelerator, unit)
        self._on_store(MasterStore(master, place, driver, address, data.tobytes()))


def _computed_at(accelerator: AcceleratorInstance, unit: object) -> str:
    """Return where an accelerator's author computes its results; else its class."""
    for owner in (type(accelerator.backend), type(unit)):
        for method in _MODEL_METHODS:
            found = getattr(owner, method, None)
            if found is not None and found.__module__ not in _FRAMES:
                return _source(found)
    return _source(type(unit))


def _source(what: Any) -> str:
    try:
        _, line = inspect.getsourcelines(what)
        file = Path(inspect.getsourcefile(what) or "").name
    except (OSError, TypeError):  # a notebook's, or one that is not Python
        return str(what.__qualname__)
    return f"{what.__qualname__} ({file}:{line})"
