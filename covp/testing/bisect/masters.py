"""`MasterLog`: what accelerators store by themselves, as bus masters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from covp.codegen.program import AcceleratorInstance
from covp.device.abilities import Emulator
from covp.hardware.bus import Bus

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
        """In bytes."""
        return len(self.data)


class MasterLog:
    """Tells of each store of a program's accelerators, while it is entered.

    Args:
        device: that they are attached to.
        accelerators: of the program; instructions in the core have no bus and are left out.
        told: called with each store before it is done.
    """

    def __init__(
        self,
        device: Emulator,
        accelerators: Sequence[AcceleratorInstance],
        told: Callable[[MasterStore], None],
    ) -> None:
        self._device = device
        there = device.board.peripherals
        self._units = [(a, there[a.name][1]) for a in accelerators if a.name in there]
        self._buses = [unit.bus for _, unit in self._units]
        self._told = told

    def __enter__(self) -> MasterLog:
        for accelerator, unit in self._units:
            place = _computed_at(accelerator, unit)
            unit.bus = _ToldBus(unit.bus, self._telling(accelerator, place))  # type: ignore[assignment]
        return self

    def _telling(
        self, accelerator: AcceleratorInstance, place: str
    ) -> Callable[[int, bytes], None]:
        def tell(address: int, data: bytes) -> None:
            core = self._device.core
            calls = self._device.board.call_stack(core.counter.block(), core.registers(), core)
            own = [call for call in calls if any(f"({file}:" in call for file in accelerator.files)]
            driver = next(iter([*own, *calls]), "")
            self._told(MasterStore(accelerator.name, place, driver, address, data))

        return tell

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for (_, unit), bus in zip(self._units, self._buses, strict=True):
            unit.bus = bus


class _ToldBus:
    """A bus that tells of stores; all else is the bus's."""

    def __init__(self, bus: Bus, tell: Callable[[int, bytes], None]) -> None:
        self._bus, self._tell = bus, tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    def write(self, address: int, data: Any) -> None:
        """As `Bus.write`."""
        self._tell(address, np.frombuffer(data, np.uint8).tobytes())
        self._bus.write(address, data)

    def store(self, address: int, size: int, value: int) -> None:
        """As `Bus.store`."""
        self._tell(address, value.to_bytes(size, "little"))
        self._bus.store(address, size, value)


def _computed_at(accelerator: AcceleratorInstance, unit: object) -> str:
    """Where the author of an accelerator says what its results are; else its class."""
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
