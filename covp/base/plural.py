"""`pluralize`: a number with a noun; `first_of`: one name for several."""

from collections.abc import Sequence


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun, e.g. "1 layer" or "13 layers".

    Args:
        number: how many.
        noun: in the singular.
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_of(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are, e.g. "gemm and 3 more"."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
