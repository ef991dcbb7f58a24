"""The output of compilers and linkers: error messages and lists of included files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from covp.base.shortage import full_disk, small_address_space, small_files

_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$"
)
_UNDEFINED = re.compile(r"undefined (?:symbol: |reference to )[`']?(?P<symbol>[^\s'`]+)")
_REFERENCE = re.compile(r"(?:>>> referenced by |^)(?P<file>[^\s:()]+\.[cS]):(?P<line>\d+)", re.M)
_LINKER = re.compile(r"^\S*\bld(?:\.lld)?: ?(?:error: )?(?:\S*/out\.elf )?")


def first_error(stderr: str, tool: str) -> str:
    """Return a compiler's or linker's first error as one line, with file and line if it says so."""
    for line in stderr.splitlines():
        found = _ERROR.match(line)
        if found:
            return f"{Path(found['file']).name}:{found['line']}: {found['text']}"
    undefined = _UNDEFINED.search(stderr)
    if undefined:
        place = _REFERENCE.search(stderr)
        where = f"{Path(place['file']).name}:{place['line']}: " if place else ""
        return f"{where}undefined symbol {undefined['symbol']}"
    lines = [_LINKER.sub("", line.strip()) for line in stderr.splitlines()]
    lines = [line for line in lines if line and not line.startswith("collect2")]
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return f"{tool}: {first or 'failed without a message'}"


def failure(stderr: str, tool: str, folders: Iterable[Path]) -> str:
    """Return why a compiler or linker failed, as one line; what is short where it blames no file.

    Args:
        stderr: what it printed.
        tool: its name.
        folders: that it writes in.
    """
    text = first_error(stderr, tool)
    if any(map(_ERROR.match, stderr.splitlines())):
        return text
    short = full_disk(folders) or small_files() or small_address_space()
    return f"{text}; {short}" if short else text


def dependencies(text: str) -> list[str]:
    """Return the file names of a make rule as compilers write it ("\\ " is a space)."""
    _, _, files = text.replace("\\\n", " ").partition(": ")
    return [name.replace("\\ ", " ") for name in re.findall(r"(?:\\.|\S)+", files)]
