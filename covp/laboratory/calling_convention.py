"""`check_registers`: the registers that a C function has to leave as they were."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from covp.base.arguments import demand_count
from covp.chip.isa import ARCHITECTURES
from covp.device.abilities import Emulator
from covp.errors import KernelError
from covp.laboratory.aftermath import Aftermath, place_of, same
from covp.laboratory.inside import Span, copies, emulator_of, inside
from covp.laboratory.kernel import Kernel

_POINTERS = ("sp", "gp", "tp")
_MODES = ("fpscr", "frm")
_REMEDY = "name {name} among the clobbers of inline assembly, or save it"
_REMEDIES = dict.fromkeys(_MODES, "put its modes back before the function returns")
# FPSCR's AHP, DN, FZ and RMode are kept, its other bits are flags (Procedure Call Standard for the
# Arm Architecture, 6.1.2.1); the rounding mode is the program's (C standard, 7.6).
_FPSCR_MODES, _FPSCR_FLAGS = 0x07C0_0000, 0xF800_009F
_APSR_FLAGS = 0xF80F_0000  # NZCVQ, GE
_RISCV_FLAGS = 0x1F


def kept_registers(device: Emulator) -> dict[str, int]:
    """Return the present values of the registers that a function has to keep, by name."""
    found = {name: int(device.core.engine.reg_read(id)) for name, id in _kept_ids(device).items()}
    if "fpscr" in found:
        found["fpscr"] &= _FPSCR_MODES
    return found


def _kept_ids(device: Emulator) -> dict[str, int]:
    """Return Unicorn's numbers of the registers that a function has to keep, by name."""
    core = device.core.core
    isa = ARCHITECTURES[core.architecture]
    modes = "fpscr" if core.architecture == "arm" else "frm"
    floats = (*isa.kept_floats, modes) if core.has("fpu") else ()
    return {name: device.core.register_id(name) for name in (*isa.kept, *floats)}


def _scratch_ids(device: Emulator) -> tuple[int, ...]:
    """Return Unicorn's numbers of general registers that are undefined at a function's entry."""
    isa = ARCHITECTURES[device.core.core.architecture]
    return tuple(device.core.register_id(name) for name in isa.scratch)


def _fill_flags(device: Emulator, chance: random.Random) -> None:
    """Write random values to the flags, which are undefined at a function's entry too."""
    engine, core = device.core.engine, device.core.core
    if core.architecture == "arm":
        engine.reg_write(
            device.core.register_id("apsr_nzcvqg"), chance.getrandbits(32) & _APSR_FLAGS
        )
        if core.has("fpu"):
            fpscr = device.core.register_id("fpscr")
            modes = engine.reg_read(fpscr) & ~_FPSCR_FLAGS
            engine.reg_write(fpscr, modes | chance.getrandbits(32) & _FPSCR_FLAGS)
    elif core.has("fpu"):
        flags = chance.getrandbits(32) & _RISCV_FLAGS
        engine.reg_write(device.core.register_id("fflags"), flags)


def check_kept(kernel: Kernel, before: dict[str, int], device: Emulator) -> None:
    """Compare with the values when the kernel was entered.

    Args:
        kernel: it has just returned.
        before: what `kept_registers` gave then.
        device: of the kernel.

    Raises:
        KernelError: the kernel returned with another value in one of them.
    """
    for name, value in kept_registers(device).items():
        if value != before[name]:
            raise KernelError(
                f"{kernel.name} returns with 0x{value:x} in {name}, which a function has to keep; "
                f"it was 0x{before[name]:x}: {_REMEDIES.get(name, _REMEDY.format(name=name))}"
            )


def check_registers(
    kernel: Kernel, arguments: Sequence[Any] = (), *, examples: int = 8, seed: int = 0
) -> None:
    """Check a function's use of the core's registers, as far as its calling convention goes.

    It is called with random values in the registers that it has to keep, and in those and in the
    flags (of the core, and of its floating-point unit) that hold nothing when it is entered. It has
    to return with the former as they were, the modes of floating point among them, and its result,
    arrays and the variables of its module must depend on none of them. That finds inline assembly
    and assembly that changes registers without saying so, or uses one that nothing was put into,
    though callers may not have noticed yet.

    Args:
        kernel: on a virtual device.
        arguments: of each call; arrays are copied for it.
        examples: how many calls; each one starts from the same state.
        seed: of the values.

    Raises:
        KernelError: a register is not kept, or the outcome depends on one.
        DeviceFault: the kernel faulted, as it may with an address out of such a register.
        UsageError: not a virtual device.
    """
    demand_count("examples", examples)
    device, session, chance = emulator_of(kernel), kernel.session, random.Random(seed)
    called, snapshot = Kernel(kernel.function), kernel.session.snapshot()
    first: Aftermath | None = None

    def body(span: Span) -> None:
        own = kept_registers(device)
        kept = {name: id for name, id in _kept_ids(device).items() if name not in _POINTERS}
        drawn = [id for name, id in kept.items() if name not in _MODES]
        for id in (*drawn, *_scratch_ids(device)):
            device.core.engine.reg_write(id, chance.getrandbits(30))  # as a float, no NaN
        _fill_flags(device, chance)
        before = kept_registers(device)
        device.execute(span.start, span.end)
        check_kept(called, before, device)
        for name, id in kept.items():
            device.core.engine.reg_write(id, own[name])  # the caller's

    try:
        for _ in range(examples):
            session.restore(snapshot)
            given = copies(tuple(arguments))
            with inside(called, body):
                result = called(*given)
            outcome = Aftermath.of(called, result, given, None)
            first = first or outcome
            _check_alike(called, first, outcome)
    finally:
        session.restore(snapshot)


def _check_alike(kernel: Kernel, first: Aftermath, outcome: Aftermath) -> None:
    known = first.parts(kernel)
    for name, value in outcome.parts(kernel).items():
        if not same(value, known[name]):
            place, now, then = place_of(value, known[name])
            raise KernelError(
                f"{kernel.name} uses a register or a flag that nothing was put into: {name}{place} "
                f"is {now}, and {then} with other values in such registers"
            )
