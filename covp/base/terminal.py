"""Safe text for terminals: characters that one would obey are shown instead.

Names in models, files and platforms are anybody's; an escape sequence in one could hide or forge
what covp says (CWE-150).
"""

from __future__ import annotations

import sys

_KEPT = "\n\t"


def visible(text: str) -> str:
    """Return a text whose control and formatting characters are written as escapes.

    Args:
        text: of one or more lines; line ends and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in _KEPT else _escape(letter) for letter in text
    )


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def say(text: str) -> None:
    """Print one line on standard error, after "covp: "."""
    print(f"covp: {visible(text)}", file=sys.stderr)
