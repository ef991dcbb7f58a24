"""``covp platforms``: what can be named with --platform."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import click

from covp.chip.energy.core_costs import core_area
from covp.chip.platform_file import Platform, load_platform, platform_aliases, platform_names
from covp.cli import options
from covp.cli.data import SampleOptions, accuracy_cell, data_lines, run_data
from covp.cli.lists import ListedEnergy, ListedPlatform
from covp.cli.output import echo, print_json, print_table, progress, warn
from covp.cli.verdict import amount, difference_lines, equality, reproduction
from covp.evaluation import ScheduleSource, Trial
from covp.evaluation.comparison import share_text
from covp.evaluation.documents import Survey
from covp.report.table import Table, Value, numbers, texts


def compare_platforms(
    tries: Callable[[str], Iterator[Trial]],
    models: Sequence[str],
    platforms: Sequence[Platform],
    accelerators: Sequence[str],
    data: SampleOptions | None,
    device: str,
    as_json: bool,
) -> int:
    """Try each model on each platform and report.

    Args:
        tries: gives a model's trials, one per platform.
        models: names or paths.
        platforms, accelerators: as they were requested.
        data: samples for each model, on each platform.
        device: as for `Session`.
        as_json: one JSON document instead of the table.

    Returns:
        The exit status: 1 where an output differs from the reference's.
    """
    found: list[Trial] = []
    given: list[tuple[str, str]] = []
    names = click.get_current_context().params["platforms"]
    with progress("running", len(models) * len(platforms)) as advance:
        for model in models:
            for name, trial in zip(names, tries(model), strict=True):
                found.append(trial)
                given.append((model, name))
                advance(f"{trial.model} on {trial.platform.name}")
    found = list(_with_data(found, given, data, device))
    warn(
        f"{t.model} on {t.platform.name}: {w}" for t in found if t.result for w in t.result.warnings
    )
    if as_json:
        print_json(
            Survey(
                platforms=[platform.name for platform in platforms],
                accelerators=list(accelerators),
                rows=[trial.record() for trial in found],
            )
        )
    else:
        _report(found, given, accelerators)
    return 0 if all(trial.result.matches_reference for trial in found if trial.result) else 1


def _with_data(
    found: Sequence[Trial],
    given: Sequence[tuple[str, str]],
    data: SampleOptions | None,
    device: str,
) -> Iterator[Trial]:
    """Yield the trials, those of each model with its samples."""
    rows = list(zip(found, (model for model, _ in given), strict=True))
    for model, group in groupby(rows, lambda row: row[1]):
        trials = [trial for trial, _ in group]
        results = iter(run_data([t.result for t in trials if t.result], data, model, device))
        for trial in trials:
            yield replace(trial, result=next(results)) if trial.result else trial


def _report(
    found: Sequence[Trial], given: Sequence[tuple[str, str]], accelerators: Sequence[str]
) -> None:
    results = [trial.result for trial in found if trial.result]
    if accelerators:
        echo(f"with {' + '.join(accelerators)}")
    if results:
        echo(f"{sum((r.build.schedules for r in results), ScheduleSource())}")
    offloaded = ["MACs offloaded"] if accelerators else []
    accuracy = ["accuracy"] if any(result.data for result in results) else []
    columns = [
        *texts("model", "platform", "fits"),
        *numbers("instructions", "time", "flash", "RAM", *offloaded, "free", "bit-exact"),
        *numbers(*accuracy),
    ]
    rows = [_row(trial, bool(accelerators))[: len(columns)] for trial in found]
    print_table(Table("", columns, rows, drop=["free"]))
    for result in results:
        if result.data is not None:
            for line in data_lines(result.data):
                echo(f"{result.model} on {result.platform.name}: {line}")
    for trial in found:
        if trial.reason is not None:
            echo(f"{trial.model} on {trial.platform.name}: {trial.reason}")
    if line := amount(results):
        echo(line)
    _print_differences(found, given, accelerators)
    for text in sorted({f"{r.platform.name}: {r.profile.sources.cycles}" for r in results}):
        echo(f"cycles on {text}")


def _print_differences(
    found: Sequence[Trial], given: Sequence[tuple[str, str]], accelerators: Sequence[str]
) -> None:
    for trial, (model, platform) in zip(found, given, strict=True):
        result = trial.result
        if result is not None and not result.matches_reference:
            name = trial.platform.name
            again = reproduction(model, platform, tuple(accelerators), result.sample.seed)
            for line in difference_lines(result, again):
                echo(f"wrong in {trial.model} on {name}: {line}")


def _row(trial: Trial, offloads: bool) -> list[Value]:
    result = trial.result
    start: list[Value] = [trial.model, trial.platform.name, "yes" if trial.fits else "NO"]
    if result is None:
        return start + [None] * (8 if offloads else 7)
    seconds = result.profile.seconds
    return [
        *start,
        result.profile.instructions,
        None if seconds is None else f"{seconds * 1e3:,.2f} ms",
        result.memory.flash_bytes,
        result.memory.ram_bytes,
        *([share_text(result.mac_coverage)] if offloads else []),
        ", ".join(f"{use.name} {use.free_bytes // 1024:,} KB" for use in trial.regions),
        equality([result]),
        accuracy_cell(result.data),
    ]


@click.command()
@options.as_json
def platforms(as_json: bool) -> None:
    """List the platforms that can be named with --platform."""
    known = [load_platform(name) for name in platform_names()]
    aliases = platform_aliases()

    def size(platform: Platform, kind: str) -> int:
        return sum(region.bytes for region in platform.memory if region.kind == kind)

    def has_clock(platform: Platform) -> bool:
        """Return whether the clock is configurable; not on this machine, whose time is measured."""
        return platform.core.architecture != "x86"

    if as_json:
        print_json(
            [
                ListedPlatform(
                    name=p.name,
                    alias_of=aliases.get(p.name),
                    description=p.description,
                    core=p.core.name,
                    clock_hz=p.clock_hz if has_clock(p) else None,
                    flash_bytes=size(p, "flash"),
                    ram_bytes=size(p, "ram"),
                    accelerator_slot=p.accelerators is not None,
                    energy=_energy(p),
                    core_area=core_area(p.core),
                )
                for p in known
            ]
        )
        return
    rows = [
        [
            p.name,
            p.core.name,
            p.description,
            f"{p.clock_hz / 1e6:g} MHz" if has_clock(p) else "-",
            f"{size(p, 'flash') // 1024:,} KB",
            f"{size(p, 'ram') // 1024:,} KB",
        ]
        for p in known
        if p.name not in aliases
    ]
    columns = [*texts("platform", "core", "description"), *numbers("clock", "flash", "RAM")]
    print_table(Table("", columns, rows, drop=["core"]))
    also: dict[str, list[str]] = {}
    for alias, name in sorted(aliases.items()):
        also.setdefault(name, []).append(alias)
    echo("other names: " + "; ".join(f"{name}: {', '.join(also[name])}" for name in sorted(also)))


def _energy(platform: Platform) -> ListedEnergy | None:
    if platform.energy is None:
        return None
    run, sleep = platform.energy.run, platform.energy.sleep
    return ListedEnergy(
        pj_per_cycle=run.value,
        pj_per_sleep_cycle=sleep.value if sleep else None,
        model=platform.energy.model,
        assumes=platform.energy.conditions,
        source=run.source,
    )
