"""The blocks of an FST file: whether all of them are there.

The format is GTKWave's (fstapi.c): a file is a chain of blocks, each a byte with its kind, and the
length of what follows in eight bytes, the greatest first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

HEADER, GEOMETRY, HIERARCHIES = 0, 3, (4, 6, 7)


def blocks(path: Path) -> Iterator[tuple[int, int, int]]:
    """Kind, place of the content, and bytes of it, of each block; the last one may be cut off."""
    with path.open("rb") as stream:
        while kind := stream.read(1):
            place = stream.tell() + 8
            size = int.from_bytes(stream.read(8), "big") - 8
            yield kind[0], place, size
            if size < 0:
                return
            stream.seek(place + size)


def is_whole(path: Path) -> bool:
    """Whether all blocks that a waveform needs are there to their end."""
    found, end = set(), 0
    for kind, place, size in blocks(path):
        found.add(kind)
        end = place + size
    whole = {HEADER, GEOMETRY} <= found and not found.isdisjoint(HIERARCHIES)
    return whole and end == os.path.getsize(path)
