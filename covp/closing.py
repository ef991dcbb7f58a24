"""`Closing`: what has to be let go, by `close` or at the end of a ``with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

_Self = TypeVar("_Self", bound="Closing")


class Closing(ABC):
    """Base of classes with a `close`; as a context they are closed at its end."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what it holds."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
