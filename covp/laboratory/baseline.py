"""Stored figures of kernels, and what became worse since.

The file is sorted JSON, one test per line, so that a change of a kernel shows in a diff:
``{"schema": ..., "toolchain": ..., "kernels": {kernel: {platform: {test id: figures}}}}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from covp.errors import UsageError
from covp.laboratory.figures import KernelKey, Results

SCHEMA = "covp.kernels/1"
TITLES = {"instructions": "instructions", "cycles": "cycles", "code_bytes": "code bytes"}
_STORED = ("calls", *TITLES)


@dataclass
class Baseline:
    """The content of a baseline file: by kernel, then by test id, figure to number."""

    toolchain: str = ""
    tests: dict[KernelKey, dict[str, dict[str, int]]] = field(default_factory=dict)

    def update(self, results: Results) -> None:
        """Take the figures of a run; those of tests that were not in it stay."""
        self.toolchain = results.toolchain
        for key, by_test in results.tests.items():
            mine = self.tests.setdefault(key, {})
            mine.update({test: figures.stable_figures() for test, figures in by_test.items()})


@dataclass(frozen=True)
class Change:
    """The change of a figure of a kernel, in the test where it is largest.

    Attributes:
        figure: "instructions", "cycles" or "code_bytes".
        test: its id.
        old, new: of the baseline, and now.
    """

    figure: str
    test: str
    old: int
    new: int

    @property
    def percent(self) -> float:
        """Growth in percent; negative if the figure became better."""
        if self.old == 0:
            return math.inf if self.new else 0.0
        return 100 * (self.new - self.old) / self.old

    def __str__(self) -> str:
        return f"{TITLES[self.figure]} {self.old} -> {self.new} ({self.percent:+.1f} %)"


def changes(before: Baseline, results: Results, key: KernelKey) -> list[Change]:
    """Return for each figure of a kernel the change in the test where it is worst.

    A test counts if it is in both; its instructions and cycles if it makes as many calls as before.
    """
    worst: dict[str, Change] = {}
    old_tests = before.tests.get(key, {})
    for test, figures in sorted(results.tests[key].items()):
        for change in _changes_of(test, old_tests.get(test, {}), figures.stable_figures()):
            known = worst.get(change.figure)
            if known is None or change.percent > known.percent:
                worst[change.figure] = change
    return [worst[name] for name in TITLES if name in worst]


def _changes_of(test: str, old: dict[str, int], new: dict[str, int]) -> Iterator[Change]:
    for name in TITLES:
        same_work = name == "code_bytes" or old.get("calls") == new.get("calls")
        if name in old and name in new and same_work:
            yield Change(name, test, old[name], new[name])


def other_work(before: Baseline, results: Results, key: KernelKey) -> int:
    """Count the tests of both in which a kernel is called more or less often than before."""
    old = before.tests.get(key, {})
    return sum(
        old[test].get("calls") != figures.stable_figures().get("calls")
        for test, figures in results.tests[key].items()
        if test in old
    )


def regressions(
    before: Baseline, results: Results, threshold: float
) -> dict[KernelKey, list[Change]]:
    """Return the kernels with figures that are worse by more than ``threshold`` percent."""
    found = {}
    for key in sorted(results.tests):
        worse = [c for c in changes(before, results, key) if c.percent > threshold]
        if worse:
            found[key] = worse
    return found


def read_baseline(path: Path) -> Baseline:
    """Read the baseline in a file. Raises UsageError with one line."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError("there is no such baseline; --covp-update writes it", where=path) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot be read as a baseline: {error}", where=path) from None
    return _parse(content, path)


def _parse(content: Any, path: Path) -> Baseline:
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise UsageError(f'{path}: not a baseline of kernels: "schema" must be "{SCHEMA}"')
    baseline = Baseline(str(content.get("toolchain", "")))
    for kernel, platforms in _object(content.get("kernels"), "kernels", path).items():
        for platform, tests in _object(platforms, kernel, path).items():
            where = f"{kernel}, {platform}"
            mine = baseline.tests.setdefault(KernelKey(kernel, platform), {})
            for test, figures in _object(tests, where, path).items():
                mine[test] = _check_figures(_object(figures, f"{where}, {test}", path), test, path)
    return baseline


def _object(value: Any, where: str, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: must be a JSON object; write it with --covp-update", where=path)
    return value


def _check_figures(figures: dict[str, Any], test: str, path: Path) -> dict[str, int]:
    for name, value in figures.items():
        if name not in _STORED or type(value) is not int or value < 0:
            raise UsageError(
                f"{test}: {name!r:.40} is not a figure of a kernel; known are "
                f"{', '.join(_STORED)}, integers of at least 0",
                where=path,
            )
    return figures


def baseline_text(baseline: Baseline) -> str:
    """Return the content of a baseline's file."""
    kernels: dict[str, dict[str, dict[str, str]]] = {}
    for key, by_test in baseline.tests.items():
        tests = {test: json.dumps(figures, sort_keys=True) for test, figures in by_test.items()}
        kernels.setdefault(key.kernel, {})[key.platform] = tests
    head = {"schema": SCHEMA, "toolchain": baseline.toolchain}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    return "\n".join(["{", *lines, f' "kernels": {_format_value(kernels, 1)}', "}", ""])


def _format_value(value: dict[str, Any] | str, depth: int) -> str:
    """Format as JSON text with sorted keys; strings are JSON already."""
    if isinstance(value, str):
        return value
    pad = " " * depth
    lines = [
        f"{pad} {json.dumps(key)}: {_format_value(value[key], depth + 1)}" for key in sorted(value)
    ]
    return "{\n" + ",\n".join(lines) + f"\n{pad}}}" if lines else "{}"
