"""`GroupedCommand`, `LazyGroup`: options and commands under headings, loaded when called."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click

from covp.errors import near_misses

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
"""Headings in the order of the help."""


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
        """Write the options under their `HEADINGS`."""
        sections: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                sections[getattr(parameter, "heading", "Options")].append(record)
        for heading in HEADINGS:
            if sections[heading]:
                with formatter.section(heading):
                    formatter.write_dl(sections[heading])


class LazyGroup(click.Group):
    """A group that imports the module of a command when it is called.

    Args:
        sections: heading to commands, name and line of the help; the command ``name`` is of the
            module ``covp.cli.name``.
        modules: those of other names, by name of the command.
        hidden: commands that the help does not list.
    """

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str] | None = None,
        hidden: Sequence[str] = (),
        **how: Any,
    ) -> None:
        super().__init__(*arguments, **{"no_args_is_help": True, **how})
        self.sections, self._modules = sections, modules or {}
        self._lines = {name: line for lines in sections.values() for name, line in lines.items()}
        self._known = {*self._lines, *hidden}

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return list(self._lines)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the subcommand, or None."""
        if name not in self._known:
            return None
        home = self._modules.get(name, name)
        command: click.Command = getattr(importlib.import_module(f"covp.cli.{home}"), home)
        read_environment(command, f"{context.command_path} {name}")
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command as click does, with near misses for an unknown name."""
        name = arguments[0]
        if name not in self._known and not name.startswith("-"):
            context.fail(f"no command {name!r}: {near_misses(name, self._lines)}")
        return super().resolve_command(context, arguments)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each heading."""
        width = max(map(len, self._lines))
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:{width}}", line) for name, line in commands.items()])


def read_environment(command: click.Command, path: str) -> None:
    """Give each option a variable of its long name; click's own are those of Python parameters.

    Args:
        command: whose options, and those of its subcommands.
        path: the command with its groups, such as "covp run".
    """
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            long = max(parameter.opts, key=len).lstrip("-")
            parameter.envvar = re.sub("[ -]", "_", f"{path} {long}").upper()
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            read_environment(inner, f"{path} {name}")
