"""The model zoo: names for the MLPerf Tiny models, and where their files come from.

A name is looked for in the folder ``COVP_MODEL_DIR``, then in the download cache that `fetch`
fills; without either a synthetic model of the same topology is built, and every report says so.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from covp.cache import cache_dir, content_key, write_atomically
from covp.errors import CovpError, ModelError, near_misses

_REPOSITORY = "https://raw.githubusercontent.com/mlcommons/tiny"
_COMMIT = "1afd2c9820f795965a6134facd0b4dfae41ef23f"
_TRAINING = "benchmark/training"


@dataclass(frozen=True)
class Entry:
    """One model of the zoo: an official file, pinned by its hash."""

    name: str
    task: str
    file: str
    folder: str
    sha256: str
    macs: int

    @property
    def url(self) -> str:
        """Where `fetch` gets it."""
        path = f"{_TRAINING}/{self.folder}/trained_models/{self.file}"
        return f"{_REPOSITORY}/{_COMMIT}/{path}"


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "resnet",
            "image classification, int8",
            "pretrainedResnet_quant.tflite",
            "image_classification",
            "3c002613d1b2475eb51dd78dfb85a546c8ae658dee71cf6ade43b022fe205415",
            12_501_632,
        ),
        Entry(
            "kws",
            "keyword spotting, int8",
            "kws_ref_model.tflite",
            "keyword_spotting",
            "aeea436800704fce17b17292e4412630ad856e9d777c044c64ef748a880bd0ae",
            2_656_768,
        ),
        Entry(
            "vww",
            "visual wake words, int8",
            "vww_96_int8.tflite",
            "visual_wake_words",
            "597a384c8c2c8a1276f04702f25013b7838f2f814f1ca7c174d295b73e3d6b7b",
            7_489_664,
        ),
        Entry(
            "toycar",
            "anomaly detection, int8",
            "ad01_int8.tflite",
            "anomaly_detection",
            "87cf24194ef93d1d9b11a591d805526b98008e351655d29883c825c9c106ba24",
            264_192,
        ),
        Entry(
            "sww",
            "streaming wake word, int8",
            "str_ww_ref_model.tflite",
            "streaming_wakeword",
            "3af8550895ba7d5c584277102b5075c52dcfa63ba9d2b2240f37c4e6abd5dd2b",
            826_368,
        ),
    )
}
"""Zoo name to entry."""


@dataclass(frozen=True)
class ZooModel:
    """A model file, and whether it is the official one."""

    name: str
    path: Path
    source: Literal["official", "synthetic"]


def names() -> list[str]:
    """The models that can be named."""
    return list(ENTRIES)


def find(name: str) -> ZooModel:
    """The file of a zoo model; a synthetic one is built where there is no official one.

    Raises:
        ModelError: no such name, or the file in COVP_MODEL_DIR is not the official one.
    """
    entry = _entry(name)
    folder = os.environ.get("COVP_MODEL_DIR")
    if folder and (path := Path(folder) / entry.file).is_file():
        return ZooModel(name, _checked(path, entry), "official")
    downloaded = cache_dir("models") / entry.file
    if downloaded.is_file():
        return ZooModel(name, _checked(downloaded, entry), "official")
    return ZooModel(name, _synthetic(name), "synthetic")


def fetch(
    wanted: Iterable[str] | None = None, report: Callable[[Entry], None] | None = None
) -> list[ZooModel]:
    """Download official files into the cache, checked against their pinned SHA-256.

    Args:
        wanted: names; all of the zoo by default. Files that are there already are kept.
        report: called before each download.

    Raises:
        ModelError: no such name.
        CovpError: no network, or the file is not the pinned one; nothing is kept of it.
    """
    entries = [_entry(name) for name in (names() if wanted is None else wanted)]
    return [_fetch_one(entry, report) for entry in entries]


def _fetch_one(entry: Entry, report: Callable[[Entry], None] | None) -> ZooModel:
    target = cache_dir("models") / entry.file
    if not (target.is_file() and _digest(target.read_bytes()) == entry.sha256):
        if report is not None:
            report(entry)
        write_atomically(target, _download(entry))
    return ZooModel(entry.name, target, "official")


def _download(entry: Entry) -> bytes:
    try:
        with urllib.request.urlopen(entry.url, timeout=30) as response:
            data: bytes = response.read()
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise CovpError(
            f"{entry.name}: cannot download {entry.url}: {reason}; check the network, or put "
            f"{entry.file} into a folder and name it in COVP_MODEL_DIR"
        ) from None
    if _digest(data) != entry.sha256:
        raise CovpError(
            f"{entry.name}: the download is not the pinned file (SHA-256 {_digest(data)[:16]}..., "
            f"expected {entry.sha256[:16]}...); nothing was kept"
        )
    return data


def _entry(name: str) -> Entry:
    if name not in ENTRIES:
        raise ModelError(f"no model {name!r}: no such file, and {near_misses(name, ENTRIES)}")
    return ENTRIES[name]


def _checked(path: Path, entry: Entry) -> Path:
    digest = _digest(path.read_bytes())
    if digest != entry.sha256:
        raise ModelError(
            f"{path}: not the official {entry.name} model (SHA-256 {digest[:16]}..., expected "
            f"{entry.sha256[:16]}...); name it by its path to use it as it is"
        )
    return path


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _synthetic(name: str) -> Path:
    """Build once, then reuse; the key is the code that builds it."""
    from covp.zoo import tflite_writer, topology

    code = [Path(str(module.__file__)).read_bytes() for module in (topology, tflite_writer)]
    path = cache_dir("synthetic") / f"{name}-{content_key(*code)}.tflite"
    if not path.is_file():
        graph = topology.TOPOLOGIES[name]()
        data = tflite_writer.write_tflite(graph, f"synthetic {name}, random weights, by covp")
        write_atomically(path, data)
    return path
