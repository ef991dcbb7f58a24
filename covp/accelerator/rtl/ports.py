"""`find_ports`: which ports of a Verilog module are its clock, its registers and its memory.

Buses are data: the signals of each, as their standards name them. A unit's ports are found by these
names, with any prefix, in upper or lower case, with or without ``_i`` and ``_o``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from covp.errors import AcceleratorError

IN, OUT = "in", "out"
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


@dataclass(frozen=True)
class Bus:
    """A kind of bus, from the side of the unit.

    Attributes:
        name: as users write it.
        title: as people write it.
        signals: name to direction, of those that a unit has to have.
        others: inputs that it may have.
        defaults: outputs that it may have, and what the others see where it does not: C.
        data: the signal whose width is the bus's.
        names: signals that the harness calls otherwise, as their standard has one name for two.
        widths: bits of signals that cannot be others.
    """

    name: str
    title: str
    signals: Mapping[str, str]
    others: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    data: str = "rdata"
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)


def _signals(inputs: str, outputs: str) -> dict[str, str]:
    return dict.fromkeys(inputs.split(), IN) | dict.fromkeys(outputs.split(), OUT)


REGISTER_BUSES = (
    Bus(
        "axi4-lite",
        "AXI4-Lite",
        _signals(
            "awaddr awvalid wdata wvalid bready araddr arvalid rready",
            "awready wready bvalid arready rdata rvalid",
        ),
        ("awprot", "wstrb", "arprot"),
        {"bresp": "0u", "rresp": "0u"},
        widths={"wdata": 32, "rdata": 32},
    ),
    Bus(
        "apb",
        "APB",
        _signals("paddr psel penable pwrite pwdata", "prdata"),
        ("pstrb", "pprot"),
        {"pready": "1u", "pslverr": "0u"},
        "prdata",
        widths={"pwdata": 32, "prdata": 32},
    ),
    Bus(
        "wishbone",
        "Wishbone",
        _signals("cyc stb we adr wdat", "rdat ack"),
        ("sel", "cti", "bte"),
        {"err": "0u"},
        "rdat",
        {("dat", IN): "wdat", ("dat", OUT): "rdat"},
        {"wdat": 32, "rdat": 32},
    ),
    Bus(
        "obi",
        "OBI",
        _signals("req addr we wdata", "rvalid rdata"),
        ("be", "rready"),
        {"gnt": "1u", "err": "0u"},
        widths={"wdata": 32, "rdata": 32},
    ),
)
"""Buses on which a unit's registers may be."""

MEMORY_BUSES = (
    Bus(
        "axi4",
        "AXI4",
        _signals(
            "arready rdata rvalid awready wready bvalid",
            "araddr arvalid rready awaddr awvalid wdata wvalid bready",
        ),
        ("rlast", "rresp", "rid", "bresp", "bid"),
        {
            **dict.fromkeys(("arlen", "arid", "awlen", "awid"), "0u"),
            **dict.fromkeys(("arburst", "awburst"), "1u"),
            **dict.fromkeys(("arsize", "awsize"), "WIDTH_LOG"),
            **{"wstrb": "ALL_BYTES", "wlast": "1u"},
        },
    ),
    Bus(
        "ahb-lite",
        "AHB-Lite",
        _signals("hrdata hready", "haddr htrans hwrite hsize hwdata"),
        ("hresp",),
        {"hburst": "0u", "hprot": "0u", "hmastlock": "0u"},
        "hrdata",
    ),
    Bus(
        "tl-ul",
        "TileLink-UL",
        _signals(
            "a_ready d_valid d_data",
            "a_valid a_opcode a_size a_address a_mask a_data d_ready",
        ),
        (
            *("d_opcode", "d_size", "d_source", "d_error", "d_denied"),
            *("d_param", "d_sink", "d_corrupt"),
        ),
        {"a_source": "0u", "a_param": "0u", "a_corrupt": "0u"},
        "d_data",
    ),
    Bus(
        "obi",
        "OBI",
        _signals("gnt rvalid rdata", "req addr we wdata"),
        ("err",),
        {"be": "ALL_BYTES", "rready": "1u"},
    ),
)
"""Buses on which a unit may load and store."""

INSTRUCTION_PORT = Bus(
    "cfu",
    "CFU-Playground's port",
    _signals("cmd_valid cmd_payload_inputs_0", "rsp_valid rsp_payload_outputs_0"),
    ("cmd_payload_function_id", "cmd_payload_inputs_1", "rsp_ready"),
    {"cmd_ready": "1u"},
    widths={
        **dict.fromkeys(("cmd_payload_inputs_0", "cmd_payload_inputs_1"), 32),
        **{"rsp_payload_outputs_0": 32, "cmd_payload_function_id": 10},
    },
)
"""The port of a unit of custom instructions (CFU-Playground, Prakash et al., ISPASS 2023).

An instruction is offered while ``cmd_valid``, accepted in a cycle with ``cmd_ready``, and answered
in the same or a later one with ``rsp_valid``; ``function_id`` are funct7 and funct3.
"""

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
    where: str,
    ports: Sequence[Port],
    registers: str = "",
    memory: str = "",
    ties: Mapping[str, int] | None = None,
) -> str:
    """Return C for the harness that names each port of a module.

    Args:
        where: the module, for errors.
        ports: of the module.
        registers, memory: BUS, BUS:PREFIX or :PREFIX, where names alone do not decide; "": they do.
        ties: inputs that nothing else drives, to their values.

    Raises:
        AcceleratorError: there is no such bus, or an input that nothing drives.
    """
    found = _Found(where, ports)
    register_bus = found.bus("register", REGISTER_BUSES, registers, "r_")
    memory_bus = found.bus("memory", MEMORY_BUSES, memory, "m_")
    interrupt = found.one(_INTERRUPTS, OUT)
    if interrupt is None:
        raise AcceleratorError(
            f"{where} has no interrupt, an output irq, which is up when a job is over"
        )
    lines = [
        f"#define UNIT_INTERRUPT top.{interrupt.member}",
        f"#define MEMORY_BYTES {found.width(memory_bus, 'm_')}",
        f'#define REGISTERS_HEADER "registers-{register_bus.name}.h"',
        f'#define MEMORY_HEADER "memory-{memory_bus.name}.h"',
    ]
    return found.header(ties or {}, lines)


def name_ports(
    where: str,
    ports: Sequence[Port],
    registers: str = "",
    memory: str = "",
    ties: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return which port is what as plain data, for test benches outside covp.

    Args: as of `find_ports`.

    Raises:
        AcceleratorError: there is no such bus, or an input that nothing drives.
    """
    found = _Found(where, ports)
    register_bus = found.bus("register", REGISTER_BUSES, registers, "r_")
    memory_bus = found.bus("memory", MEMORY_BUSES, memory, "m_")
    found.header(ties or {}, [])
    return {
        "clocks": [port.name for port in found.all(_CLOCKS)],
        "resets": {p.name: int(p.plain in _HIGH_RESETS) for p in found.all(_RESETS)},
        "ties": dict(ties or {}),
        "registers": {"bus": register_bus.name, "signals": found.signals["r_"]},
        "memory": {
            "bus": memory_bus.name,
            "bytes": found.width(memory_bus, "m_"),
            "signals": found.signals["m_"],
        },
    }


def find_instruction_port(
    where: str, ports: Sequence[Port], ties: Mapping[str, int] | None = None
) -> str:
    """Return C for the harness that names each port of a unit of custom instructions.

    Args:
        where: the module, for errors.
        ports: of the module.
        ties: inputs that nothing else drives, to their values.

    Raises:
        AcceleratorError: a port is missing, or nothing drives one.
    """
    found = _Found(where, ports)
    found.bus("custom instruction", [INSTRUCTION_PORT], "", "c_")
    return found.header(ties or {}, [])


def _setter(name: str, assigned: Iterable[str]) -> str:
    """Return a macro that sets ports."""
    return f"#define {name} do {{ {' '.join(f'top.{text};' for text in assigned)} }} while (0)"


class _Found:
    """Ports that are found one after the other.

    Attributes:
        used: names of those that something drives.
        defines: lines of C.
        signals: of each bus, by its letter, to the names of ports.
    """

    def __init__(self, where: str, ports: Sequence[Port]) -> None:
        self._where, self._ports = where, ports
        self.used: set[str] = set()
        self.defines: list[str] = []
        self._widths: dict[str, int] = {}
        self.signals: dict[str, dict[str, str]] = {}

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
        return "\n".join(["#pragma once", *setters, *lines, *self.defines]) + "\n"

    def one(self, names: Iterable[str], direction: str) -> Port | None:
        """Return the first port with one of the names."""
        found = (p for n in names for p in self._ports if p.plain == n and p.direction == direction)
        return next(found, None)

    def width(self, bus: Bus, letter: str) -> int:
        """Return the bytes of a bus's data."""
        bits = self._widths[letter + bus.data]
        for signal in ("wdata", "hwdata", "a_data"):
            stored = self._widths.get(letter + signal, bits)
            if stored != bits:
                raise AcceleratorError(
                    f"{self._where}: {signal} of its memory port has {stored} bits, "
                    f"{bus.data} {bits}"
                )
        if bits % 8 or bits // 8 not in (1, 2, 4, 8, 16, 32, 64):
            raise AcceleratorError(
                f"{self._where}: the data of its memory port have {bits} bits; 8 to 512, a power "
                "of two"
            )
        return bits // 8

    def bus(self, what: str, kinds: Sequence[Bus], stated: str, letter: str) -> Bus:
        """Find the one bus of a role, and define its signals."""
        name, _, wanted = stated.partition(":")
        if name and name not in [kind.name for kind in kinds]:
            known = ", ".join(kind.name for kind in kinds)
            raise AcceleratorError(f"{self._where}: its {what} port is {name!r}, none of {known}")
        fits = [
            (kind, prefix)
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
        if len(fits) > 1:
            each = ", ".join(f"{kind.name}:{prefix}" for kind, prefix in fits)
            raise AcceleratorError(f"{self._where} has several {what} ports, {each}; say which one")
        kind, prefix = fits[0]
        by_name = self._by_name(kind, prefix)
        for signal in (*kind.signals, *kind.others, *kind.defaults):
            port = by_name.get((signal, self._direction(kind, signal)))
            if port is not None:
                self.used.add(port.name)
                self._widths[letter + signal] = port.bits
                self.signals.setdefault(letter, {})[signal] = port.name
                self._demand_width(kind, signal, port)
            absent = kind.defaults.get(signal, "absent")
            text = absent if port is None else f"top.{port.member}"
            self.defines.append(f"#define {letter}{signal} {text}")
        return kind

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
