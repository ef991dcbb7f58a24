"""`Handler`: a C function that a core enters as an interrupt's handler."""

from __future__ import annotations

import struct

from covp.chip.isa.riscv import RISCV
from covp.device.abilities import Emulator
from covp.device.machine.nvic import FIRST_LINE, Nvic
from covp.errors import UsageError
from covp.runtime.module import Module
from covp.runtime.resident import Placed
from covp.runtime.session import Session

_LINES = 32  # of the vector table; ARMv6-M has no more
_MRET = (0x30200073).to_bytes(4, "little")
_MIE_EXTERNAL, _MSTATUS_MIE = 1 << 11, 1 << 3
_LOWEST = 0xFF
_HANDLER = "covp_interrupt_handler"
_ARM_MASKS = ("PRIMASK", "BASEPRI", "FAULTMASK")

# The frame keeps what a C function may change (RISC-V calling convention, table 1). A trap that is
# no interrupt goes to the runtime as if this had not been there.
_ENTRY = """
    .section .text.covp_interrupt_entry, "ax", @progbits
    .global covp_interrupt_entry
    .type covp_interrupt_entry, @function
    .balign 4
covp_interrupt_entry:
    addi sp, sp, -{frame}
    sw t0, 0(sp)
    csrr t0, mcause
    bgez t0, 1f
{interrupt}
1:
    addi sp, sp, {frame}
    li t0, 0x{traps:x}
    jr t0
    .size covp_interrupt_entry, . - covp_interrupt_entry
"""
_KEPT = ("ra", *RISCV.scratch[1:], *RISCV.arguments)
_KEPT_FLOATS = tuple(name for name in RISCV.floats if name not in RISCV.kept_floats)


class Handler:
    """A function of a module, made the handler of an interrupt line for the calls of a test.

    Args:
        module: where the function is.
        function: its name.
        line: of the interrupt; None: one that no peripheral uses. RISC-V has the machine external
            interrupt for all.
        priority: on Arm, 0 is the most urgent; the least urgent one by default.

    Raises:
        UsageError: there is no such function or line.
    """

    def __init__(
        self,
        device: Emulator,
        module: Module,
        function: str,
        line: int | None = None,
        priority: int | None = None,
    ) -> None:
        self._device, self._name = device, function
        self.interrupts = device.core.interrupts
        self._line = _free_line(device) if line is None else line
        if not 0 <= self._line < _LINES:
            raise UsageError(f"line {self._line}: an injected interrupt has a line of 0 to 31")
        self._priority = _LOWEST if priority is None else priority
        self.address = module.address(function)
        self._traps = module.session.images[0].elf.symbols["covp_trap"].address
        self._table: Placed | None = None
        self._entry: Module | None = None
        session = module.session
        assert isinstance(session, Session)
        if isinstance(self.interrupts, Nvic):
            size = 4 * (FIRST_LINE + _LINES)
            self._table = session.place(size, 256, "a vector table")
        else:
            self._entry = self._load_entry(session, module)

    def close(self) -> None:
        """Give its memory back."""
        if self._table is not None:
            self._table.free()
        if self._entry is not None:
            self._entry.unload()

    # -- during a call ------------------------------------------------------------------------

    def install(self) -> None:
        """Let the core take the interrupt from now on; the runtime's own vectors stay."""
        if isinstance(self.interrupts, Nvic):
            assert self._table is not None
            system = self._device.board.read(self.interrupts.vector_table, 4 * FIRST_LINE)
            lines = [0] * _LINES
            lines[self._line] = self.address | 1
            self._device.board.write(
                self._table.address, system + struct.pack(f"<{_LINES}I", *lines)
            )
            self.interrupts.vector_table = self._table.address
            self.interrupts.set_priority(FIRST_LINE + self._line, self._priority)
            self.interrupts.enabled.add(FIRST_LINE + self._line)
        else:
            assert self._entry is not None
            self._write("MTVEC", self._entry.address("covp_interrupt_entry"))
            self._write("MIE", self._read("MIE") | _MIE_EXTERNAL)
            self._write("MSTATUS", self._read("MSTATUS") | _MSTATUS_MIE)

    def request(self) -> None:
        """Request the interrupt; it comes as soon as the core lets it in."""
        self.interrupts.pulse(self._line)

    def is_line(self, line: int) -> bool:
        """Return whether ``line`` is the one of this interrupt."""
        return line == self._line

    def masks(self) -> dict[str, int]:
        """Return the masks that keep interrupts out now, by the name of the register."""
        if not isinstance(self.interrupts, Nvic):
            return {"mstatus.MIE": self._read("MSTATUS") & _MSTATUS_MIE}
        names = _ARM_MASKS[:1] if self._device.core.core.isa.is_armv6m else _ARM_MASKS
        return {name: self._read(name) for name in names}

    # -----------------------------------------------------------------------------------------

    def _load_entry(self, session: Session, module: Module) -> Module:
        source = {"interrupt_entry.S": self._trampoline(module)}
        session.exports[_HANDLER] = self.address  # the linker reaches it with a jump
        try:
            return session.load_sources(source, "the entry of interrupts")
        finally:
            del session.exports[_HANDLER]

    def _trampoline(self, module: Module) -> str:
        """Write the code that mtvec points to (RISC-V); an interrupt function needs no frame."""
        core = self._device.core.core
        code = module.image.elf.symbols[self._name]
        whole = self._device.board.read(code.address, code.size)
        if any(whole[at : at + 4] == _MRET for at in range(0, len(whole), 2)):
            body = f"    lw t0, 0(sp)\n    addi sp, sp, 16\n    j {_HANDLER}"
            return _ENTRY.format(frame=16, interrupt=body, traps=self._traps)
        floats = _KEPT_FLOATS if core.has("fpu") else ()
        saves = [("sw", "lw", name) for name in _KEPT] + [("fsw", "flw", name) for name in floats]
        frame = -(-4 * (1 + len(saves)) // 16) * 16
        lines = [f"{save} {name}, {4 * at}(sp)" for at, (save, _, name) in enumerate(saves, 1)]
        lines += [f"li t0, 0x{self.address:x}", "jalr t0"]
        lines += [f"{load} {name}, {4 * at}(sp)" for at, (_, load, name) in enumerate(saves, 1)]
        lines += ["lw t0, 0(sp)", f"addi sp, sp, {frame}", "mret"]
        body = "\n".join(f"    {line}" for line in lines)
        return _ENTRY.format(frame=frame, interrupt=body, traps=self._traps)

    def _read(self, name: str) -> int:
        return int(self._device.core.engine.reg_read(self._id(name)))

    def _write(self, name: str, value: int) -> None:
        self._device.core.engine.reg_write(self._id(name), value & 0xFFFFFFFF)

    def _id(self, name: str) -> int:
        return self._device.core.register_id(name)


def _free_line(device: Emulator) -> int:
    used = {peripheral.interrupt.number for _, peripheral in device.board.peripherals.values()}
    return next(line for line in reversed(range(_LINES)) if line not in used)
