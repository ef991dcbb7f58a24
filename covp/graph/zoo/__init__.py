"""The model zoo: MLPerf Tiny's models by name, from disk, the download cache, or made here.

And others of public repositories. Some have no official file and are always made here.

A model comes from the folder that ``COVP_MODEL_DIR`` names, else from what `fetch` downloaded,
else it is built: the same topology with seeded random weights, which computes as much and means
nothing. `ZooModel.source` says which, and every table shows it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from covp.base.cache import cache_dir
from covp.base.terminal import say
from covp.errors import CovpError, UsageError, near_misses
from covp.graph.zoo.catalog import CATALOG, Entry

MODEL_DIR = "COVP_MODEL_DIR"
"""The environment variable that names a folder with the official files."""


@dataclass(frozen=True)
class ZooModel:
    """A model file and where it comes from.

    Attributes:
        source: "official" (the file has the pinned hash), "custom" (a file of that name with
            another content, from ``COVP_MODEL_DIR``) or "synthetic" (built here).
        macs: multiply-accumulates of one inference.
        dtype: "int8" or "float32".
    """

    name: str
    path: Path
    source: str
    description: str
    macs: int
    dtype: str


def names(dtype: str = "int8", more: bool = False) -> list[str]:
    """Return the zoo's names for "int8" or "float32" models, in the order of listings.

    Args:
        dtype: of activations.
        more: also those that are not of the benchmark's four tasks.
    """
    chosen = (entry for entry in CATALOG.values() if entry.dtype == dtype)
    return [entry.name for entry in chosen if more or not entry.more]


def entry(name: str) -> Entry:
    """Return the catalog's entry of a name.

    Raises:
        UsageError: there is none; the text suggests near misses.
    """
    try:
        return CATALOG[name]
    except KeyError:
        raise UsageError(
            f"unknown model {name!r}: neither a file nor in the zoo",
            hint=near_misses(name, CATALOG),
        ) from None


def find(name: str) -> ZooModel:
    """Return the model's file: from ``COVP_MODEL_DIR``, the download cache, or built (and cached).

    Raises:
        UsageError: no such name.
    """
    wanted = entry(name)
    if not wanted.is_synthetic_only:
        folder = os.environ.get(MODEL_DIR)
        if folder and (path := Path(folder) / wanted.file).is_file():
            return _found(wanted, path, "official" if _is_official(path, wanted) else "custom")
        path = cache_dir("models") / wanted.file
        if path.is_file():
            if _is_official(path, wanted):
                return _found(wanted, path, "official")
            say(f"{path} is damaged: run `covp models fetch {name}`")
    from covp.graph.zoo.synthetic import synthetic_path

    return _found(wanted, synthetic_path(name), "synthetic")


def fetch(
    wanted: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    base_url: str | None = None,
) -> list[ZooModel]:
    """Download official files into the cache, except those already there; return their models.

    Models without an official file are returned with the source "synthetic".

    Args:
        wanted: names; all of them when empty.
        progress: called with each name before its download.
        base_url: of a mirror, in place of the repositories' own.

    Raises:
        UsageError: no such name.
        CovpError: no network, or a file whose SHA-256 is not the pinned one; the text names every
            file that is not there then. Those that could be had are kept.
    """
    from covp.graph.zoo.download import download

    models: list[ZooModel] = []
    missing: list[str] = []
    first: CovpError | None = None
    for item in [entry(name) for name in wanted] or list(CATALOG.values()):
        if item.is_synthetic_only:
            models.append(find(item.name))
            continue
        path = cache_dir("models") / item.file
        if not (path.is_file() and _is_official(path, item)):
            if progress is not None:
                progress(item.name)
            try:
                download(f"{base_url or item.base_url}/{item.url}", path, item.sha256)
            except CovpError as error:
                missing.append(item.name)
                first = first or error
                continue
        models.append(_found(item, path, "official"))
    if first is not None:
        names = f" (so are {', '.join(missing[1:])})" if missing[1:] else ""
        raise CovpError(f"{missing[0]} is missing{names}: {first}") from first
    return models


def _is_official(path: Path, wanted: Entry) -> bool:
    return hashlib.sha256(path.read_bytes()).hexdigest() == wanted.sha256


def _found(wanted: Entry, path: Path, source: str) -> ZooModel:
    return ZooModel(wanted.name, path, source, wanted.description, wanted.macs, wanted.dtype)
