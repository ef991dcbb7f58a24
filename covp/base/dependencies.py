"""The lowest versions of covp's dependencies, by its own metadata, checked where they count.

pip installs no lower ones by itself, and later installations may.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re

from covp.errors import CovpError


@functools.cache
def demand_version(library: str) -> None:
    """Nothing where the library is of a version that covp works with, which is known to be right.

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
    """("unicorn", "2.1.4") of "unicorn>=2.1.4"; "" where a requirement has no lowest version."""
    name, _, version = requirement.partition(";")[0].partition(">=")
    return name.partition("[")[0].strip(), version.strip()


def _numbers(version: str) -> tuple[int, ...]:
    """Of a release: of "2.1.4rc1" (2, 1, 4)."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()
