"""`readable`: msgspec's errors in the words of the file; `place_of`: the key they are about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from covp.errors import near_misses

_WORDS = {
    "array": "a list", "object": "a mapping", "str": "a text", "int": "a whole number",
    "float": "a number", "bool": "true or false", "null": "nothing",
}  # fmt: skip


def place_of(error: msgspec.ValidationError | str) -> str:
    """Return the key that msgspec's error is about, such as "memory[0].size"; "" for the whole."""
    return str(error).partition(" - at ")[2].rpartition("$")[2].rstrip("`").lstrip(".")


def readable(error: msgspec.ValidationError | str, kind: Any) -> str:
    """Rewrite msgspec's "... - at `$.memory[0].size`" as "memory[0].size: ...", with what is valid.

    Args:
        error: of `msgspec.convert`, or its text.
        kind: the type that it converts to.
    """
    reason, where = str(error).partition(" - at ")[0], place_of(error)
    there = list(_at(inspect.type_info(kind), where))
    unknown = re.match(r"Object contains unknown field `(.*)`$", reason)
    missing = re.match(r"Object missing required field `(.*)`$", reason)
    choice = re.match(r"Invalid enum value '?(.*?)'?$", reason)
    if missing:
        reason = f"the key {missing[1]} is missing"
    elif unknown:
        known = [
            f.encode_name for t in there if isinstance(t, inspect.StructType) for f in t.fields
        ]
        reason = f"unknown key {unknown[1]!r}: {near_misses(unknown[1], known)}"
    elif choice:
        known = [str(v) for t in there if isinstance(t, inspect.LiteralType) for v in t.values]
        reason = f"{choice[1]!r}: {near_misses(choice[1], known)}"
    reason = re.sub("`(.*?)`", lambda kinds: _in_words(kinds[1]), reason)
    return f"{where}: {reason}" if where else reason


def _in_words(kinds: str) -> str:
    """Return msgspec's "int | null" in words."""
    return " or ".join(_WORDS.get(kind, kind) for kind in kinds.split(" | "))


def _at(kind: inspect.Type, where: str) -> Iterator[inspect.Type]:
    """Yield the types of a place such as "memory[0].size"; of the last part of it that is known."""
    found = list(_alternatives(kind))
    for part in re.findall(r"\[[^\]]*\]|[^.\[\]]+", where):
        found = [each for kind in found for each in _inside(kind, part)] or found
    yield from found


def _inside(kind: inspect.Type, part: str) -> Iterator[inspect.Type]:
    """Yield the types of a part of a value: a key, or "[3]"."""
    if isinstance(kind, inspect.StructType):
        for field in kind.fields:
            if field.encode_name == part:
                yield from _alternatives(field.type)
    elif isinstance(kind, inspect.DictType):
        yield from _alternatives(kind.value_type)
    elif isinstance(kind, inspect.CollectionType) and part[0] == "[":
        yield from _alternatives(kind.item_type)


def _alternatives(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Yield a type without its metadata, or those of a union."""
    if isinstance(kind, inspect.Metadata):
        yield from _alternatives(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _alternatives(each)
    else:
        yield kind
