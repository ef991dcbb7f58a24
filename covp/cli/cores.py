"""``covp cores``: the cores that a platform file can name."""

from __future__ import annotations

import click

from covp.chip.cores import Core, all_cores
from covp.chip.energy.core_costs import core_area
from covp.cli import options
from covp.cli.lists import ListedCore, ListedTiming
from covp.cli.output import print_json, print_table
from covp.device.rtl.cores import has_rtl
from covp.device.timing.model import TimingModel, core_timing
from covp.report.table import Table, numbers, texts


@click.command()
@options.as_json
def cores(as_json: bool) -> None:
    """List the cores that a platform file can name."""
    known = [(core, core_timing(core) if core.timing else None) for core in all_cores()]
    if as_json:
        print_json([_document(core, timing) for core, timing in known])
        return
    columns = [
        *texts("core", "instruction set", "description", "timing from"),
        *numbers("error", "RTL", "kGE"),
    ]
    print_table(Table("", columns, [_row(core, timing) for core, timing in known]))


def _row(core: Core, timing: TimingModel | None) -> list[str]:
    area = core_area(core)
    errors = timing.errors.values() if timing else ()
    return [
        core.name,
        core.isa.name,
        core.description,
        timing.source if timing else "measured",
        f"{max(errors):.1%}" if errors else "-",
        "yes" if has_rtl(core) else "-",
        f"{area.kge:g}" if area else "-",
    ]


def _document(core: Core, timing: TimingModel | None) -> ListedCore:
    found = None
    if timing is not None:
        found = ListedTiming(
            model=timing.name,
            source=timing.source,
            assumes=timing.assumes,
            error=dict(timing.errors),
        )
    return ListedCore(
        name=core.name,
        description=core.description,
        isa=core.isa.name,
        like=list(core.like),
        timing=found,
        rtl=has_rtl(core),
        area=core_area(core),
    )
