"""`Monitor`: the commands of GDB's ``monitor``."""

from __future__ import annotations

from covp.device.debug.target import DebugTarget
from covp.errors import UsageError, near_misses

_HELP = {
    "help": "this list",
    "reset [halt|run]": "reset core and peripherals; memory is kept; stays halted, or runs",
    "halt": "halt the core",
    "instructions": "retired instructions, exact, in all and since last asked",
    "cycles": "estimated core cycles, in all and since last asked",
    "fault": "the program's last fault",
    "peripherals": "names and addresses of the peripherals on the bus",
    "semihosting [enable|disable]": "the program's requests: answered, or breakpoints",
    "arm semihosting ...": "the same, as OpenOCD spells it",
}


class Monitor:
    """An executor of monitor commands on a target."""

    def __init__(self, target: DebugTarget) -> None:
        self._target = target
        self._host = target.device.board.semihosting
        self._asked = {"instructions": 0, "cycles": 0}

    def run(self, line: str) -> str:
        """Execute a command; the text to print. Raises UsageError: no such command."""
        words = line.split() or ["help"]
        command = getattr(self, f"_{words[0]}", None)
        names = [name.split()[0] for name in _HELP]
        if words[0] not in names or command is None:
            raise UsageError(f"no monitor command {words[0]!r}:", hint=near_misses(words[0], names))
        return str(command(words[1:]))

    def _help(self, words: list[str]) -> str:
        return "".join(f"{name:28} {text}\n" for name, text in _HELP.items())

    def _reset(self, words: list[str]) -> str:
        how = words[0] if words else "halt"
        if how not in ("halt", "init", "run"):  # init: as OpenOCD's scripts say
            raise UsageError(f"reset {how!r}: it is halt or run")
        self._target.reset(halt=how != "run")
        if how == "run":
            return "running\n"
        # the protocol has no word for it
        return (
            f"halted at 0x{self._pc():08x}; for GDB to see it: maintenance flush register-cache\n"
        )

    def _halt(self, words: list[str]) -> str:
        self._target.halt()
        return f"halted at 0x{self._pc():08x}\n"

    def _instructions(self, words: list[str]) -> str:
        return self._count("instructions", self._target.device.instructions)

    def _cycles(self, words: list[str]) -> str:
        return self._count("cycles", self._target.device.cycles)

    def _count(self, what: str, now: int) -> str:
        before, self._asked[what] = self._asked[what], now
        return f"{now} {what}, {now - before} since last asked\n"

    def _fault(self, words: list[str]) -> str:
        return f"{self._target.fault}\n" if self._target.fault else "no fault\n"

    def _peripherals(self, words: list[str]) -> str:
        every = sorted(self._target.device.peripherals.items(), key=lambda item: item[1][0])
        return "".join(f"0x{base:08x} {name}\n" for name, (base, _) in every)

    def _semihosting(self, words: list[str]) -> str:
        board, how = self._target.device.board, words[0] if words else ""
        if how not in ("enable", "disable", ""):
            raise UsageError(f"semihosting {how!r}: it is enable or disable")
        if how == "enable" and self._host is None:
            raise UsageError("semihosting: the server was started without it")
        if how:
            board.set_semihosting(self._host if how == "enable" else None)
        return f"semihosting is {'disabled' if board.semihosting is None else 'enabled'}\n"

    def _arm(self, words: list[str]) -> str:
        if words[:1] != ["semihosting"]:
            raise UsageError("no monitor command 'arm' but arm semihosting")
        return self._semihosting(words[1:])

    def _pc(self) -> int:
        return self._target.read_register("pc") & ~1
