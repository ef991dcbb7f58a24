"""The table of kernels, on the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from covp.errors import printable
from covp.laboratory.baseline import Baseline, changes, other_work
from covp.laboratory.figures import KernelKey, Results

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
        lines += [f"- {_escaped(line)}" for line in worse]
        lines.append("")
    if body:
        lines += [f"| {' | '.join(map(_escaped, row))} |" for row in (heads, *body)]
        lines.insert(len(lines) - len(body), f"|{'|'.join(marks)}|")
        lines += ["", NOTE]
    else:
        lines.append("No kernel was called.")
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    """Escape text so that it cannot leave its cell or line of Markdown."""
    return "".join(f"\\{c}" if c in "|*_`[]<>\\" else c for c in printable(text))
