"""Estimated energy beside MLPerf Tiny's measured one, and the tables of docs/energy.md.

    python benchmarks/energy.py [--write] [--coefficients]

The first table multiplies the published run times by the clock and by the coefficient of the
platform's table: it tests the coefficient alone, on software that is not covp's. The second has
covp's own programs: their estimated cycles and energy, beside the published energies on the same
part. With --write the tables in docs/energy.md are replaced, with --coefficients only those that
need no run.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from results import table

from covp import load_platform
from covp.chip.energy.coefficients import CoefficientTable, microcontrollers, technologies
from covp.chip.energy.core_costs import core_areas
from covp.evaluation import build, recorded_schedules, run
from covp.evaluation.energy import Energy

PAGE = Path(__file__).parents[1] / "docs" / "energy.md"
PUBLISHED = json.loads(Path(__file__).with_name("energy_anchors.json").read_text())["rows"]
MODELS = ("resnet", "kws", "vww", "toycar")
PLATFORMS = ("stm32l4r5", "cortex-m33")
INCONSISTENT = {("v1.1 (c32ef94d)", "STMicroelectronics", "stm32l4r5", "resnet")}
"""Its energy run has another rate than its performance run."""


def coefficients(tables: Iterable[CoefficientTable]) -> str:
    """Every figure with unit, technology, voltage and source."""
    rows = [
        (
            f"`{one.name}`",
            f"`{key}`",
            f"{c.value:g}" + (f" ({c.low:g} to {c.high:g})" if c.low and c.high else ""),
            c.unit,
            c.node or "not stated",
            f"{c.volts:g} V" if c.volts else "not stated",
            "; ".join(filter(None, (one.about, c.note))),
            c.source,
        )
        for one in tables
        for key, c in one.coefficients.items()
    ]
    head = ("table", "key", "value", "unit", "technology", "supply", "what", "source")
    return table(head, rows, text_columns=len(head))


def areas() -> str:
    """The cores that Yosys made cells of."""
    rows = [
        (
            f"`{name}`",
            area.configuration,
            f"{area.cells:,}",
            f"{area.flip_flops:,}",
            f"{area.memory_bits:,}",
            f"{area.kge:g}",
        )
        for name, area in core_areas().items()
    ]
    head = ("core", "configuration", "cells", "flip-flops", "bits in memories", "kGE")
    return table(head, rows, text_columns=2)


def per_volt(platform: str) -> tuple[float, float]:
    """The platform's pJ/cycle, and the volts that it is for."""
    energy = load_platform(platform).energy
    assert energy is not None and energy.run.volts is not None
    return energy.run.value, energy.run.volts


def coefficient_check() -> str:
    """The coefficient times the published cycles beside the published energy."""
    rows, deviations = [], []
    for one in PUBLISHED:
        pj, volts = per_volt(one["platform"])
        cells = []
        for model in MODELS:
            deviation = _deviation(one, model, pj, volts)
            known = one["volts"] and (*_key(one), model) not in INCONSISTENT
            cells.append(f"{deviation:+.0%}{'' if known else ' *'}")
            if known:
                deviations.append(abs(deviation))
        supply = f"{one['volts']:g} V" if one["volts"] else "not stated"
        rows.append(
            (one["results"], one["submitter"], one["platform"], one["stack"], supply, *cells)
        )
    head = ("results", "submitter", "platform", "software", "supply", *MODELS)
    text = table(head, rows, text_columns=5)
    return (
        f"{text}\n\nOver the {len(deviations)} figures without a star: median "
        f"{statistics.median(deviations):.0%}, worst {max(deviations):.0%}."
    )


def _key(one: dict[str, Any]) -> tuple[str, str, str]:
    return one["results"], one["submitter"], one["platform"]


def _deviation(one: dict[str, Any], model: str, pj: float, volts: float) -> float:
    """Relative; the current is taken as independent of the supply, as it is behind an LDO."""
    milliseconds, microjoules = one["ms_uj"][model]
    cycles = milliseconds * 1e-3 * one["clock_hz"]
    scale = one["volts"] / volts if one["volts"] else 1.0
    return float(cycles * pj * scale * 1e-6 / microjoules - 1)


def own_estimates() -> Iterator[tuple[str, ...]]:
    """covp's programs beside the least and greatest published energies at the same supply."""
    for platform_name in PLATFORMS:
        platform = load_platform(platform_name)
        _, volts = per_volt(platform_name)
        for model in MODELS:
            made = build(model, platform, schedules=recorded_schedules(platform))
            result = run(made)
            assert result.matches_reference and isinstance(result.energy, Energy)
            published = sorted(
                (one["ms_uj"][model][1], one["stack"])
                for one in PUBLISHED
                if (one["platform"], one["volts"]) == (platform_name, volts)
                and (*_key(one), model) not in INCONSISTENT
            )
            least, greatest = published[0], published[-1]
            joules = result.energy.joules * 1e6
            yield (
                platform_name,
                model,
                f"{result.profile.cycles:,}",
                f"{joules:,.0f}",
                f"{least[0]:,.0f} ({least[1]})",
                f"{greatest[0]:,.0f} ({greatest[1]})",
                f"{joules / least[0] - 1:+.0%}",
            )


def own_table() -> str:
    """`own_estimates` in Markdown."""
    head = (
        "platform", "model", "cycles, estimated", "uJ, estimated", "least published uJ",
        "greatest published uJ", "to the least",
    )  # fmt: skip
    return table(head, own_estimates(), text_columns=2)


SHORT = {
    "microcontrollers": lambda: coefficients(microcontrollers().values()),
    "technologies": lambda: coefficients(technologies().values()),
    "cores": areas,
    "published": coefficient_check,
}
"""Tables that need no run, by their marker in the page."""
ALL = SHORT | {"own": own_table}


def replaced(page: str, name: str, text: str) -> str:
    """The page with the text between a table's markers."""
    mark = f"<!-- {name} -->"
    found, count = re.subn(
        f"{mark}.*?{mark}", lambda _: f"{mark}\n{text}\n{mark}", page, flags=re.S
    )
    assert count == 1, f"docs/energy.md has no {mark}"
    return found


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="replace them in docs/energy.md")
    parser.add_argument("--coefficients", action="store_true", help="only those without a run")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    for name, make in (SHORT if given.coefficients else ALL).items():
        text = make()
        print(f"## {name}\n\n{text}\n", flush=True)
        page = replaced(page, name, text)
    if given.write:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
