"""`GroupedCommand`: a command whose help lists its options under headings."""

from __future__ import annotations

from typing import ClassVar

import click

_OTHERS = "Options"


class GroupedCommand(click.Command):
    """A click command; `HEADINGS` says under which heading each option is listed.

    Attributes:
        HEADINGS: heading to parameter names, in the order of the help; what is in none of them
            comes last.
    """

    HEADINGS: ClassVar[dict[str, tuple[str, ...]]] = {
        "Target": ("platform", "accelerators", "allow_slower", "overlap", "device", "toolchain"),
        "Model and inputs": ("shapes", "states", "streaming", "operators", "inputs", "seed"),
        "Samples": (
            "samples",
            "labels",
            "data_on",
            "data_limit",
            "float_model",
            "jobs",
        ),
        "Schedules": ("optimize", "flash_trade", "max_scratch", "tuned"),
        "Checks": ("check", "sanitize", "ubsan", "require_offload", "against", "ulps"),
        "Report": ("profile", "causes", "traffic", "explain", "output", "as_json"),
        "Timeline": ("trace", "vcd"),
        "Waveform": ("wave", "wave_cycles", "wave_layer"),
    }

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """One section per heading that the command has options of."""
        headings = {name: head for head, names in self.HEADINGS.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {
            head: [] for head in (*self.HEADINGS, _OTHERS)
        }
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                sections[headings.get(parameter.name or "", _OTHERS)].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
