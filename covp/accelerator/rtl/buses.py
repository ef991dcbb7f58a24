"""`REGISTER_BUSES`, `MEMORY_BUSES`: buses as data, with the signals' names of their standards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

IN, OUT = "in", "out"


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
        errors: signals by which it says that an access has met no memory.
        word_signals: it has words of 32 bits side by side, and so many bits of these for each.
    """

    name: str
    title: str
    signals: Mapping[str, str]
    others: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    data: str = "rdata"
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    word_signals: Mapping[str, int] = field(default_factory=dict)


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
    Bus(
        "hwpe",
        "HWPE's control port",
        _signals("req add wen data", "r_valid r_data"),
        ("be", "id"),
        {"gnt": "1u"},
        "r_data",
        widths={"data": 32, "r_data": 32},
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
        errors=("rresp", "bresp"),
    ),
    Bus(
        "ahb-lite",
        "AHB-Lite",
        _signals("hrdata hready", "haddr htrans hwrite hsize hwdata"),
        ("hresp",),
        {"hburst": "0u", "hprot": "0u", "hmastlock": "0u"},
        "hrdata",
        errors=("hresp",),
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
        errors=("d_error", "d_denied"),
    ),
    Bus(
        "obi",
        "OBI",
        _signals("gnt rvalid rdata", "req addr we wdata"),
        ("err",),
        {"be": "ALL_BYTES", "rready": "1u"},
        errors=("err",),
    ),
    Bus(
        "tcdm",
        "HWPE's memory ports (TCDM)",
        _signals("gnt r_valid r_data", "req add wen be data"),
        data="r_data",
        word_signals={
            **{"add": 32, "data": 32, "be": 4},
            **dict.fromkeys(("req", "gnt", "wen", "r_valid"), 1),
        },
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
