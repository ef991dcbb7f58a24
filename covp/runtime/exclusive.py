"""`Exclusive`: one thread at a time; another one gets an error instead of a wrong result."""

from __future__ import annotations

import threading

from covp.errors import UsageError


class Exclusive:
    """A context that one thread is in; it may enter again.

    Args:
        what: it protects, for the error.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()
        self._user = 0

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise UsageError(
                f"{self._what} is in use by thread {self._name()}; open a session for each thread, "
                "or let one thread make all calls"
            )
        self._user = threading.get_ident()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def _name(self) -> str:
        """Return the name of the thread that is inside."""
        names = [one.name for one in threading.enumerate() if one.ident == self._user]
        return names[0] if names else "?"
