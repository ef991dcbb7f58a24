"""`Observer`: gets a board's bus accesses and the times that pass without an instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class RegisterAccess(NamedTuple):
    """A load or store of a core that a peripheral has answered.

    Attributes:
        master: the core's name as a bus master.
        start: the clock's cycle before it.
        peripheral: the model, a `covp.hardware.peripheral.Peripheral`.
        offset: of the register, in bytes from the base address.
        size: bytes.
        value: loaded or stored.
        is_store: stored, else loaded.
    """

    master: str
    start: int
    peripheral: Any
    offset: int
    size: int
    value: int
    is_store: bool


class Observer:
    """An observer of a board at work. Derive from it, override methods, and register it::

        with device.bus.observe(observer), device.clock.observe(observer):
            device.execute(entry, stop)

    A master is named as its peripheral is; a core's own memory accesses are not reported.
    """

    def load(self, master: str, address: int, size: int) -> None:
        """Note that a ``master`` loads ``size`` bytes at ``address``, or looks at them in place."""

    def store(self, master: str, address: int, data: NDArray[np.uint8]) -> None:
        """Note that a master is about to store ``data`` to memory from ``address`` on."""

    def moved(self, master: str, place: str, is_write: bool, size: int) -> None:
        """Note that hardware moved bytes: what a model loads and stores, or says its unit does.

        Args:
            master: its name.
            place: a memory or peripheral; `covp.hardware.traffic.UNKNOWN`.
            is_write: stored, else loaded.
            size: bytes.
        """

    def accessed(self, access: RegisterAccess) -> None:
        """Note that a core has accessed a register."""

    def stalled(self, cycle: int, cycles: int) -> None:
        """Note that no instruction retires for ``cycles`` from ``cycle`` on."""

    def restarted(self) -> None:
        """Note that phases and functions are set: counts begin at zero."""
