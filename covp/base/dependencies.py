"""covp's dependencies: extras that may be missing, and the lowest versions by its own metadata.

pip installs no lower ones by itself, and later installations may.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import re
from typing import Any

from covp.errors import CovpError, UsageError

INSTALL = "."
"""Argument of pip that installs covp: its folder, or ``covp`` once it is on an index."""


def get_extra(name: str) -> str:
    """Return the command that installs an extra of covp, such as ``sweep``."""
    return f"pip install '{INSTALL}[{name}]'" + " in covp's folder" * (INSTALL == ".")


def load_extra(module: str, extra: str) -> Any:
    """Return a module that an extra of covp installs, imported when it is used.

    Raises:
        UsageError: it is not installed; the text says how to get it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = (error.name or module).partition(".")[0]
        raise UsageError(f"this needs {name}: {get_extra(extra)}") from None


@functools.cache
def demand_version(library: str) -> None:
    """Raise CovpError where the library is older than those that covp is known to work with.

    Args:
        library: its distribution's name, one of covp's dependencies.

    Raises:
        CovpError: it is an older one.
    """
    try:
        required = importlib.metadata.requires("covp") or []
        found = importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # covp or the library was not installed by pip
        return
    lowest = {name: version for name, version in map(_lowest, required) if version}.get(library)
    if lowest is not None and _numbers(found) < _numbers(lowest):
        raise CovpError(
            f"{library} {found} is too old, covp's results with it may be wrong: "
            f"pip install '{library}>={lowest}'"
        )


def _lowest(requirement: str) -> tuple[str, str]:
    """Return ("unicorn", "2.1.4") for "unicorn>=2.1.4"; "" where there is no lowest version."""
    name, _, version = requirement.partition(";")[0].partition(">=")
    return name.partition("[")[0].strip(), version.strip()


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a release: (2, 1, 4) for "2.1.4rc1"."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()
