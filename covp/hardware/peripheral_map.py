"""`PeripheralMap`: peripherals and their bus addresses."""

from __future__ import annotations

from collections.abc import Sequence

from covp.base.plugins import call_hook
from covp.errors import DeviceError, DeviceFault, FaultKind, PlatformError
from covp.hardware.bus import Bus, Memory
from covp.hardware.clock import Clock
from covp.hardware.interrupt import InterruptLine
from covp.hardware.peripheral import DmaRequests, Peripheral
from covp.hardware.shared_port import SharedPort

PAGE = 0x1000


class PeripheralMap:
    """The peripherals that a bus, or one core alone, can address.

    Args:
        memories: which they must not overlap.
        bus, clock: given to each model.
        port: of the memory, where accelerators share one.

    Attributes:
        peripherals: name to (base address, model).
    """

    def __init__(
        self,
        memories: Sequence[Memory],
        bus: Bus,
        clock: Clock,
        port: SharedPort | None = None,
    ) -> None:
        self.peripherals: dict[str, tuple[int, Peripheral]] = {}
        self._memories, self._bus, self._clock, self._port = memories, bus, clock, port
        self._pages: dict[int, list[tuple[int, Peripheral]]] = {}
        self._requests = DmaRequests(lambda: [model for _, model in self.peripherals.values()])

    def check_free(self, name: str, base: int, size: int) -> None:
        """Raise PlatformError if the name, or some of ``size`` bytes from ``base``, are taken."""
        end = base + size
        if name in self.peripherals:
            raise PlatformError(f"peripheral {name}: the name is used twice")
        for other, (start, model) in self.peripherals.items():
            if base < start + model.size and start < end:
                raise PlatformError(f"peripheral {name} at 0x{base:08x} overlaps {other}")
        for memory in self._memories:
            if base < memory.region.end and memory.region.start < end:
                raise PlatformError(
                    f"peripheral {name} at 0x{base:08x} overlaps memory {memory.region.name}"
                )

    def add(self, peripheral: Peripheral, base: int, name: str, line: InterruptLine) -> None:
        """Put a peripheral on the bus at ``base``, its interrupt request on ``line``.

        Raises:
            PlatformError: its addresses or name are taken.
            AcceleratorError: the model raised something.
        """
        self.check_free(name, base, peripheral.size)
        self.peripherals[name] = (base, peripheral)
        for page in pages(base, peripheral.size):
            self._pages.setdefault(page, []).append((base, peripheral))
        peripheral.interrupt = line
        peripheral.requests = self._requests
        peripheral.port = self._port
        own_bus = self._bus.for_master(name, True, self.find, sees_memory=True)
        call_hook(f"peripheral {name}", "attach", peripheral.attach, name, own_bus, self._clock)

    def remove(self, name: str) -> tuple[int, Peripheral]:
        """Take a peripheral off the bus; return its base address and the model."""
        base, peripheral = self.peripherals.pop(name)
        for page in pages(base, peripheral.size):
            self._pages[page].remove((base, peripheral))
            if not self._pages[page]:
                del self._pages[page]
        return base, peripheral

    def find(self, address: int) -> tuple[int, Peripheral] | None:
        """Return base address and model of the peripheral at an address, or None without one."""
        for base, peripheral in self.on_page(address & -PAGE):
            if base <= address < base + peripheral.size:
                return base, peripheral
        return None

    def on_page(self, page: int) -> Sequence[tuple[int, Peripheral]]:
        """Return base address and model of each peripheral in the page that starts at ``page``."""
        return self._pages.get(page, ())

    def reset(self) -> None:
        """Put all peripherals into their reset state."""
        for _, peripheral in self.peripherals.values():
            peripheral.reset()

    def save_state(self) -> dict[str, object]:
        """Return the state of every model and its interrupt line, by name."""
        return {
            name: (peripheral.save_state(), peripheral.interrupt.level)
            for name, (_, peripheral) in self.peripherals.items()
        }

    def check_state(self, state: dict[str, object]) -> None:
        """Raise DeviceError if other peripherals were attached when the state was saved."""
        if state.keys() != self.peripherals.keys():
            raise DeviceError(
                f"the state was saved with the peripherals {', '.join(state) or 'none'}, now "
                f"there are: {', '.join(self.peripherals) or 'none'}"
            )

    def load_state(self, state: dict[str, object]) -> None:
        """Go back to a saved state that fits; interrupt controllers are restored apart."""
        for name, (_, peripheral) in self.peripherals.items():
            saved = state[name]
            assert isinstance(saved, tuple)
            own, peripheral.interrupt.level = saved
            peripheral.load_state(own)


def pages(base: int, size: int) -> range:
    """Return the first address of each page that ``size`` bytes from ``base`` touch."""
    return range(base & -PAGE, base + size, PAGE)


def nothing_at(is_store: bool, address: int, size: int) -> DeviceFault:
    """Return the fault of an access of ``size`` bytes at ``address`` where no peripheral is.

    ``is_store``: the access is a store, else a load.
    """
    kind: FaultKind = "unmapped write" if is_store else "unmapped read"
    return DeviceFault(kind, address=address, size=size, detail="no peripheral there")
