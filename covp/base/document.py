"""JSON documents as msgspec structures: types of keys with their units.

What a key means stands in the docstring of its structure, under ``Attributes``;
`benchmarks/json_page.py` makes docs/json.md of both.
"""

from __future__ import annotations

from typing import Annotated

import msgspec


def unit(name: str) -> msgspec.Meta:
    """Return the unit of a number, for the annotation of its key."""
    return msgspec.Meta(extra={"unit": name})


Count = Annotated[int, msgspec.Meta(ge=0)]
"""A count, or a number without a unit."""
Amount = Annotated[float, msgspec.Meta(ge=0)]
"""A quantity."""
Instructions = Annotated[Count, unit("retired instructions")]
Cycles = Annotated[Count, unit("core cycles")]
Bytes = Annotated[Count, unit("bytes")]
Macs = Annotated[Count, unit("MACs")]
Seconds = Annotated[Amount, unit("s")]
Joules = Annotated[Amount, unit("J")]
Ratio = Annotated[Amount, unit("ratio")]
