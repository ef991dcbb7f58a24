"""Print failures: one line on standard error, with --json a document on standard output.

Exit status: 0 done, 1 the work failed or a check did not hold, 2 the call itself is wrong,
130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

import click
import msgspec

from covp.base.document import Bytes, Count
from covp.base.shortage import small_address_space
from covp.cli.output import echo, print_json
from covp.errors import CovpError, DeviceFault, Subject

INTERRUPTED = 130
_WHERE = re.compile(r"^(?P<where>[^\s:]*[./][^\s:]*(?::\d+)?|[a-z_]+(?:\[\d+\])?(?:\.\w+)*): ")
_ENDLESS = re.compile(r"(\S{60})\S{180,}(\S{60})")
_HINT = re.compile(r"(?:; |: )(?=did you mean |known are |see )|; ")


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A failure: its line, and what the line says as values.

    Attributes:
        kind: the class in [errors](reference/errors.md), or `OSError`, `MemoryError`,
            `Interrupted`, `InternalError`
        message: the line on standard error, without `covp: `
        where: file, key or code address; null where the message names none
        hint: the part of the message that says what would fix it
        key: of a file that it is about, as `memory[0].size`
        operator: of a model, by its name
        tensor: of a model, by its name
        address: of memory
        length: from `address`
        needed: of memory, in one piece
        available: of memory, in one piece
    """

    kind: str
    message: str
    where: str | None = None
    hint: str | None = None
    key: str | None = None
    operator: str | None = None
    tensor: str | None = None
    address: Count | None = None
    length: Bytes | None = None
    needed: Bytes | None = None
    available: Bytes | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.error/1"):
    """The output of a failed command with ``--json``."""

    error: ErrorRecord


def report(error: BaseException, arguments: Sequence[str]) -> int:
    """Print an error in one line, and as JSON where that is wanted; the exit status."""
    status, kind, message = _classify(error)
    echo(f"covp: {message}", err=True)
    if wants_json(arguments):
        print_json(Failure(error=_record(error, kind, message)))
    return status


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether the call asks for JSON, by option or environment variable."""
    options = list(arguments)
    if "--" in options:
        options = options[: options.index("--")]
    command = next((word for word in options if not word.startswith("-")), "")
    variable = os.environ.get(f"COVP_{command}_JSON".upper(), "")
    return "--json" in options or variable.lower() in ("1", "true", "t", "yes", "y", "on")


def _classify(error: BaseException) -> tuple[int, str, str]:
    """Return exit status, kind and the line of an error."""
    if isinstance(error, (KeyboardInterrupt, click.exceptions.Abort)):
        return INTERRUPTED, "Interrupted", "interrupted"
    if isinstance(error, click.ClickException):
        return error.exit_code, "UsageError", _wrong_call(error)
    if isinstance(error, CovpError):
        return error.exit_status, type(error).__name__, _one_line(str(error))
    if isinstance(error, OSError):
        return 1, "OSError", _os_error(error)
    limit = small_address_space()
    if isinstance(error, MemoryError) or (isinstance(error, ImportError) and limit):
        parts = ("not enough memory on this machine", _one_line(str(error)))
        text = ": ".join(filter(None, parts)) if isinstance(error, MemoryError) else parts[0]
        return 1, "MemoryError", f"{text}; {limit}" if limit else text
    text = f"internal error: {type(error).__name__}: {_one_line(str(error))}"
    return 1, "InternalError", f"{text}; run again with --debug and report the traceback"


def _wrong_call(error: click.ClickException) -> str:
    """Return click's message as one line."""
    text = _one_line(error.format_message()).rstrip(".")
    if isinstance(error, click.UsageError) and not text.endswith("?"):
        path = error.ctx.command_path if error.ctx else "covp"
        text += f"; see `{path} --help`"
    return text


def _os_error(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    where = error.filename2 or error.filename
    if where is None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            where = "standard output"
    if isinstance(where, bytes):
        where = os.fsdecode(where)
    return _one_line(f"{where}: {reason}" if isinstance(where, str) else reason)


def _one_line(text: str) -> str:
    """Return the text on one line; of names too long for it, the ends."""
    words = _ENDLESS.sub(r"\1...\2", " ".join(text.split()))
    return words.encode(errors="backslashreplace").decode()


def _record(error: BaseException, kind: str, message: str) -> ErrorRecord:
    """Return an error's own fields; where and hint are else those that its text says."""
    where, hint = None, None
    subject: Subject = error.subject if isinstance(error, CovpError) else {}
    if isinstance(error, CovpError):
        where, hint = error.where, error.hint
    elif isinstance(error, OSError) and isinstance(error.filename, str):
        where = error.filename
    if where is None and not isinstance(error, DeviceFault):
        match = _WHERE.match(message)
        where = match["where"] if match else None
    elif where is not None and isinstance(error, CovpError):
        where = _one_line(where)
    if hint is not None:
        hint = _one_line(hint)
    elif _HINT.search(message):
        hint = _HINT.split(message)[-1]
    return ErrorRecord(kind=kind, message=message, where=where, hint=hint, **subject)
