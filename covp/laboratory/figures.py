"""Costs of kernels in tests: counted by call, kept by test, sent in the reports of pytest."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple


class CallCost(NamedTuple):
    """The cost of one call; None where the device cannot tell.

    ``repeatable``: the cycles are the same on every run, wherever code and data lie.
    """

    instructions: int | None
    cycles: int | None
    repeatable: bool = True


@dataclass
class Figures:
    """The cost of a kernel in one test.

    Attributes:
        code_bytes: of the function.
        calls: that returned.
        most_instructions, most_cycles: of one call; None where the device cannot tell.
        fixed_calls: those with inputs that are the same on every run.
        instructions, cycles: of the fixed calls together; None where they are not repeatable.
    """

    code_bytes: int
    calls: int = 0
    most_instructions: int | None = 0
    most_cycles: int | None = 0
    fixed_calls: int = 0
    instructions: int | None = 0
    cycles: int | None = 0

    def add(self, cost: CallCost, fixed: bool) -> None:
        """Count one more call."""
        self.calls += 1
        self.most_instructions = _most(self.most_instructions, cost.instructions)
        self.most_cycles = _most(self.most_cycles, cost.cycles)
        if fixed:
            self.fixed_calls += 1
            self.instructions = _sum(self.instructions, cost.instructions)
            self.cycles = _sum(self.cycles, cost.cycles if cost.repeatable else None)

    def join(self, other: Figures) -> None:
        """Add those of other calls."""
        self.code_bytes = max(self.code_bytes, other.code_bytes)
        self.calls += other.calls
        self.most_instructions = _most(self.most_instructions, other.most_instructions)
        self.most_cycles = _most(self.most_cycles, other.most_cycles)
        self.fixed_calls += other.fixed_calls
        self.instructions = _sum(self.instructions, other.instructions)
        self.cycles = _sum(self.cycles, other.cycles)

    def stable_figures(self) -> dict[str, int]:
        """Return the figures that are the same on every run, as far as they are known."""
        values = {"code_bytes": self.code_bytes}
        if self.fixed_calls:
            values["calls"] = self.fixed_calls
            known = {"instructions": self.instructions, "cycles": self.cycles}
            values |= {name: value for name, value in known.items() if value is not None}
        return values


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _most(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else max(first, second)


@dataclass(frozen=True, order=True)
class KernelKey:
    """A kernel, "file.c::function", and the name of the device that it ran on."""

    kernel: str
    platform: str


class Recorder:
    """The figures of the test that is running.

    Attributes:
        toolchain: name and version of the compiler, e.g. "zig 0.17.0"; "" before the first kernel.
        fixed: whether the inputs of the calls that come are the same on every run.
    """

    def __init__(self) -> None:
        self.toolchain = ""
        self.fixed = True
        self._current: dict[KernelKey, Figures] | None = None

    def begin(self, fixed: bool) -> None:
        """Begin to count calls, at the start of a test's body."""
        self._current, self.fixed = {}, fixed

    def count(self, key: KernelKey, code_bytes: int, cost: CallCost) -> None:
        """Count a call; those outside the body of a test belong to none."""
        if self._current is not None:
            figures = self._current.get(key)
            if figures is None:
                figures = self._current[key] = Figures(code_bytes)
            figures.add(cost, self.fixed)

    def end(self) -> dict[KernelKey, Figures]:
        """Stop counting at the end of a test's body, and return what it called."""
        found, self._current = self._current or {}, None
        return found


@dataclass
class Results:
    """The figures of all tests that passed: by kernel, then by test id."""

    toolchain: str = ""
    tests: dict[KernelKey, dict[str, Figures]] = field(default_factory=dict)

    def add(self, test: str, payload: dict[str, Any]) -> None:
        """Take what `payload` packed, in this or another process."""
        self.toolchain = self.toolchain or payload["toolchain"]
        for kernel, platform, values in payload["rows"]:
            by_test = self.tests.setdefault(KernelKey(kernel, platform), {})
            by_test[test] = Figures(**values)

    def total(self, key: KernelKey) -> Figures:
        """Add up a kernel's figures of all tests."""
        first, *rest = self.tests[key].values()
        total = Figures(**asdict(first))
        for figures in rest:
            total.join(figures)
        return total


def payload(toolchain: str, found: dict[KernelKey, Figures]) -> dict[str, Any]:
    """Pack figures as plain data, which pytest-xdist can send with a report."""
    rows = [[key.kernel, key.platform, asdict(figures)] for key, figures in sorted(found.items())]
    return {"toolchain": toolchain, "rows": rows}
