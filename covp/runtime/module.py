"""`Module`: C code on the device, and calls of its functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from covp.base import cache
from covp.base.arguments import demand
from covp.base.cache import content_key
from covp.device.stop import Stop
from covp.errors import UsageError, near_misses
from covp.runtime.abi import CallFormat
from covp.runtime.allocator import Block
from covp.runtime.call import Call
from covp.runtime.linking import LoadedImage
from covp.runtime.resident import Resident
from covp.runtime.signature import Signature, signature_from_data, signature_to_data
from covp.runtime.tensor import DeviceTensor


class Function:
    """A function of a module; calling it queues a call."""

    def __init__(self, module: Module, signature: Signature, value: int) -> None:
        self.module = module
        self.signature = signature
        self._value = value

    @property
    def address(self) -> int:
        """Address of its first instruction."""
        return self.module.address(self.signature.name)

    def __call__(self, *arguments: Any) -> Call:
        """Queue a call (with ``strict=True`` run it).

        Integers and floats are passed by value, tensors as pointers.

        Raises:
            UsageError: the arguments do not fit the C declaration.
        """
        call = self._call(arguments)
        self.module.session.enqueue(call)
        return call

    def run(self, *arguments: Any, workspace: Block | None = None) -> tuple[Call, Stop]:
        """Run a call now, after the queued ones and in an execution of its own.

        Args:
            arguments: as of a call.
            workspace: see `TaskQueue.run`.

        Returns:
            the call, which is done, and the `Stop` of the execution: on devices that count by phase
            phase 1 is the function, and phase 0 the task runner around it.

        Raises:
            UsageError: the arguments do not fit the C declaration.
            DeviceFault: the function faulted.
        """
        call = self._call(arguments)
        session = self.module.session
        return call, session.run(call, self._value, workspace)

    def _call(self, arguments: Sequence[Any]) -> Call:
        session = self.module.session
        session.check_open()
        self.module.check_loaded()
        for argument in arguments:
            if isinstance(argument, DeviceTensor):
                argument.check_usable_in(session, self.signature.name)
        return Call(self.signature, self._format.pack(arguments), arguments, session.sync)

    @cached_property
    def _format(self) -> CallFormat:
        return CallFormat(self.module.session.platform.core, self._value, self.signature)

    def __repr__(self) -> str:
        return f"<Function {self.signature}>"


class Module:
    """Compiled C code in the device's memory; `Session.load_c` makes them.

    Args:
        session: where it lives.
        image: the linked code; it is written to the device by who makes the module.
        name: for messages.
        unloaded: called when the module is unloaded, after its memory was given back.

    Attributes:
        given: the arguments of `Session.load_c` that it was made with; empty where it was not.
    """

    def __init__(
        self,
        session: Resident,
        image: LoadedImage,
        name: str,
        unloaded: Callable[[Module], None] = lambda module: None,
    ) -> None:
        self.session = session
        self.name = name
        self.given: Mapping[str, Any] = {}
        self._image: LoadedImage | None = image
        self._unloaded = unloaded

    @cached_property
    def signatures(self) -> dict[str, Signature]:
        """The functions that can be called, by name."""
        elf = self._demand_image().elf
        name = content_key("2", elf.content)
        record = cache.load("signatures", name)
        if record is None:
            from covp.runtime.signature import read_signatures

            found = [signature_to_data(s) for s in read_signatures(elf.content).values()]
            record = json.dumps(found).encode()
            cache.store("signatures", name, record)
        data = json.loads(record)
        signatures = (signature_from_data(entry) for entry in data)
        return {signature.name: signature for signature in signatures}

    def __getitem__(self, name: str) -> Function:
        """Return the function of that name. Raises UsageError with near misses."""
        elf = self._demand_image().elf
        demand("name", name, str, "the name of a function")
        if name not in self.signatures:
            raise UsageError(
                f"{self.name} has no function {name!r}:", hint=near_misses(name, self.signatures)
            )
        return Function(self, self.signatures[name], elf.symbols[name].value)

    def address(self, symbol: str) -> int:
        """Return the address of a function or variable. Raises UsageError with near misses."""
        symbols = self._demand_image().elf.symbols
        demand("symbol", symbol, str, "the name of a function or variable")
        if symbol not in symbols:
            raise UsageError(
                f"{self.name} has no symbol {symbol!r}:", hint=near_misses(symbol, symbols)
            )
        return symbols[symbol].address

    @property
    def image(self) -> LoadedImage:
        """The linked ELF file and where its sections lie."""
        return self._demand_image()

    @property
    def is_loaded(self) -> bool:
        """False after `unload`."""
        return self._image is not None

    def unload(self) -> None:
        """Run what is queued, then give the module's memory back."""
        if self._image is not None:
            if self.session.is_open:
                self.session.sync()
            self.session.unload_image(self._image)
            self._unloaded(self)
            self._image = None

    def _demand_image(self) -> LoadedImage:
        if self._image is None:
            raise UsageError(f"module {self.name} was unloaded")
        return self._image

    def check_loaded(self) -> None:
        """Raise UsageError after `unload`."""
        self._demand_image()
