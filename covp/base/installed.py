"""`brought`, `find_brought`: platforms, cores and others of installed packages, by entry points.

A package names what it brings in its metadata, so that nothing of it is imported to list it:

    [project.entry-points."covp.platforms"]
    my-board = "covp_vendor.platforms"      # the file my-board.yaml in that package

    [project.entry-points."covp.cores"]
    fast-ibex = "covp_vendor.cores"         # the folder fast-ibex in that package
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from covp.errors import PlatformError

PLATFORMS, CORES = "covp.platforms", "covp.cores"
GROUPS = {
    PLATFORMS: "platform",
    CORES: "core",
    "covp.accelerators": "accelerator",
    "covp.operators": "operators",
    "covp.layouts": "layout",
}
"""Each entry point group, and what its entries are."""


@dataclass(frozen=True)
class Brought:
    """Something that an installed package brings.

    Attributes:
        kind: one of the values of `GROUPS`.
        name: as users write it.
        package: name and version of the distribution.
        value: of the entry point: a package, or a module and an object in it.
    """

    kind: str
    name: str
    package: str
    value: str

    def folder(self) -> Path:
        """Return the folder of the package that the entry point names, which is not imported.

        Raises:
            PlatformError: there is none.
        """
        places = _places(self.value)
        if not places:
            raise PlatformError(
                f"{self.kind} {self.name}: {self.package} names {self.value}, which is not a "
                "package"
            )
        return Path(places[0])


@functools.cache
def brought(group: str) -> dict[str, tuple[Brought, ...]]:
    """Return what installed packages bring of a group, by name; several where names clash."""
    found: dict[str, tuple[Brought, ...]] = {}
    for entry in entry_points(group=group):
        one = Brought(GROUPS[group], entry.name, _package(entry), entry.value)
        found[entry.name] = (*found.get(entry.name, ()), one)
    return found


def single(group: str) -> list[str]:
    """Return the names in a group that a single package brings, with a folder."""
    known = brought(group).items()
    return [name for name, each in known if len(each) == 1 and _places(each[0].value)]


def _places(package: str) -> list[str]:
    """Return the folders of a package; none where there is no such package."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec else []


def find_brought(group: str, name: str) -> Brought | None:
    """Find what one package brings under a name; None where none does.

    Raises:
        PlatformError: several packages do.
    """
    found = brought(group).get(name, ())
    if len(found) > 1:
        both = " and ".join(one.package for one in found)
        raise PlatformError(f"{found[0].kind} {name}: {both} bring one each; uninstall one of them")
    return found[0] if found else None


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
