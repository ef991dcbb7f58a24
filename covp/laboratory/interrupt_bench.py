"""`InterruptBench`: a kernel that is called again and again from one state, with an interrupt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from covp.device.abilities import LONGEST_BLOCK
from covp.errors import DeviceFault, KernelError, UsageError
from covp.laboratory.aftermath import Aftermath
from covp.laboratory.calling_convention import check_kept, kept_registers
from covp.laboratory.inside import Span, copies, emulator_of, inside
from covp.laboratory.kernel import Kernel

if TYPE_CHECKING:
    from covp.laboratory.handlers import Handler

LIMIT = 1_000_000
"""Instructions after which a call counts as one that does not end."""
_ENDLESS = ("timeout", "endless poll", "endless sleep")
_TURNS = 3
"""So often the core's registers have to repeat themselves in a loop that nothing ends."""
_STEPS = 20_000
"""Instructions in which such a loop is looked for."""


@dataclass(frozen=True)
class InterruptedCall(Aftermath):
    """A call with one interrupt.

    Attributes:
        boundary: the instructions of the call before the interrupt was requested: 0: it came
            before the first one.
        taken: those before it was taken: more where the kernel kept interrupts out; None: not
            before the kernel returned.
    """

    boundary: int
    taken: int | None


class InterruptBench:
    """A kernel and its handler, called again and again from the same state.

    Args:
        kernel: on a virtual device.
        arguments: of each call.
        handler: of the interrupt.
        variables: names of those to read after each call; None: all of the kernel's module.
        limit: instructions after which a call does not end.
    """

    def __init__(
        self,
        kernel: Kernel,
        arguments: Sequence[Any],
        handler: Handler,
        variables: Iterable[str] | None,
        limit: int,
    ) -> None:
        self.kernel = Kernel(kernel.function)  # the user's keeps its costs
        self.device = emulator_of(kernel)
        self.handler = handler
        self._arguments, self._limit = tuple(arguments), limit
        self._variables = None if variables is None else list(variables)
        self._instructions = 0
        self._longest = LONGEST_BLOCK
        self._snapshot = kernel.session.snapshot()

    def close(self) -> None:
        """Go back to the state before the first call."""
        self.kernel.session.restore(self._snapshot)

    def call(self, body: Callable[[Span], None]) -> Aftermath:
        """Call the kernel in the first state; ``body`` executes it.

        Raises:
            KernelError: it returns with interrupts masked, or does not keep a register.
        """
        self.kernel.session.restore(self._snapshot)
        given = copies(self._arguments)

        def with_masks(span: Span) -> None:
            self.handler.install()
            masks, kept = self.handler.masks(), kept_registers(self.device)
            body(span)
            check_kept(self.kernel, kept, self.device)
            self._check_masks(masks)

        with inside(self.kernel, with_masks, self._limit):
            result = self.kernel(*given)
        return Aftermath.of(self.kernel, result, given, self._variables)

    def _check_masks(self, before: dict[str, int]) -> None:
        for name, value in self.handler.masks().items():
            if value != before[name]:
                raise KernelError(
                    f"{self.kernel.name} returns with interrupts masked: {name} is {value}, "
                    f"it was {before[name]} when the function was called"
                )

    def alone(self) -> Aftermath:
        """Call the kernel without an interrupt."""
        return self.call(self._count)

    def _count(self, span: Span) -> None:
        self._instructions = span.finish(span.start, self._limit).instructions or 0

    def length(self) -> int | None:
        """Count instructions of the call without an interrupt; None: it does not end."""
        before = self.device.core.counter.trace()
        try:
            self.alone()
        except DeviceFault as fault:
            if fault.kind in _ENDLESS:
                return None
            raise
        finally:
            ran = self.device.core.counter.trace().since(before).blocks
            self._longest = max((b.instructions for b in ran if b.count), default=LONGEST_BLOCK)
        return self._instructions

    def waiting_from(self) -> int:
        """Count the instructions of an endless call up to where it only repeats itself."""
        seen: dict[tuple[int, ...], list[int]] = {}
        found: int | None = None

        def look(span: Span) -> None:
            nonlocal found
            pc = span.start
            for step in range(_STEPS):
                turns = seen.setdefault(tuple(self.device.core.registers().values()), [])
                turns.append(step)
                if len(turns) > _TURNS:
                    found = turns[1]
                    break
                try:
                    pc = span.step(pc)
                except DeviceFault as fault:
                    if fault.kind != "endless sleep":
                        raise
                    found = step + 1  # asleep
                    break
            raise _Found

        with suppress(_Found):
            self.call(look)
        if found is None:
            raise UsageError(
                f"{self.kernel.name} does not end without the interrupt: name the boundaries to "
                "try, at=range(...)"
            )
        return found

    def run(self, boundary: int) -> InterruptedCall:
        """Call the kernel with an interrupt at a ``boundary``.

        Raises:
            KernelError: it faults, or does not end.
        """
        taken: int | None = None
        first = 0

        def note_entry(line: int, pc: int) -> None:
            nonlocal taken
            if taken is None and self.handler.is_line(line):
                taken = self.device.core.instructions - first

        def body(span: Span) -> None:
            nonlocal first
            first = self.device.core.instructions
            pc = span.start
            if boundary:
                pc = self._awake(lambda: span.forward(boundary, self._longest))
            self.handler.request()
            span.finish(pc, self._limit)  # at the end it is taken after this

        self.handler.interrupts.on_entry = note_entry
        try:
            outcome = self.call(body)
        except (DeviceFault, KernelError) as error:
            where = self.where(boundary if taken is None else taken)
            what = "does not end" if getattr(error, "kind", "") in _ENDLESS else "fails"
            raise KernelError(f"{self.kernel.name} {what} with {where}: {error}") from error
        finally:
            self.handler.interrupts.on_entry = None
        return InterruptedCall(
            outcome.result, outcome.arguments, outcome.variables, boundary, taken
        )

    def _awake(self, run: Callable[[], int]) -> int:
        """Return the pc after a run, also where the core sleeps until the interrupt comes."""
        try:
            return run()
        except DeviceFault as fault:
            if fault.kind != "endless sleep":
                raise
            return self.device.core.read_register("pc") & ~1

    def where(self, boundary: int) -> str:
        """Describe a ``boundary`` in words."""
        places: list[int] = []

        def look(span: Span) -> None:
            pc = span.start
            if boundary:
                pc = span.forward(boundary - 1, self._longest)
                places.append(pc)
                pc = self._awake(lambda: span.step(pc))
            places.append(pc)
            raise _Found

        with suppress(_Found, DeviceFault):
            self.call(look)
        named = [_name_place(self.device.board.names.symbols.locate(place)) for place in places]
        at = f"an interrupt after {boundary} instruction{'s' if boundary != 1 else ''}"
        if boundary and len(named) == 2:
            return f"{at}, between {named[0]} and {named[1]}"
        return f"{at}, before {named[0]}" if named else at


class _Found(BaseException):
    """The exception that ends a call whose rest is not of interest."""


def _name_place(place: tuple[str | None, str | None]) -> str:
    symbol, source = place
    return f"{symbol or '?'} ({source})" if source else symbol or "?"
