"""The roofline of the core and of each unit, with the layers as points.

Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009: attainable = min(peak, bandwidth x
intensity).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from covp.evaluation.documents import CoreRecord, Run, UnitRecord
from covp.report import theme
from covp.report.figures.style import colours, data, spec
from covp.report.page import Figure
from covp.report.quantities import bound, intensity, label, peak_of, short, utilization

_COLOURS = (theme.BLUE, theme.ORANGE, theme.TEAL, theme.MAGENTA, theme.OLIVE)
_CLOSE = (0.09, 0.06)
"""Parts of the chart's width and height within which points share their text."""
Point = dict[str, object]


def roofline_figure(run: Run) -> Figure | None:
    """Return layers over the roofs; None where no layer has MACs, bytes and cycles."""
    points = list(_points(run))
    if not points:
        return None
    used = {str(point["on"]) for point in points} - {"cpu"}
    targets = ["cpu", *sorted(used)]
    roofs = {name: peak for name in targets if (peak := _roof(run, name)) is not None}
    xs = [_number(point["intensity"]) for point in points]
    ridges = [
        p.macs_per_cycle / p.bytes_per_cycle
        for p in roofs.values()
        if p.macs_per_cycle and p.bytes_per_cycle
    ]
    low, high = _decades([*xs, *ridges])
    lines = [row for name, peak in roofs.items() for row in _line(name, peak, low, high)]
    ys = [_number(row["speed"]) for row in [*points, *lines]]
    ys += [_number(point["most"]) for point in points if point["most"] is not None]
    return Figure(
        "roofline",
        "Roofline: MACs in a cycle over MACs for each byte",
        spec(_chart(points, lines, targets, (low, high), _decades(ys)), pixels=380),
        _caption(run, targets, roofs),
    )


def _points(run: Run) -> Iterator[Point]:
    for layer in run.layers:
        at = intensity(layer)
        if at is None or not layer.cycles:
            continue
        yield {
            "row": label(layer),
            "number": str(layer.index),
            "tensor": short(layer.tensor),
            "on": layer.target,
            "intensity": at,
            "speed": layer.macs / layer.cycles,
            "most": layer.macs / layer.least.cycles if layer.least and layer.least.cycles else None,
            "bound": bound(run, layer) or "unknown",
            "utilization": utilization(run, layer),
            "cycles": layer.cycles,
        }


def _number(value: object) -> float:
    assert isinstance(value, (int, float))
    return float(value)


def _roof(run: Run, target: str) -> CoreRecord | UnitRecord | None:
    peak = peak_of(run, target)
    return peak if peak and peak.macs_per_cycle else None


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Half a decade beyond the values."""
    logs = [math.log10(value) for value in values if value > 0]
    return 10 ** (min(logs) - 0.4), 10 ** (max(logs) + 0.4)


def _axis(ends: tuple[float, float]) -> alt.Axis:
    """Return ticks at 1, 2 and 5 of each decade."""
    low, high = (math.floor(math.log10(end)) for end in ends)
    values = [step * 10.0**decade for decade in range(low, high + 1) for step in (1, 2, 5)]
    inside = [value for value in values if ends[0] <= value <= ends[1]]
    return alt.Axis(format="~g", values=inside)


def _line(name: str, peak: CoreRecord | UnitRecord, low: float, high: float) -> list[Point]:
    most, port = peak.macs_per_cycle or 0.0, peak.bytes_per_cycle
    if not port:
        return [{"on": name, "intensity": x, "speed": most} for x in (low, high)]
    ridge = most / port
    xs = sorted({low, min(max(ridge, low), high), high})
    return [{"on": name, "intensity": x, "speed": min(most, port * x)} for x in xs]


def _chart(
    points: Sequence[Point],
    lines: Sequence[Point],
    targets: Sequence[str],
    across: tuple[float, float],
    up: tuple[float, float],
) -> Any:
    colour = alt.Color(
        "on:N", title=None, scale=colours(dict(zip(targets, 3 * _COLOURS, strict=False)))
    )
    x = alt.X("intensity:Q", title="MACs for each byte loaded or stored", axis=_axis(across),
              scale=alt.Scale(type="log", domain=list(across), nice=False))  # fmt: skip
    y = alt.Y("speed:Q", title="MACs in a core cycle", axis=_axis(up),
              scale=alt.Scale(type="log", domain=list(up), nice=False))  # fmt: skip
    roofs = alt.Chart(data(lines)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    dots = (
        alt.Chart(data(points))
        .mark_point(size=70, filled=True, opacity=0.85)
        .encode(
            x=x,
            y=y,
            color=colour,
            tooltip=[
                alt.Tooltip("row:N", title="layer"),
                alt.Tooltip("tensor:N", title="output"),
                alt.Tooltip("on:N"),
                alt.Tooltip("intensity:Q", title="MACs/byte", format=".3~g"),
                alt.Tooltip("speed:Q", title="MACs/cycle", format=".3~g"),
                alt.Tooltip("most:Q", title="at most", format=".3~g"),
                alt.Tooltip("utilization:Q", title="of the peak", format=".1%"),
                alt.Tooltip("bound:N"),
                alt.Tooltip("cycles:Q", format=","),
            ],
        )
    )
    texts = (
        alt.Chart(data(_texts(points, across, up)))
        .mark_text(
            align=alt.expr("datum.far ? 'right' : 'left'"),
            dx=alt.expr("datum.far ? -8 : 8"),
            dy=-8,
        )
        .encode(x=x, y=y, text="text:N")
    )
    return (
        roofs + _reaches([p for p in points if p["most"] is not None], x, y, colour) + dots + texts
    )


def _reaches(points: Sequence[Point], x: alt.X, y: alt.Y, colour: alt.Color) -> Any:
    """Draw how far each point is from what its layer could reach."""
    gaps = alt.Chart(data(points)).encode(x=x, color=colour)
    rules = gaps.mark_rule(opacity=0.4, strokeDash=[2, 2]).encode(y=y, y2="most:Q")
    ends = gaps.mark_tick(orient="horizontal", size=14, thickness=1.5).encode(
        y=alt.Y("most:Q", title=None)
    )
    return rules + ends


def _texts(
    points: Sequence[Point], across: tuple[float, float], up: tuple[float, float]
) -> list[Point]:
    """Return the layers' numbers; those of points that lie close together are one text."""
    groups: list[list[Point]] = []
    for point in points:
        near = (one for one in groups if _is_close(one[0], point, across, up))
        group = next(near, None)
        if group is None:
            groups.append([point])
        else:
            group.append(point)
    return [
        {
            "intensity": max(_number(one["intensity"]) for one in close),
            "speed": max(_number(one["speed"]) for one in close),
            "far": _is_far(close, across),
            "text": _join_numbers([str(one["number"]) for one in close]),
        }
        for close in groups
    ]


def _is_far(points: Sequence[Point], across: tuple[float, float]) -> bool:
    """Return whether there is no room for a text on the right."""
    low, high = (math.log10(end) for end in across)
    most = math.log10(max(_number(one["intensity"]) for one in points))
    return (most - low) / (high - low) > 0.7


def _is_close(
    one: Point, other: Point, across: tuple[float, float], up: tuple[float, float]
) -> bool:
    axes = (("intensity", across, _CLOSE[0]), ("speed", up, _CLOSE[1]))
    return all(
        abs(math.log10(_number(one[field]) / _number(other[field])))
        < most * math.log10(ends[1] / ends[0])
        for field, ends, most in axes
    )


def _join_numbers(numbers: Sequence[str]) -> str:
    return ", ".join(numbers) if len(numbers) <= 4 else f"{', '.join(numbers[:3])} … {numbers[-1]}"


def _caption(run: Run, targets: Sequence[str], roofs: Mapping[str, CoreRecord | UnitRecord]) -> str:
    said = []
    for name in targets:
        peak = roofs.get(name)
        if peak is None:
            said.append(f"{name}: its peak is not known")
            continue
        most = f"{peak.macs_per_cycle:g} MACs/cycle"
        code = peak.code if isinstance(peak, CoreRecord) else None
        most += f" ({code})" if code else ""
        port = f"{peak.bytes_per_cycle:.3g} bytes/cycle" if peak.bytes_per_cycle else "port unknown"
        said.append(f"{name}: {most}, {port}")
    return (
        f"Roofs: {'; '.join(said)}. Assumed: the core's are those of its timing model for integers "
        "without wait states; a unit's are its parameters. Bytes are those that core and unit load "
        "and store, without instructions. Numbers at points are those of the layers; the dash "
        "above one is what it could reach: it has to multiply, load once and wait for memory."
    )
