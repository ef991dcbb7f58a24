"""`platform_content`: a key of all that the figures of a platform depend on."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import msgspec

from covp.base.cache import content_key
from covp.chip.cores import find_core, timing_file
from covp.chip.platform_file import Platform


def platform_content(platform: Platform) -> str:
    """Return a hash of a platform: of its values and the user's own cores and timing model."""
    values = msgspec.to_builtins(platform)
    timing = values.pop("timing", None)
    for core in (values, *values["further_cores"]):
        core["core"] = core_content(core["core"])
    return content_key(json.dumps(values, sort_keys=True), timing_content(timing))


def core_content(core: str) -> str:
    """Return name and content of a core in a user's folder; else its name."""
    return find_core(core).key


def timing_content(timing: str | None) -> str:
    """Return the content of a timing model that is a file; else its name."""
    path = timing_file(timing)
    return (
        f"{file_content(str(path))}{str(timing).removeprefix(str(path))}" if path else str(timing)
    )


def file_content(path: str) -> str:
    """Return the hash of a file; it is read again when it has changed."""
    state = Path(path).stat()
    return _file_at(path, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=256)
def _file_at(path: str, changed: int, size: int) -> str:
    return content_key(Path(path).read_bytes())
