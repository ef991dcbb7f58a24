"""`Module`: C code on the device, and calls of its functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from covp.cache import cache_dir, content_key, write_atomically
from covp.errors import DeviceError, UsageError, near_misses
from covp.runtime.abi import Task, decode_result, make_task
from covp.runtime.linking import LoadedImage
from covp.runtime.signature import Signature, signature_from_data, signature_to_data
from covp.runtime.tensor import DeviceTensor

if TYPE_CHECKING:
    from covp.runtime.session import Session


class Call:
    """A queued call.

    Attributes:
        task: function and arguments.
        arguments: kept alive until the call has run.
    """

    def __init__(
        self, session: Session, signature: Signature, task: Task, arguments: Sequence[Any]
    ) -> None:
        self.signature = signature
        self.task = task
        self._arguments: tuple[Any, ...] = tuple(arguments)
        self._session = session
        self._words: tuple[int, int] | None = None
        self._dropped = False

    def result(self) -> int | float | bool | None:
        """What the function returned (pointers as addresses, None for void); runs the queue.

        Raises:
            DeviceFault: this or an earlier queued call faulted.
            DeviceError: an earlier fault kept the call from running.
        """
        if self._words is None and not self._dropped:
            self._session.sync()
        if self._words is None:
            raise DeviceError(f"{self.signature.name} did not run: a call queued before it faulted")
        return decode_result(self.signature.result, *self._words)

    def finish(self, low: int, high: int) -> None:
        """Take the result registers, when the call has run."""
        self._words = (low, high)
        self._arguments = ()

    def drop(self) -> None:
        """Mark a call that will not run any more; no effect on one that has run."""
        self._dropped = self._words is None
        self._arguments = ()

    def __repr__(self) -> str:
        state = "done" if self._words else "dropped" if self._dropped else "queued"
        return f"<Call {self.signature.name} {state}>"


class Function:
    """A function of a module; calling it queues a call."""

    def __init__(self, module: Module, signature: Signature, value: int) -> None:
        self.module = module
        self.signature = signature
        self._value = value

    @property
    def address(self) -> int:
        """Of its first instruction."""
        return self.module.address(self.signature.name)

    def __call__(self, *arguments: Any) -> Call:
        """Queue a call (with ``strict=True`` run it).

        Integers and floats are passed by value, tensors as pointers.

        Raises:
            UsageError: the arguments do not fit the C declaration.
        """
        session = self.module.session
        session._check_open()
        self.module._check_loaded()
        for argument in arguments:
            if isinstance(argument, DeviceTensor):
                argument.check_usable_in(session, self.signature.name)
        task = make_task(session.platform.core, self._value, self.signature, arguments)
        call = Call(session, self.signature, task, arguments)
        session._enqueue(call)
        return call

    def __repr__(self) -> str:
        return f"<Function {self.signature}>"


class Module:
    """Compiled C code in the device's memory; `Session.load_c` makes them."""

    def __init__(self, session: Session, image: LoadedImage, name: str) -> None:
        self.session = session
        self.name = name
        self._image: LoadedImage | None = image

    @cached_property
    def signatures(self) -> dict[str, Signature]:
        """The functions that can be called, by name."""
        elf = self._loaded().elf
        record = cache_dir("signatures") / content_key("1", elf.content)
        try:
            data = json.loads(record.read_bytes())
        except (OSError, ValueError):
            from covp.runtime.signature import read_signatures

            data = [signature_to_data(s) for s in read_signatures(elf.content).values()]
            write_atomically(record, json.dumps(data).encode())
        signatures = (signature_from_data(entry) for entry in data)
        return {signature.name: signature for signature in signatures}

    def __getitem__(self, name: str) -> Function:
        """The function of that name. Raises UsageError with near misses."""
        elf = self._loaded().elf
        if name not in self.signatures:
            raise UsageError(
                f"{self.name} has no function {name!r}: {near_misses(name, self.signatures)}"
            )
        return Function(self, self.signatures[name], elf.symbols[name].value)

    def address(self, symbol: str) -> int:
        """The address of a function or variable. Raises UsageError with near misses."""
        symbols = self._loaded().elf.symbols
        if symbol not in symbols:
            raise UsageError(
                f"{self.name} has no symbol {symbol!r}: {near_misses(symbol, symbols)}"
            )
        return symbols[symbol].address

    @property
    def image(self) -> LoadedImage:
        """The linked ELF file and where its sections lie."""
        return self._loaded()

    def unload(self) -> None:
        """Run what is queued, then give the module's memory back."""
        if self._image is not None:
            self.session._unload(self)
            self._image = None

    def _loaded(self) -> LoadedImage:
        if self._image is None:
            raise UsageError(f"module {self.name} was unloaded")
        return self._image

    def _check_loaded(self) -> None:
        self._loaded()
