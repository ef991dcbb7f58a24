"""The command ``covp``: subcommands are loaded when they are called, errors are one line."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from covp.base.shortage import demand_address_space
from covp.base.temporary import sweep
from covp.cli.failures import report
from covp.cli.groups import LazyGroup
from covp.cli.output import echo


def occupy_closed_streams() -> None:
    """Open a failing stream for each standard stream that a shell closed (``covp run ... >&-``).

    Else the next file that is opened would take its number, and get what is printed.
    """
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDWR)):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, flags)  # takes the lowest free number
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def drop_output() -> None:
    """Forget what could not be printed, so that the interpreter does not try again at exit."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115


@contextmanager
def until_ctrl_c() -> Iterator[None]:
    """End the block at Ctrl-C and say so on standard error."""
    try:
        yield
    except KeyboardInterrupt:
        echo("stopped", err=True)


def wait_for_ctrl_c() -> None:
    """Block until Ctrl-C.

    In short sleeps: a signal that another thread happens to take does not end an untimed wait.
    """
    while True:
        time.sleep(0.1)


SECTIONS = {
    "Run": {
        "run": "Run a model once on a platform, check it, report it.",
        "compare": "Compare the core alone with accelerators, or platforms.",
        "fits": "Try models on every platform: fits, or what is too big; time.",
        "report": "Show runs and sweeps as a page, figures or CSV.",
    },
    "Explore": {
        "sweep": "Evaluate many designs, by a grid or a search.",
        "tune": "Search kernel schedules for the layers of a model.",
        "mlperf": "Measure models in the manner of MLPerf Tiny.",
    },
    "Trust": {
        "verify": "Try layers and misuse on an accelerator.",
        "bisect": "Find a model's first wrong layer, function and line.",
        "check": "Fail where figures got worse than a baseline's.",
        "core": "Check a core's RTL beside the virtual device; start one.",
        "calibrate": "Fit a timing model to measured cycles.",
        "reproduce": "Run a saved run again, and say what differs.",
    },
    "Ship": {
        "export": "Write a model as a C project for a build system.",
        "firmware": "Run a firmware image on a virtual board.",
        "multicore": "Run firmware on all cores of a platform.",
        "board": "Serve a virtual board to MLPerf Tiny's runner.",
    },
    "Debug": {
        "debug": "Attach GDB or OpenOCD to a virtual board.",
        "show": "Print a model's graph after a pass, its layers, its C.",
        "openocd": "Flash and inspect real boards through OpenOCD.",
    },
    "Look up": {
        "models": "List the models of the zoo, fetch their files.",
        "platforms": "List the platforms.",
        "accelerators": "List the accelerators.",
        "cores": "List the cores.",
    },
    "Setup": {
        "doctor": "List the tools that are installed and what they enable.",
        "cache": "Show, limit or clear the cache.",
        "new": "Create an accelerator or a platform file.",
    },
}
COMPLETION = "_COVP_COMPLETE"
"""The variable by which a shell asks for completion, as click has it."""
FIRST = """\
A trained network and a microcontroller: does it run, bit-exactly, how fast, in how much memory,
and what would an accelerator bring? Five commands to copy:

  covp run kws                                  a network on a virtual core; or your .tflite, .onnx
  covp fits kws --budget ms=50,ram=64K          which boards it fits, how fast it is there
  covp compare kws -p riscv32 -a qconv2d        the core alone beside an accelerator
  covp new accelerator mac8                     an accelerator of your own, one Python class
  covp export kws -p nucleo-l4r5zi -o firmware  a C project for the board

`covp --help` lists all commands, `covp COMMAND --help` the options of one."""
COMMANDS = tuple(name for section in SECTIONS.values() for name in section)
"""Each is a module of this package with a click command of its name."""


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    hidden=("gdbserver", "debugport"),
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="covp")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def covp(debug: bool) -> None:
    """Simulation-first co-design of TinyML models, microcontrollers and accelerators.

    An option's default can come from the environment: COVP_COMMAND_OPTION by its long name, such
    as COVP_RUN_PLATFORM=riscv32 for `covp run`.
    """
    if click.get_current_context().invoked_subcommand is None:
        echo(FIRST)


class _OnTerminal(logging.Handler):
    """Handler that writes log messages to standard error, as Python does by itself."""

    def emit(self, record: logging.LogRecord) -> None:
        echo(record.getMessage(), err=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 the work failed, 2 the call is wrong."""
    occupy_closed_streams()
    logging.basicConfig(handlers=[_OnTerminal(logging.WARNING)])
    given = list(sys.argv[1:] if arguments is None else arguments)
    if COMPLETION in os.environ:
        covp.main(given, prog_name="covp")
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
            demand_address_space()
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
