"""`answering`, `check_answers`: a peripheral that answers early, late or never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from covp.base.arguments import demand, demand_count
from covp.errors import DeviceFault, KernelError, UsageError
from covp.hardware.clock import ClockView, Event
from covp.hardware.observer import Observer, RegisterAccess
from covp.hardware.peripheral import Peripheral
from covp.laboratory.aftermath import Aftermath, find_failure
from covp.laboratory.inside import Span, copies, emulator_of, inside
from covp.laboratory.kernel import Kernel

After = int | Literal["never"]
_LIMIT = 1_000_000
_EACH, _MOST = 64, 20_000
_ENDLESS = ("timeout", "endless poll", "endless sleep")


class _AnswerClock(ClockView, Observer):
    """A clock for a peripheral that shifts the time of its answers.

    ``after`` cycles after they were planned, whatever the plan said; 0: as soon as the access that
    caused them is over.
    """

    def __init__(self, peripheral: Peripheral, after: After) -> None:
        super().__init__(peripheral.clock)
        self._peripheral, self._after = peripheral, after
        self._due: list[Event] = []
        self._outstanding = 0

    def at(self, cycle: int, fire: Callable[[], None]) -> Event:
        """Plan an answer, ``fire``; the ``cycle`` is ignored."""
        self._outstanding += 1

        def answer() -> None:
            self._outstanding -= 1
            fire()

        if self._after == "never":
            return Event(self.now, 0, answer)
        event = super().at(self.now + self._after, answer)
        if self._after == 0:
            self._due.append(event)
        return event

    def wait_until(self, cycle: int) -> int:
        """Return when to continue; 0, so that the core polls, while an answer is outstanding."""
        return 0 if self._outstanding else super().wait_until(cycle)

    def accessed(self, access: RegisterAccess) -> None:
        """Give the answers that are due at once, after an access."""
        while self._due and access.peripheral is self._peripheral:
            event = self._due.pop(0)
            if not event.cancelled:
                event.cancel()
                event.fire()


@contextmanager
def answering(peripheral: Peripheral, after: After) -> Iterator[None]:
    """Let a peripheral answer early, late or never in this context.

    ::

        for after in (0, 1, 1000, "never"):
            with answering(adc, after):
                assert read_adc(buffer) in (0, TIMEOUT)

    What the model plans for later with its clock (the end of a conversion, of a job, a byte that
    was sent) comes ``after`` cycles later instead. A model that lets the simulation skip the time
    of a poll, as those of accelerators do, is polled for real.

    Args:
        peripheral: a model on the bus of a virtual device, as in ``device.peripherals[name][1]``.
        after: cycles; 0: at once, before the core's next instruction; or "never".

    Raises:
        UsageError: the model is not attached to a device.
    """
    demand("peripheral", peripheral, Peripheral, "a peripheral's model")
    if after != "never":
        demand_count("after", after)
    if "clock" not in vars(peripheral):
        raise UsageError(f"{type(peripheral).__name__} is on no bus: attach it to the device first")
    original = peripheral.clock
    peripheral.clock = clock = _AnswerClock(peripheral, after)
    try:
        with peripheral.bus.observe(clock):
            yield
    finally:
        peripheral.clock = original


def check_answers(
    kernel: Kernel,
    arguments: Sequence[Any] = (),
    *,
    peripheral: str | Peripheral,
    expected: Any,
    errors: Iterable[Any] = (),
    after: Iterable[After] | None = None,
    limit: int = _LIMIT,
) -> int:
    """Check that a driver is right whenever its peripheral answers.

    Args:
        kernel: the driver, on a virtual device.
        arguments: of each call; arrays are copied for it.
        peripheral: its name on the bus, or its model.
        expected: the driver's result with the answer; or a function that takes the `Aftermath` of
            the call and returns False, or raises, where it is wrong.
        errors: results that say that no answer came in time: allowed for any answer but one at
            once, and needed for "never".
        after: when the answers come, see `answering`; by default 0 to 63 cycles, more and more of
            them up to 20,000, and never.
        limit: instructions after which a call does not end.

    Returns:
        how many times were tried.

    Raises:
        KernelError: with the first time that the driver fails at: it does not end (with the
            register that it polls and its source line), faults, or gives something else.
        UsageError: not a virtual device, or no such peripheral.
    """
    device = emulator_of(kernel)
    if isinstance(peripheral, str):
        if peripheral not in device.board.peripherals:
            known = ", ".join(device.board.peripherals)
            raise UsageError(f"no peripheral {peripheral!r} is on the bus; there are {known}")
        peripheral = device.board.peripherals[peripheral][1]
    session, allowed = kernel.session, list(errors)
    driver, snapshot = Kernel(kernel.function), session.snapshot()
    times = list(_times() if after is None else after)
    try:
        for time in times:
            session.restore(snapshot)
            with answering(peripheral, time):
                wrong = _failure(driver, tuple(arguments), time, expected, allowed, limit)
            if wrong:
                when = "never answers" if time == "never" else f"answers after {time} cycles"
                raise KernelError(f"{kernel.name}, when {peripheral.name} {when}: {wrong}")
    finally:
        session.restore(snapshot)
    return len(times)


def _times() -> Iterator[After]:
    yield from range(_EACH)
    cycles = _EACH
    while cycles <= _MOST:
        yield cycles
        cycles += cycles // 4
    yield "never"


def _failure(
    driver: Kernel,
    arguments: tuple[Any, ...],
    time: After,
    expected: Any,
    errors: Sequence[Any],
    limit: int,
) -> str:
    """Call the driver and say what is wrong with the call, "" if nothing is."""
    given = copies(arguments)

    def body(span: Span) -> None:
        span.finish(span.start, limit)

    try:
        with inside(driver, body):
            result = driver(*given)
    except DeviceFault as fault:
        return f"it does not end: {fault}" if fault.kind in _ENDLESS else f"it fails: {fault}"
    if time != 0 and result in errors:
        return ""
    if time == "never" and errors:
        return f"it returns {result}, no error"
    if time == "never":
        return ""  # it ends, and that is all that is known
    return find_failure(Aftermath.of(driver, result, given, ()), expected)
