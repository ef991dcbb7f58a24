"""The command ``covp``: subcommands are loaded when they are called, errors are one line."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from covp.base.temporary import sweep
from covp.cli.failures import report
from covp.cli.streams import drop_output, occupy_closed_streams
from covp.errors import near_misses

COMMANDS = (
    "accelerators",
    "bisect",
    "board",
    "cache",
    "calibrate",
    "check",
    "compare",
    "cores",
    "debugport",
    "doctor",
    "export",
    "firmware",
    "gdbserver",
    "mlperf",
    "models",
    "multicore",
    "new",
    "openocd",
    "platforms",
    "report",
    "run",
    "sweep",
    "tune",
    "verify",
)
"""Each is a module of this package with a click command of its name."""


class LazyGroup(click.Group):
    """A group that imports a subcommand's module only when it is needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        """All names, without importing them."""
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The subcommand, or None."""
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"covp.cli.{name}"), name)
        _read_environment(command, f"COVP_{name}")
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with near misses for an unknown name."""
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-"):
            context.fail(f"no command {name!r}: {near_misses(name, COMMANDS)}")
        return super().resolve_command(context, arguments)


def _read_environment(command: click.Command, prefix: str) -> None:
    """Give each option a variable of its long name; click's own are those of Python parameters."""
    for option in command.params:
        if isinstance(option, click.Option):
            long = max(option.opts, key=len).lstrip("-")
            option.envvar = f"{prefix}_{long}".replace("-", "_").upper()
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            _read_environment(inner, f"{prefix}_{name}")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="covp")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def covp(debug: bool) -> None:
    """Simulation-first co-design of TinyML models, microcontrollers and accelerators.

    An option's default can come from the environment: COVP_COMMAND_OPTION by its long name, such
    as COVP_RUN_PLATFORM=riscv32 for `covp run`.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 the work failed, 2 the call is wrong."""
    occupy_closed_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    # accepted after a subcommand too
    given = [argument for argument in given if argument != "--debug"]
    status = _run(given, debug)
    sweep(Path(tempfile.gettempdir()))
    sys.exit(status)


def _run(arguments: list[str], debug: bool) -> int:
    try:
        # not covp.main(): it would print a line of its own on Ctrl-C
        with covp.make_context("covp", arguments) as context:
            status = covp.invoke(context)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # the reader has gone, as with `| head`
        drop_output()
        return 0
    except (KeyboardInterrupt, click.ClickException, click.exceptions.Abort) as error:
        return _report(error, arguments)
    except Exception as error:
        if debug:
            raise
        return _report(error, arguments)


def _report(error: BaseException, arguments: list[str]) -> int:
    """Print an error; the exit status, whether or not there is anywhere to print to."""
    status = 1
    try:
        status = report(error, arguments)
        sys.stdout.flush()
    except OSError:
        drop_output()
    return status
