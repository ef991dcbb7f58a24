"""`Meter`: what calls of a kernel cost, each from the same state."""

from __future__ import annotations

from typing import Any, Literal

from covp.base.arguments import demand
from covp.errors import UsageError
from covp.laboratory.inside import copies
from covp.laboratory.kernel import Kernel
from covp.runtime.linking import RAM_SECTIONS

Figure = Literal["instructions", "cycles"]


class Meter:
    """A meter that calls a kernel with copies of arguments and counts.

    Before each call the variables of the kernel's module are as they were at first, and the core's
    caches are empty. Peripherals and other modules are left alone.

    Args:
        kernel: to be called.
        of: the figure, "instructions" or "cycles".

    Attributes:
        kernel: another one for the same function, so that the user's keeps its costs.
        calls: how many there were.

    Raises:
        UsageError: an unknown figure.
    """

    def __init__(self, kernel: Kernel, of: str) -> None:
        demand("kernel", kernel, Kernel, "a covp.testing.Kernel")
        if of not in ("instructions", "cycles"):
            raise UsageError(f'of={of!r}: "instructions" or "cycles"')
        self.kernel, self.of = Kernel(kernel.function), of
        self.calls = 0
        session, image = kernel.session, kernel.function.module.image
        blocks = [image.blocks[name] for name in RAM_SECTIONS if name in image.blocks]
        self._variables = [
            (block.address, session.read(block.address, block.size))
            for block in blocks
            if block.size
        ]

    def __call__(self, arguments: tuple[Any, ...]) -> int:
        """Call the kernel and return the figure of the call.

        Raises:
            UsageError: the device does not give the figure.
            DeviceFault: the kernel faulted.
        """
        self.prepare()
        self.kernel(*copies(arguments))
        self.calls += 1
        count = getattr(self.kernel.latest, self.of)
        if count is None:
            raise UsageError(f"this device does not count {self.of}")
        return int(count)

    def prepare(self) -> None:
        """Go back to the state before the first call."""
        session = self.kernel.session
        for address, content in self._variables:
            session.write(address, content)
        emulator = session.device.abilities.emulator
        if emulator is not None:
            emulator.core.counter.clear_caches()
