"""`Call`: a function call that waits on the host, runs on the device and keeps its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from covp.errors import DeviceError
from covp.runtime.abi import decode_result
from covp.runtime.signature import Signature


class Call:
    """A queued call.

    Args:
        signature: of the function.
        task: function and arguments as the calling convention wants them: `struct covp_task`.
        arguments: kept alive until the call has run, as `arguments`.
        sync: runs the queue that the call is in.
    """

    def __init__(
        self,
        signature: Signature,
        task: bytes,
        arguments: Sequence[Any] = (),
        sync: Callable[[], object] = lambda: None,
    ) -> None:
        self.signature = signature
        self.task = task
        self.arguments: tuple[Any, ...] = tuple(arguments)
        self._sync = sync
        self._words: tuple[int, int] | None = None
        self._dropped = False

    def result(self) -> int | float | bool | None:
        """Run the queue and return the function's value (pointers as addresses, None for void).

        Raises:
            DeviceFault: this or an earlier queued call faulted.
            DeviceError: an earlier fault kept the call from running.
        """
        if self._words is None and not self._dropped:
            self._sync()
        if self._words is None:
            raise DeviceError(f"{self.signature.name} did not run: a call queued before it faulted")
        return decode_result(self.signature.result, *self._words)

    def finish(self, low: int, high: int) -> None:
        """Take the words of the result registers, ``low`` and ``high``, when the call has run."""
        self._words = (low, high)
        self.arguments = ()

    def drop(self) -> None:
        """Mark a call that will not run any more; no effect on one that has run."""
        self._dropped = self._words is None
        self.arguments = ()

    def __repr__(self) -> str:
        state = "done" if self._words else "dropped" if self._dropped else "queued"
        return f"<Call {self.signature.name} {state}>"
