"""`pluralize`: a number with a noun."""


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun, e.g. "1 layer" or "13 layers".

    Args:
        number: how many.
        noun: in the singular.
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
