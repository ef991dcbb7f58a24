"""Docstrings in which one line describes several names, as ``low, high: in stored units``."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ENTRY = re.compile(r"^( +)((?:\w+, )+\w+):( .*(?:\n\1 +\S.*)*)", re.M)


class SplitNames(Extension):
    """Gives each of the names an entry of its own, with the same text."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite a docstring before its sections are parsed."""
        if obj.docstring is not None:
            obj.docstring.value = _ENTRY.sub(_split, obj.docstring.value)


def _split(found: re.Match[str]) -> str:
    indent, names, text = found.groups()
    return "\n".join(f"{indent}{name}:{text}" for name in names.split(", "))
