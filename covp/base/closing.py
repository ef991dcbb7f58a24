"""`Closing`: what is closed, by `close` or at the end of a ``with``; `Owned`: by one process."""

from __future__ import annotations

import os
import weakref
from abc import ABC, abstractmethod
from typing import Any, TypeVar

from covp.errors import UsageError

_Self = TypeVar("_Self", bound="Closing")
_Own = TypeVar("_Own", bound="Owned")


class Closing(ABC):
    """Base of classes with a `close`; as a context they are closed at its end."""

    @abstractmethod
    def close(self) -> None:
        """Release what it holds."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Owned(Closing):
    """Base of handles whose content a fork does not copy: connections, threads, processes, files.

    In a forked process each use of one that existed before is a UsageError with its `label`, and
    `close` does nothing, since what it holds is the parent's. What a fork does copy, such as a
    virtual device, needs no owner.
    """

    def __new__(cls: type[_Own], *arguments: object, **keywords: object) -> _Own:
        handle = object.__new__(cls)
        _handles.add(handle)
        return handle

    @property
    @abstractmethod
    def label(self) -> str:
        """The name of the resource, for messages; known once it is made."""


_handles: weakref.WeakSet[Any] = weakref.WeakSet()


_LABEL = "label before the fork"


def _refuse(handle: object, name: str) -> Any:
    if name == "close" or (name.startswith("__") and name.endswith("__")):
        return object.__getattribute__(handle, name)
    label = object.__getattribute__(handle, "__dict__")[_LABEL]
    raise UsageError(
        f"{label} belongs to the process that this one was forked from: each process needs its own"
    )


def _leave(handle: object, *error: object) -> None:
    """Close nothing: it is not this process's to close."""


_METHODS = {
    "__getattribute__": _refuse,
    "__enter__": lambda handle: _refuse(handle, "enter"),
    "__exit__": _leave,
    "__del__": _leave,
    "close": _leave,
}


def _inherit_class(kind: type) -> type:
    """Return the class that a handle has in a process that has inherited it by a fork."""
    return type(kind)(kind.__name__, (kind,), {"__module__": kind.__module__, **_METHODS})


def _disown() -> None:
    """Mark the handles so far as the parent's, in a process that has just been forked."""
    for handle in tuple(_handles):
        if _LABEL not in vars(handle):
            vars(handle)[_LABEL] = getattr(handle, "label", type(handle).__name__)
            handle.__class__ = _inherit_class(type(handle))


os.register_at_fork(after_in_child=_disown)
