"""The protocol in Python, written from the notes on what the runner expects."""

from __future__ import annotations

import re
from collections.abc import Callable

LAP = "m-lap-us-*"
ERROR = "e-[*]"


class ProtocolModel:
    """What a board answers: lines, with "*" for what is not fixed.

    Args:
        name: of the benchmark.
        size: bytes of the input.
        infer: the result line of an input, without "m-results-[" and "]".
    """

    def __init__(self, name: str, size: int, infer: Callable[[bytes], str]) -> None:
        self.name, self.size, self.infer = name, size, infer
        self.data: bytes | None = None  # None: no download was begun
        self.results: str | None = None

    def answer(self, command: bytes) -> list[str]:
        """The lines after a command, which is given without its ``%``."""
        text = command.replace(b"\r", b"").replace(b"\n", b"")
        return [*(self._lines(text) if len(text) <= 80 else [ERROR]), "m-ready"]

    def _lines(self, text: bytes) -> list[str]:
        words = [word for word in text.split(b" ") if word]
        if not words:
            return [ERROR]
        name, *rest = words
        if name == b"name":
            return ["m-name-dut-[covp]"]
        if name == b"profile":
            return ["m-profile-[ULPMark for tinyML Firmware V0.0.1]", f"m-model-[{self.name}]"]
        if name == b"timestamp":
            return [LAP]
        if name == b"results":
            return [ERROR if self.results is None else f"m-results-[{self.results}]"]
        if name == b"infer":
            return self._infer(rest)
        if name == b"db":
            return self._db(rest)
        return [ERROR]

    def _infer(self, rest: list[bytes]) -> list[str]:
        numbers = [_number(word) for word in rest]
        if len(numbers) > 2 or None in numbers:
            return [ERROR]
        count, warmups = [*(n for n in numbers if n is not None), *[1, 10][len(numbers) :]]
        if count == 0 or self.data is None or len(self.data) != self.size:
            return [ERROR]
        self.results = self.infer(self.data)
        return [
            f"m-warmup-start-{warmups}",
            "m-warmup-done",
            f"m-infer-start-{count}",
            LAP,
            LAP,
            "m-infer-done",
            f"m-results-[{self.results}]",
        ]

    def _db(self, rest: list[bytes]) -> list[str]:
        before, self.data = self.data, None
        if not rest:
            self.data = before
            return [ERROR]
        if rest[0] == b"load":
            if len(rest) != 2 or _number(rest[1]) != self.size:
                return [ERROR]
            self.data = b""
            return [f"m-[Expecting {self.size} bytes]"]
        if rest[0] == b"print":
            self.data = before
            return self._print(rest[1:])
        if before is None or len(rest) > 1 or not re.fullmatch(rb"([0-9a-fA-F]{2})+", rest[0]):
            return [ERROR]
        after = before + bytes.fromhex(rest[0].decode())
        if len(after) > self.size:
            return [ERROR]
        self.data = after
        return ["m-load-done"] if len(after) == self.size else []

    def _print(self, rest: list[bytes]) -> list[str]:
        numbers = [_number(word) for word in rest]
        if len(numbers) > 2 or None in numbers:
            return [ERROR]
        size, offset = [*(n for n in numbers if n is not None), *[16, 0][len(numbers) :]]
        shown = (self.data or b"")[offset : offset + size]
        rows = [shown[i : i + 8] for i in range(0, len(shown), 8)]
        return ["m-buffer-" + "-".join(f"{byte:02x}" for byte in row) for row in rows]


def _number(word: bytes) -> int | None:
    if not re.fullmatch(rb"[0-9]+", word) or int(word) >= 1 << 32:
        return None
    return int(word)


def fits(lines: list[str], expected: list[str]) -> bool:
    """Whether lines are those of the model."""
    return len(lines) == len(expected) and all(
        re.fullmatch(re.escape(pattern).replace(r"\*", ".+"), line)
        for line, pattern in zip(lines, expected, strict=True)
    )
