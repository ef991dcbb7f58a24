"""``covp platforms``: what can be named with --platform."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from covp.chip.energy.core_area import core_area
from covp.chip.platform_file import Platform, load_platform, platform_aliases, platform_names
from covp.cli import options
from covp.cli.output import echo, print_json, print_table
from covp.report.table import Table, numbers, texts


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
                {
                    "name": p.name,
                    "alias_of": aliases.get(p.name),
                    "description": p.description,
                    "core": p.core.name,
                    "clock_hz": p.clock_hz if has_clock(p) else None,
                    "flash_bytes": size(p, "flash"),
                    "ram_bytes": size(p, "ram"),
                    "accelerator_slot": p.accelerators is not None,
                    "energy": _energy(p),
                    "core_area": msgspec.to_builtins(core_area(p.core)),
                }
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


def _energy(platform: Platform) -> dict[str, Any] | None:
    if platform.energy is None:
        return None
    run, sleep = platform.energy.run, platform.energy.sleep
    return {
        "pj_per_cycle": run.value,
        "pj_per_sleep_cycle": sleep.value if sleep else None,
        "model": platform.energy.model,
        "assumes": platform.energy.conditions,
        "source": run.source,
    }
