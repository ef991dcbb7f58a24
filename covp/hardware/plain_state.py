"""`PlainState`: a copy of attributes that are plain values and containers of such, quickly made."""

from __future__ import annotations

from collections import deque
from typing import Any

from covp.chip.platform_file import Region
from covp.hardware.clock import Event

_PLAIN = frozenset({int, float, str, bytes, bool, type(None), Event, Region})
"""Types of values that are their own copies."""


class PlainState:
    """Attributes of an object, by name; see `of`."""

    def __init__(self, plain: dict[str, object], containers: dict[str, Any]) -> None:
        self._plain = plain
        self._flat = {name: value for name, value in containers.items() if _is_flat(value)}
        self._nested = {k: value for k, value in containers.items() if k not in self._flat}
        self.names: frozenset[str] = frozenset((*plain, *containers))

    @classmethod
    def of(cls, attributes: dict[str, object]) -> PlainState | None:
        """Return a copy; None where one is anything else, or the same container is there twice."""
        plain: dict[str, object] = {}
        containers: dict[str, Any] = {}
        seen: set[int] = set()
        for name, value in attributes.items():
            if type(value) in _PLAIN:
                plain[name] = value
            elif _is_plain(value, seen):
                containers[name] = _copy(value)
            else:
                return None
        return cls(plain, containers)

    def load(self, attributes: dict[str, Any]) -> None:
        """Put copies of the values into an object's attributes; all others stay."""
        attributes.update(self._plain)
        for name, value in self._flat.items():
            attributes[name] = value.copy()
        for name, value in self._nested.items():
            attributes[name] = _copy(value)


def _items(container: Any) -> Any:
    return container.values() if type(container) is dict else container


def _is_flat(container: Any) -> bool:
    copies = type(container) in (dict, list, set, deque, bytearray)
    return copies and all(type(value) in _PLAIN for value in _items(container))


def _is_plain(value: Any, seen: set[int]) -> bool:
    """Return whether a value is plain, with all in it; add the containers to ``seen``."""
    if type(value) in _PLAIN:
        return True
    if type(value) not in (dict, list, set, deque, bytearray, tuple) or id(value) in seen:
        return False
    seen.add(id(value))
    keys = value if type(value) is dict else ()
    return all(type(key) in _PLAIN for key in keys) and all(
        _is_plain(one, seen) for one in _items(value)
    )


def _copy(value: Any) -> Any:
    """Return a copy of a plain value and of all that is in it."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: _copy(one) for key, one in value.items()}
    if kind is deque:
        return deque(map(_copy, value), value.maxlen)
    return kind(map(_copy, value))
