"""`Registry`: what modules of a package register; most are imported when they are needed."""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Iterator, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Registry(MutableMapping[K, V]):
    """A dictionary that modules fill while they are imported.

    Importing every family of operators takes as long as running a small model. A package imports
    the usual ones itself; a key that is missing, or a look at all keys, imports the others.

    Args:
        package: whose modules register, those of its subpackages too.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._known: dict[K, V] = {}
        self._complete = False
        self._lock = threading.RLock()

    def __getitem__(self, key: K) -> V:
        if key not in self._known:
            self._import_all()
        return self._known[key]

    def known(self, key: K) -> V | None:
        """Return the value registered under a key by now, or None; import nothing."""
        return self._known.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._known[key] = value

    def __delitem__(self, key: K) -> None:
        del self._known[key]

    def __iter__(self) -> Iterator[K]:
        self._import_all()
        return iter(self._known)

    def __len__(self) -> int:
        self._import_all()
        return len(self._known)

    def _import_all(self) -> None:
        with self._lock:  # another thread waits until all is there
            if self._complete:
                return
            self._complete = True  # modules may look up while they are imported
            package = importlib.import_module(self._package)
            for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
                importlib.import_module(module.name)
