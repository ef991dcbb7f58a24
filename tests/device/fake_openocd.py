"""A Tcl server that answers as OpenOCD does, until a test lets it do something else."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

from .fake_server import FakeServer

END = b"\x1a"
WRAPPED = re.compile(r"list \[catch \{(?:capture \{)?(.*?)\}?\} r\] \$r", re.DOTALL)

Misbehave = Callable[[socket.socket, str], bool]
"""What a server does instead of answering a command; whether it did something."""


class FakeOpenOcd(FakeServer):
    """One target with memory at 0x20000000 that halts at its breakpoint at once; a context manager.

    Attributes:
        misbehave: replaces the answer to a command.
        commands: all that came.
        state: of the target.
    """

    def __init__(self, port: int = 0) -> None:
        self.misbehave: Misbehave = lambda client, command: False
        self.commands: list[str] = []
        self.state = "halted"
        self._memory: dict[int, int] = {}
        self._registers: dict[str, str] = {}
        self._breakpoint = "0x0"
        super().__init__(port)

    def __enter__(self) -> FakeOpenOcd:
        return self

    @property
    def name(self) -> str:
        """As in errors."""
        return f"openocd:127.0.0.1:{self.port}"

    def answer_all(self, client: socket.socket) -> None:
        rest = b""
        while data := client.recv(1 << 16):
            *texts, rest = (rest + data).split(END)
            for text in texts:
                found = WRAPPED.fullmatch(text.decode())
                assert found is not None, text
                self.commands.append(found[1])
                if not self.misbehave(client, found[1]):
                    client.sendall(f"0 {{{self._answer(found[1])}}}".encode() + END)

    def _answer(self, command: str) -> str:
        name, *words = command.replace("{", " ").replace("}", " ").split()
        if command == "[target current] curstate":
            return self.state
        if name == "bp":
            self._breakpoint = words[0]
        if name == "wait_halt":
            self._registers["pc"] = self._breakpoint
        if name == "set_reg":
            self._registers[words[0]] = words[1]
        if name == "get_reg":
            return " ".join(f"{word} {self._registers.get(word, '0x0')}" for word in words)
        if name in ("read_memory", "write_memory"):
            return self._access(*words)
        return ""

    def _access(self, address: str, width: str, *values: str) -> str:
        size, start = int(width) // 8, int(address, 0)
        if len(values) == 1 and not values[0].startswith("0x"):  # how many to read
            places = range(start, start + size * int(values[0]), size)
            return " ".join(f"0x{self._item(place, size):x}" for place in places)
        for number, value in enumerate(values):
            for byte, content in enumerate(int(value, 0).to_bytes(size, "little")):
                self._memory[start + number * size + byte] = content
        return ""

    def _item(self, address: int, size: int) -> int:
        content = bytes(self._memory.get(address + byte, 0) for byte in range(size))
        return int.from_bytes(content, "little")
