"""`find_ports`: which ports of a Verilog module are its clock, its registers and its memory.

A unit's ports are found by the names of its buses' signals, with any prefix, in upper or lower
case, with or without ``_i`` and ``_o``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covp.accelerator.rtl.buses import (
    IN,
    INSTRUCTION_PORT,
    MEMORY_BUSES,
    OUT,
    REGISTER_BUSES,
    Bus,
)
from covp.accelerator.rtl.sources import UnitRtl
from covp.errors import AcceleratorError

_RENAMED = "__SYM__"
"""Before names that mean something in C++."""
_PORT = re.compile(r"VL_(IN|OUT|INOUT)(?:8|16|64|W)?\(&(\w+),(\d+),(\d+)")


@dataclass(frozen=True)
class Port:
    """A port of a module.

    Attributes:
        name: as in the Verilog.
        direction: "in", "out" or "inout", from the module's side.
        bits: its width.
        member: its name in Verilator's class.
    """

    name: str
    direction: str
    bits: int
    member: str

    @property
    def plain(self) -> str:
        """The name in lower case, without what says its direction."""
        return re.sub(r"_[io]$", "", re.sub(r"_n[io]$", "_n", self.name.lower()))


_WIDEST = 512
"""Bits of a memory port."""
_CLOCKS = ("clk", "clock", "aclk", "pclk", "hclk", "s_axi_aclk", "m_axi_aclk")
_RESETS = (
    *("rst_n", "resetn", "reset_n", "aresetn", "presetn", "hresetn", "nreset", "nrst", "rstn"),
    *("rst", "reset", "areset", "s_axi_aresetn", "m_axi_aresetn"),
)
_HIGH_RESETS = ("rst", "reset", "areset")
_INTERRUPTS = ("irq", "interrupt", "intr")


def read_ports(header: str) -> list[Port]:
    """Return the ports of a module from the class that Verilator made of it."""
    return [
        Port(member.removeprefix(_RENAMED), direction.lower(), int(high) - int(low) + 1, member)
        for direction, member, high, low in _PORT.findall(header)
    ]


def find_ports(
    where: str, ports: Sequence[Port], rtl: UnitRtl, has_jobs: bool = True
) -> dict[str, str]:
    """Return C for the harness that names each port of a module: files, name to text.

    Args:
        where: the module, for errors.
        ports: of the module.
        rtl: what names alone do not decide.
        has_jobs: a module without an interrupt or a memory port is an error.

    Raises:
        AcceleratorError: there is no such bus or output, or an input that nothing drives.
    """
    found = _Found(where, ports)
    register_bus = found.register_bus(rtl.registers)
    lines = [f'#define REGISTERS_HEADER "registers-{register_bus.kind.name}.h"']
    lines += register_bus.defines("r_")
    memory_buses = found.memory_buses(rtl.memory, has_jobs)
    interrupt = found.output(rtl.interrupt) if rtl.interrupt else found.one(_INTERRUPTS, OUT)
    if interrupt is None and has_jobs:
        raise AcceleratorError(
            f"{where} has no interrupt, an output irq, which is up when a job is over"
        )
    busy = found.output(rtl.busy) if rtl.busy else None
    for name, port in (("INTERRUPT", interrupt), ("BUSY", busy)):
        lines.append(f"#define UNIT_{name} {f'top.{port.member}' if port else 0}")
    lines.append(f"#define UNIT_HAS_BUSY {int(busy is not None)}")
    has_errors = all(bus.has_errors for bus in memory_buses)
    lines.append(f"#define UNIT_HAS_ERRORS {int(has_errors)}")
    spaces = {f"port{i}": bus for i, bus in enumerate(memory_buses)}
    all_ports = f"using Ports = PortsOf<{', '.join(f'{name}::Port' for name in spaces)}>;\n"
    return {
        "unit_ports.h": found.header(rtl.ties, lines),
        "memory_ports.h": "".join(bus.space(name) for name, bus in spaces.items()) + all_ports,
    }


def name_ports(where: str, ports: Sequence[Port], rtl: UnitRtl) -> dict[str, Any]:
    """Return which port is what as plain data, for test benches outside covp.

    Args: as of `find_ports`.

    Raises:
        AcceleratorError: there is no such bus, or an input that nothing drives.
    """
    found = _Found(where, ports)
    register_bus = found.register_bus(rtl.registers)
    memory_buses = found.memory_buses(rtl.memory)
    found.header(rtl.ties, [])
    return {
        "clocks": [port.name for port in found.all(_CLOCKS)],
        "resets": {p.name: int(p.plain in _HIGH_RESETS) for p in found.all(_RESETS)},
        "ties": dict(rtl.ties),
        "registers": {"bus": register_bus.kind.name, "signals": register_bus.names},
        "memory": [
            {"bus": bus.kind.name, "bytes": bus.width, "signals": bus.names} for bus in memory_buses
        ],
    }


def find_instruction_port(
    where: str, ports: Sequence[Port], ties: Mapping[str, int] | None = None
) -> dict[str, str]:
    """Return C for the harness that names each port of a unit of custom instructions, by file.

    Args:
        where: the module, for errors.
        ports: of the module.
        ties: inputs that nothing else drives, to their values.

    Raises:
        AcceleratorError: a port is missing, or nothing drives one.
    """
    found = _Found(where, ports)
    (bus,) = found.buses("custom instruction", [INSTRUCTION_PORT], "")
    return {"unit_ports.h": found.header(ties or {}, bus.defines("c_"))}


def _setter(name: str, assigned: Iterable[str]) -> str:
    """Return a macro that sets ports."""
    return f"#define {name} do {{ {' '.join(f'top.{text};' for text in assigned)} }} while (0)"


@dataclass(frozen=True)
class _FoundBus:
    """A bus of a module.

    Attributes:
        where: the module, for errors.
        kind: of bus.
        prefix: of its ports' names.
        ports: signals to ports, of those that the module has.
    """

    where: str
    kind: Bus
    prefix: str
    ports: Mapping[str, Port]

    @property
    def names(self) -> dict[str, str]:
        """The names of its ports, by signal."""
        return {signal: port.name for signal, port in self.ports.items()}

    @property
    def has_errors(self) -> bool:
        """True if the module sees that an access of this memory port has met no memory."""
        return any(signal in self.ports for signal in self.kind.errors)

    @property
    def width(self) -> int:
        """The bytes of its data.

        Raises:
            AcceleratorError: no memory port has so many.
        """
        bits = self.ports[self.kind.data].bits
        for signal in ("wdata", "hwdata", "a_data", "data"):
            stored = self.ports[signal].bits if signal in self.ports else bits
            if stored != bits:
                raise AcceleratorError(
                    f"{self.where}: {signal} of its memory port has {stored} bits, "
                    f"{self.kind.data} {bits}"
                )
        if self.kind.word_signals:
            if bits % 32 or bits > _WIDEST:
                raise AcceleratorError(
                    f"{self.where}: the data of its memory ports have {bits} bits; words of 32, "
                    f"at most {_WIDEST} bits together"
                )
            for signal, each in self.kind.word_signals.items():
                if self.ports[signal].bits != each * bits // 32:
                    raise AcceleratorError(
                        f"{self.where}: its port {self.ports[signal].name} has "
                        f"{self.ports[signal].bits} bits; {bits // 32} words need "
                        f"{each * bits // 32}"
                    )
        elif bits % 8 or bits // 8 not in (1, 2, 4, 8, 16, 32, 64):
            raise AcceleratorError(
                f"{self.where}: the data of its memory port have {bits} bits; 8 to {_WIDEST}, a "
                "power of two"
            )
        return bits // 8

    def defines(self, letter: str) -> list[str]:
        """Return C that names its signals, each with a letter before."""
        return [
            f"#define {letter}{signal} "
            + (f"top.{self.ports[signal].member}" if signal in self.ports else absent)
            for signal, absent in self._all()
        ]

    def space(self, name: str) -> str:
        """Return C++: a namespace with the class ``Port`` of this memory port."""
        lines = [
            *(f"namespace {name} {{", *self.defines("m_")),
            f"constexpr uint32_t WORD = {self.width};  // bytes of a transfer of the whole width",
            f"constexpr uint64_t ALL_BYTES = {(1 << self.width) - 1:#x};",
            f'#include "memory-{self.kind.name}.h"',
            *(f"#undef m_{signal}" for signal, _ in self._all()),
            f"}}  // namespace {name}",
        ]
        return "\n".join(lines) + "\n"

    def _all(self) -> list[tuple[str, str]]:
        """Return each signal of the kind, and C for one that a module does not have."""
        kind = self.kind
        names = (*kind.signals, *kind.others, *kind.defaults)
        return [(signal, kind.defaults.get(signal, "absent")) for signal in names]


class _Found:
    """Ports that are found one after the other.

    Attributes:
        used: names of those that something drives.
    """

    def __init__(self, where: str, ports: Sequence[Port]) -> None:
        self._where, self._ports = where, ports
        self.used: set[str] = set()

    def all(self, names: Iterable[str]) -> list[Port]:
        """Return the inputs with one of the names."""
        found = [port for port in self._ports if port.plain in names and port.direction == IN]
        self.used.update(port.name for port in found)
        return found

    def header(self, ties: Mapping[str, int], lines: Sequence[str]) -> str:
        """Return the C header, with clock, reset and the inputs that have one value."""
        clocks, resets = self.all(_CLOCKS), self.all(_RESETS)
        if not clocks:
            raise AcceleratorError(f"{self._where} has no clock: an input {', '.join(_CLOCKS[:4])}")
        members = {port.name: port.member for port in self._ports}
        unknown = sorted(set(ties) - set(members))
        if unknown:
            raise AcceleratorError(f"{self._where} has no port {unknown[0]}, which ties names")
        driven = self.used | set(ties)
        free = [p.name for p in self._ports if p.direction == IN and p.name not in driven]
        if free:
            raise AcceleratorError(
                f"{self._where}: nothing drives its input {free[0]}; say its value: "
                f"ties={{{free[0]!r}: 0}}"
            )
        levels = [
            f"{port.member} = {'' if port.plain in _HIGH_RESETS else '!'}on" for port in resets
        ]
        values = [f"{members[name]} = {value}" for name, value in ties.items()]
        setters = [
            _setter("UNIT_SET_CLOCK(level)", [f"{port.member} = level" for port in clocks]),
            _setter("UNIT_SET_RESET(on)", levels),
            _setter("UNIT_SET_TIES()", values),
        ]
        return "\n".join(["#pragma once", *setters, *lines]) + "\n"

    def one(self, names: Iterable[str], direction: str) -> Port | None:
        """Return the first port with one of the names."""
        found = (p for n in names for p in self._ports if p.plain == n and p.direction == direction)
        return next(found, None)

    def output(self, name: str) -> Port:
        """Return the output with a name.

        Raises:
            AcceleratorError: there is none.
        """
        outputs = [port for port in self._ports if port.direction == OUT]
        for port in outputs:
            if port.name == name:
                return port
        known = ", ".join(port.name for port in outputs)
        raise AcceleratorError(f"{self._where} has no output {name}; it has {known}")

    def register_bus(self, stated: str) -> _FoundBus:
        """Return the bus of the registers.

        Raises:
            AcceleratorError: there is none, or several.
        """
        found = self.buses("register", REGISTER_BUSES, stated)
        if len(found) > 1:
            raise self._ambiguous("register", found)
        return found[0]

    def memory_buses(self, stated: str | Sequence[str], is_needed: bool = True) -> list[_FoundBus]:
        """Return the memory ports, in the order of their names or as stated.

        Raises:
            AcceleratorError: there is none that is stated or needed, or one that may be of two
                kinds.
        """
        parts = [stated] if isinstance(stated, str) else stated
        if not (is_needed or any(parts) or any(map(self._prefixes, MEMORY_BUSES))):
            return []
        found = [bus for part in parts for bus in self.buses("memory", MEMORY_BUSES, part)]
        taken: dict[str, _FoundBus] = {}
        for bus in found:
            for name in bus.names.values():
                other = taken.setdefault(name, bus)
                if other is not bus:
                    raise self._ambiguous("memory", [other, bus])
        return found

    def buses(self, what: str, kinds: Sequence[Bus], stated: str) -> list[_FoundBus]:
        """Return the buses of a role: those that ``stated`` names, or all.

        Raises:
            AcceleratorError: there is none.
        """
        name, _, wanted = stated.partition(":")
        if name and name not in [kind.name for kind in kinds]:
            known = ", ".join(kind.name for kind in kinds)
            raise AcceleratorError(f"{self._where}: its {what} port is {name!r}, none of {known}")
        fits = [
            self._found(kind, prefix)
            for kind in kinds
            if name in ("", kind.name)
            for prefix in self._prefixes(kind)
            if not wanted or prefix == wanted.lower()
        ]
        if not fits:
            known = ", ".join(
                f"{kind.title} ({' '.join(kind.signals)})"
                for kind in kinds
                if name in ("", kind.name)
            )
            ports = ", ".join(port.name for port in self._ports)
            prefix = f" whose names begin with {wanted}" if wanted else ""
            raise AcceleratorError(
                f"{self._where} has no {what} port{prefix}: {known}; it has {ports}"
            )
        self.used.update(name for bus in fits for name in bus.names.values())
        return fits

    def _ambiguous(self, what: str, found: Sequence[_FoundBus]) -> AcceleratorError:
        each = ", ".join(f"{bus.kind.name}:{bus.prefix}" for bus in found)
        return AcceleratorError(f"{self._where} has several {what} ports, {each}; say which one")

    def _found(self, kind: Bus, prefix: str) -> _FoundBus:
        """Return a bus with its ports."""
        by_name, ports = self._by_name(kind, prefix), {}
        for signal in (*kind.signals, *kind.others, *kind.defaults):
            port = by_name.get((signal, self._direction(kind, signal)))
            if port is not None:
                ports[signal] = port
                self._demand_width(kind, signal, port)
        return _FoundBus(self._where, kind, prefix, ports)

    def _demand_width(self, kind: Bus, signal: str, port: Port) -> None:
        """Raise AcceleratorError if a port has another width than its bus says."""
        wanted = kind.widths.get(signal)
        if wanted is not None and port.bits != wanted:
            raise AcceleratorError(
                f"{self._where}: its port {port.name} has {port.bits} bits; {signal} of "
                f"{kind.title} has {wanted} here"
            )

    @staticmethod
    def _direction(kind: Bus, signal: str) -> str:
        return kind.signals.get(signal, OUT if signal in kind.defaults else IN)

    def _by_name(self, kind: Bus, prefix: str) -> dict[tuple[str, str], Port]:
        """Return the ports with a prefix by signal and direction."""
        found = {}
        for port in self._ports:
            if port.plain.startswith(prefix):
                signal = port.plain.removeprefix(prefix)
                signal = kind.names.get((signal, port.direction), signal)
                found[signal, port.direction] = port
        return found

    def _prefixes(self, kind: Bus) -> list[str]:
        """Return the prefixes under which all signals of a bus are there."""
        first = next(iter(kind.signals))
        candidates = {
            port.plain[: -len(first)]
            for port in self._ports
            if port.plain.endswith(first) and port.direction == kind.signals[first]
        }
        return sorted(
            prefix
            for prefix in candidates
            if set(kind.signals.items()) <= set(self._by_name(kind, prefix))
        )
