"""Documents as whoever reads their JSON sees them."""

from __future__ import annotations

from typing import Any

import msgspec


def plain(document: Any) -> Any:
    """Return a document of structures as the lists and dicts of its JSON."""
    return msgspec.json.decode(msgspec.json.encode(document))
