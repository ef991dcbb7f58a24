"""`GroupedCommand`: a command whose help lists its options under headings."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import click

HEADINGS = (
    "Target",
    "Model and inputs",
    "Samples",
    "Schedules",
    "Checks",
    "Report",
    "Timeline",
    "Waveform",
    "Options",
)
"""In the order of the help."""


class HeadedOption(click.Option):
    """An option that says which heading it is listed under."""

    def __init__(self, *names: Any, heading: str = "Options", **how: Any) -> None:
        super().__init__(*names, **how)
        self.heading = heading


option = partial(click.option, cls=HeadedOption)
"""`click.option` with a ``heading``."""


class GroupedCommand(click.Command):
    """A click command with one section of options for each heading."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does, by `HEADINGS`."""
        sections: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                sections[getattr(parameter, "heading", "Options")].append(record)
        for heading in HEADINGS:
            if sections[heading]:
                with formatter.section(heading):
                    formatter.write_dl(sections[heading])
