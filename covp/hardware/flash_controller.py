"""`FlashController`: the base of models that program a flash memory."""

from __future__ import annotations

from covp.hardware.peripheral import Peripheral


class FlashController(Peripheral):
    """The programming interface of a flash memory: the device passes stores to the flash to it.

    A model sets `start` and writes `is_programming` and `store`; `Bus.program` changes the flash.

    Attributes:
        start: an address in the flash: the memory's region that holds it is the controller's.
    """

    start: int = 0

    @property
    def is_programming(self) -> bool:
        """True if it is unlocked and takes data: it then gets a debugger's stores, too."""
        raise NotImplementedError

    def store(self, address: int, size: int, value: int) -> None:
        """Store to the flash while it takes data.

        Args:
            address: in the flash.
            size: bytes: 1, 2, 4 or 8.
            value: of that many bytes.
        """
        raise NotImplementedError

    def refuse_store(self) -> None:
        """Handle a store of the core while it takes none, which is a fault of the program, too."""
