"""The end of a run: kernels against their baseline, the table, the files that were requested."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from covp.errors import UsageError, printable
from covp.laboratory.baseline import (
    Baseline,
    baseline_text,
    changes,
    other_work,
    read_baseline,
    regressions,
)
from covp.laboratory.figures import KernelKey, Results
from covp.laboratory.options import LaboratoryOptions

COVERAGE = "covp_coverage"
"""The key of coverage in the output that a worker of pytest-xdist sends at its end."""


class Review:
    """A collector of the figures of all tests, pytest-xdist's workers included, that judges them.

    Raises:
        pytest.UsageError: the baseline cannot be read.
    """

    def __init__(self, options: LaboratoryOptions) -> None:
        self.options = options
        self.results = Results()
        self.before = self._read_baseline()
        self._covered: list[str] = []
        self._worse: list[str] = []
        self._notes: list[str] = []

    def _read_baseline(self) -> Baseline | None:
        path = self.options.baseline
        if path is None or (self.options.update and not path.exists()):
            return None
        try:
            return read_baseline(path)
        except UsageError as error:
            raise pytest.UsageError(f"--covp-baseline: {error}") from None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the figures of a test."""
        sent = getattr(report, "covp", None)
        if sent is not None:
            self.results.add(report.nodeid, sent)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the coverage of a worker of pytest-xdist that ended; a crashed one sends none."""
        self.add_coverage(getattr(node, "workeroutput", {}).get(COVERAGE, ""))

    def add_coverage(self, covered: str) -> None:
        """Take the coverage of a process, as JSON; "" is none."""
        if covered:
            self._covered.append(covered)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Compare, write the files, and fail the run where a kernel became worse."""
        finished = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if not finished or session.config.option.collectonly:
            return
        failed = False
        if self.before is not None and not self.options.update:
            self._compare(self.before)
            failed = bool(self._worse)
        if self.options.update and self.options.baseline is not None and self.results.tests:
            failed |= not self._update(self.options.baseline)
        if self.options.summary is not None:
            text = markdown(table(self.results, self.before), self._worse)
            failed |= not self._write(self.options.summary, text)
        if self.options.coverage is not None:
            failed |= not self._write_coverage(self.options.coverage)
        if failed and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _compare(self, before: Baseline) -> None:
        found = regressions(before, self.results, self.options.threshold)
        for key, worse in found.items():
            figures = ", ".join(map(str, worse))
            self._worse.append(f"{key.kernel} on {key.platform}: {figures} in {worse[0].test}")
        now = self.results.toolchain
        if self.results.tests and before.toolchain not in ("", now):
            self._notes.append(
                f"the baseline is of {before.toolchain}, this run of {now}: figures differ "
                "between compilers"
            )

    def _update(self, path: Path) -> bool:
        baseline = self.before or Baseline()
        stored = Baseline(baseline.toolchain, {k: dict(v) for k, v in baseline.tests.items()})
        stored.update(self.results)
        if not self._write(path, baseline_text(stored)):
            return False
        self._notes.append(f"baseline written: {path} ({len(stored.tests)} kernels)")
        return True

    def _write(self, path: Path, text: str) -> bool:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            self._notes.append(f"{path}: cannot be written: {error.strerror}")
            return False
        return True

    def _write_coverage(self, path: Path) -> bool:
        from covp.laboratory.coverage import CoverageData

        data = CoverageData()
        for covered in self._covered:
            data.add(CoverageData.from_json(covered))
        try:
            data.write(path)
        except UsageError as error:
            self._notes.append(str(error))
            return False
        self._notes.append(f"coverage written: {path} ({len(data.files)} files)")
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, the notes, and one line for each kernel that became worse."""
        show = terminalreporter.verbosity >= 0 and self.results.tests
        if show:
            terminalreporter.section("covp: kernels")
            for line in plain(table(self.results, self.before)):
                terminalreporter.line(line)
            terminalreporter.line(f"({NOTE})")
        for note in self._notes:
            terminalreporter.line(f"covp: {note}")
        if self._worse:
            terminalreporter.section("covp: worse than the baseline", red=True)
            for line in self._worse:
                terminalreporter.line(line, red=True)


HEADS = ("kernel", "platform", "calls", "instructions", "cycles", "code bytes")
_CHANGE = "change"
NOTE = "instructions and cycles: the most of one call"


def table(results: Results, before: Baseline | None) -> list[tuple[str, ...]]:
    """Return rows of cells, the heads first; with a baseline each kernel's largest change."""
    heads = HEADS if before is None else (*HEADS, _CHANGE)
    rows = [_row(results, key, before) for key in sorted(results.tests)]
    return [heads, *rows]


def _row(results: Results, key: KernelKey, before: Baseline | None) -> tuple[str, ...]:
    total = results.total(key)
    figures = (total.calls, total.most_instructions, total.most_cycles, total.code_bytes)
    cells = (key.kernel, key.platform, *("-" if f is None else str(f) for f in figures))
    return cells if before is None else (*cells, _change(results, key, before))


def _change(results: Results, key: KernelKey, before: Baseline) -> str:
    if key not in before.tests:
        return "new"
    found = changes(before, results, key)
    if not found:
        return "not comparable"
    parts = [str(change) for change in found if change.percent]
    if other := other_work(before, results, key):
        parts.append(f"other calls in {other} test{'s' if other != 1 else ''}: not compared")
    return "; ".join(parts) or "none"


def plain(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format lines with aligned columns: numbers to the right, text to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {0, 1, len(HEADS)}
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def markdown(rows: Sequence[Sequence[str]], worse: Sequence[str]) -> str:
    """Format a table for a review comment, and the kernels that became worse."""
    heads, *body = rows
    marks = ["---" if i in (0, 1, len(HEADS)) else "---:" for i in range(len(heads))]
    lines = ["## covp: kernels", ""]
    if worse:
        lines += [f"**{len(worse)} worse than the baseline**", ""]
        lines += [f"- {_escape(line)}" for line in worse]
        lines.append("")
    if body:
        lines += [f"| {' | '.join(map(_escape, row))} |" for row in (heads, *body)]
        lines.insert(len(lines) - len(body), f"|{'|'.join(marks)}|")
        lines += ["", NOTE]
    else:
        lines.append("No kernel was called.")
    return "\n".join([*lines, ""])


def _escape(text: str) -> str:
    """Escape text so that it cannot leave its cell or line of Markdown."""
    return "".join(f"\\{c}" if c in "|*_`[]<>\\" else c for c in printable(text))
