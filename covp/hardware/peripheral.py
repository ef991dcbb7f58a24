"""`Peripheral`: the base of memory-mapped hardware models.

`DmaRequests` are the signals by which models pace a DMA controller; `PlainState` copies what a
model remembers, for going back.
"""

from __future__ import annotations

import copy
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Set
from typing import Any, ClassVar, Protocol

from covp.chip.platform_file import Region
from covp.errors import AcceleratorError, DeviceFault
from covp.hardware.bus import Bus
from covp.hardware.clock import Clock, Event
from covp.hardware.interrupt import InterruptLine
from covp.hardware.registers import Register, RegisterMap
from covp.hardware.shared_port import SharedPort

LINES = 32


class RequestReceiver(Protocol):
    """A peripheral, as far as requests reach it."""

    def on_request(self, number: int) -> None:
        """Handle a pulse of the request signal ``number``."""
        ...


class DmaRequests:
    """Numbered request signals of a board, from any peripheral to all of them.

    A request is a pulse: one that no channel of a DMA controller waits for is lost.

    Args:
        receivers: returns the peripherals on the board.
    """

    def __init__(self, receivers: Callable[[], Iterable[RequestReceiver]] = tuple) -> None:
        self._receivers = receivers

    def pulse(self, number: int) -> None:
        """Request a transfer for a peripheral that has data to be moved.

        Args:
            number: of the signal, 0 to 31.
        """
        for receiver in self._receivers():
            receiver.on_request(number)


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
        """Return a copy, or None if a value is not plain or a container appears twice."""
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


class Peripheral:
    """Hardware that software sees as registers.

    A model derives from it, sets `registers` and writes the methods that the map's ``on_write``
    and ``on_read`` name::

        class Doubler(Peripheral):
            registers = RegisterMap(
                Register("VALUE", 0x00),
                Register("CTRL", 0x04, fields=[Field("START", 0, access="wo", on_write="start")]),
            )

            def start(self, value: int) -> None:
                self.values["VALUE"] *= 2

    Attributes:
        registers: the register map.
        size: bytes of the bus that it takes.
        values: register name to value, 0 <= value < 2**32; kept in range on every access.
        bus: reads and writes memory; set when the device attaches the model.
        clock: the device's time; set when the device attaches the model.
        interrupt: the request line; ``interrupt.set(True)`` requests the core's attention.
        requests: the board's DMA request signals; ``requests.pulse(number)`` lets a DMA controller
            fetch, or bring, what the model has.
        port: of the memory, which this one shares with other accelerators; None: it has its own.
        name: of this instance; set when the device attaches the model.
    """

    registers: ClassVar[RegisterMap] = RegisterMap()
    size: ClassVar[int] = 0x1000
    widths: ClassVar[frozenset[int]] = frozenset({4})
    """Bytes of the accesses that are allowed, from a register's first byte on; the bytes that a
    narrow store leaves out are written as 0."""
    ignores_reserved: ClassVar[bool] = False
    """Reserved bits that are written are dropped, as in silicon; by default that is a fault."""
    not_saved: ClassVar[frozenset[str]] = frozenset(
        ("bus", "clock", "interrupt", "requests", "port", "name")
    )
    """Attributes that are not part of the model's state; see `save_state`."""

    bus: Bus
    clock: Clock
    interrupt: InterruptLine
    requests: DmaRequests
    port: SharedPort | None = None
    name: str = ""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.interrupt = InterruptLine()
        self.requests = DmaRequests()
        Peripheral.reset(self)

    @property
    def description(self) -> str:
        """A one-line description."""
        return (inspect.getdoc(type(self)) or "").partition("\n")[0]

    def attach(self, name: str, bus: Bus, clock: Clock) -> None:
        """Connect the model to the device under its ``name``, with its ``bus`` and the ``clock``.

        A model that has more to set up overrides it.
        """
        self.name = name
        self.bus = bus
        self.clock = clock
        self.reset()

    def reset(self) -> None:
        """Set the registers to their reset values; models also reset their own state."""
        self.values = {register.name: register.reset_value for register in self.registers}

    def on_request(self, number: int) -> None:
        """Handle a pulse of DMA request signal ``number``; DMA controllers override it."""

    def save_state(self) -> object:
        """Copy the model's attributes, but `not_saved`; events and callables stay themselves.

        A model with state that cannot be copied (a library's, a process's) overrides both.

        Raises:
            AcceleratorError: an attribute cannot be copied.
        """
        own = {name: value for name, value in vars(self).items() if name not in self.not_saved}
        plain = PlainState.of(own)
        if plain is not None:
            plain.names = frozenset(vars(self))
            return plain
        try:
            return copy.deepcopy(own, self._kept())
        except Exception as error:
            raise AcceleratorError(
                f"peripheral {self.name}: its state cannot be copied: {error!r}; override "
                "save_state and load_state"
            ) from error

    def load_state(self, state: object) -> None:
        """Go back to what `save_state` returned, which stays as it is."""
        if type(state) is PlainState:
            attributes = vars(self)
            if attributes.keys() != state.names:
                self._drop_all_but(state.names)
            state.load(attributes)
        else:
            assert isinstance(state, dict)
            self._drop_all_but(state.keys())
            vars(self).update(copy.deepcopy(state, self._kept()))

    def _drop_all_but(self, names: Set[str]) -> None:
        """Delete attributes that did not exist when the state was saved."""
        for name in vars(self).keys() - names - self.not_saved:
            delattr(self, name)

    def _kept(self) -> dict[int, object]:
        """Return a memo for `copy.deepcopy` of the objects that it must not copy."""
        values = (v for k, v in vars(self).items() if k in self.not_saved or callable(v))
        return {id(value): value for value in (self, *values)}

    def get(self, register: str, field: str) -> int:
        """Return the value of a ``field`` of a ``register``, both by name."""
        return self.registers[register][field].get(self.values[register])

    def set(self, register: str, field: str, value: int) -> None:
        """Set a ``field`` of a ``register`` to ``value``, even where software may not write it."""
        found = self.registers[register][field]
        self.values[register] = found.put(self.values[register], value)

    def read_register(self, offset: int, size: int) -> int:
        """Return the value of a load of the core.

        Args:
            offset: bytes from the base address.
            size: of the access in bytes; one of `widths`.

        Raises:
            DeviceFault: the register map forbids it.
        """
        register = self._find(offset, size, "read")
        if register.access == "wo":
            raise self.fault(f"read of {register.name}, which is write-only", offset, size)
        if register.on_read is not None:
            getattr(self, register.on_read)()
        value = self.values[register.name] & 0xFFFFFFFF
        for field in register.fields:
            if field.access == "wo":
                value &= ~field.mask
        return value & ((1 << 8 * size) - 1)

    def write_register(self, offset: int, size: int, value: int) -> None:
        """Handle a store of the core.

        Args:
            offset: bytes from the base address.
            size: of the access in bytes; one of `widths`.
            value: 0 to 2**32 - 1.

        Raises:
            DeviceFault: the register map forbids it.
        """
        register = self._find(offset, size, "write")
        if register.access == "ro":
            raise self.fault(f"write to {register.name}, which is read-only", offset, size)
        reserved = value & ~register.defined_bits
        if reserved and self.ignores_reserved:
            value &= register.defined_bits
        elif reserved:
            raise self.fault(
                f"write of 0x{value:x} to {register.name} sets reserved bits 0x{reserved:x}",
                offset,
                size,
            )
        self.values[register.name] = _write_value(register, self.values[register.name], value)
        for field in register.fields:
            if field.on_write is not None and field.get(value):
                getattr(self, field.on_write)(field.get(value))
        if register.on_write is not None:
            getattr(self, register.on_write)(value)

    def needs_exact_time(self, offset: int, is_store: bool) -> bool:
        """Return whether the model may read the clock in this access; the first then costs more.

        A model that overrides `read_register` or `write_register` counts as one that does.

        Args:
            offset: bytes from the base address.
            is_store: the access is a store, else a load.
        """
        kind = type(self)
        if is_store:
            overridden = kind.write_register is not Peripheral.write_register
        else:
            overridden = kind.read_register is not Peripheral.read_register
        register = self.registers.at(offset)
        if overridden or register is None:
            return overridden
        if not is_store:
            return register.on_read is not None
        return register.on_write is not None or any(
            field.on_write is not None for field in register.fields
        )

    def fault(self, detail: str, offset: int | None = None, size: int | None = None) -> DeviceFault:
        """Return a fault of kind "register access" that names the model; the device adds the pc.

        Args:
            detail: what is wrong.
            offset: of the access, bytes from the base address; None where there was none.
            size: of the access in bytes.
        """
        return DeviceFault(
            "register access",
            address=offset,
            size=size,
            detail=f"{self.name or type(self).__name__}: {detail}",
        )

    def _find(self, offset: int, size: int, what: str) -> Register:
        register = self.registers.at(offset)
        if register is None:
            near = self.registers.at(offset & ~3)
            if near is None:
                raise self.fault(f"{what} at offset 0x{offset:x}: no register", offset, size)
            raise self.fault(f"{what} inside {near.name}: only whole words", offset, size)
        if size not in self.widths:
            raise self.fault(
                f"{what} of {size} bytes of {register.name}: only whole words", offset, size
            )
        return register


def _write_value(register: Register, old: int, value: int) -> int:
    if not register.fields:
        return old & ~value if register.access == "w1c" else value
    for field in register.fields:
        if register.access == "w1c" or field.access == "w1c":
            old &= ~(value & field.mask)
        elif field.access != "ro":
            old = (old & ~field.mask) | (value & field.mask)
    return old
