"""C identifiers made of names that users choose."""

from __future__ import annotations

import re


def c_name(text: str) -> str:
    """Return a C identifier in lower case made of any text."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower() or "unnamed"
    return f"_{name}" if name[0].isdigit() else name


def c_prefix(name: str) -> str:
    """Return the start of the C macros of an accelerator whose name is a C identifier."""
    return name.upper()
