"""A profile as plain records and as a table in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

import numpy as np

import covp
from covp.codegen.program import ProgramLayer
from covp.device.stop import Source, Sources
from covp.runtime.profile import Cost, LayerProfile, MemoryUse, Offload, Profile

CORE = LayerProfile(ProgramLayer(0, "conv<1>", "CONV_2D", "cpu", 640, "f", "mac"), 1000, 1200)
SPLIT = Offload(jobs=1, setup=2, startup=3, compute=4, memory=5, waiting=6, rest=7)
UNIT = LayerProfile(ProgramLayer(2, "dense", "FULLY_CONNECTED", "gemm", 64, "g"), 20, 30, SPLIT)
PROFILE = Profile(
    "net",
    1025,
    1236,
    100,
    (CORE, UNIT),
    Cost(5, 6),
    sources=Sources(cycles=Source("estimated", "rv32")),
)


class Cells(HTMLParser):
    """The rows of the only table; fails on tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.rows[-1][-1] += data


def test_records_are_flat_and_alike() -> None:
    core, unit = PROFILE.records()
    assert all(list(a) == list(b) for a, b in pairwise(PROFILE.records()))
    assert core["name"] == "conv<1>" and core["macs"] == 640 and core["schedule"] == "mac"
    assert core["offload_waiting"] is None
    assert (unit["target"], unit["instructions"], unit["cycles"]) == ("gemm", 20, 30)
    assert [unit[f"offload_{name}"] for name in ("jobs", "setup", "memory", "rest")] == [1, 2, 5, 7]
    assert not any(isinstance(value, dict | tuple) for value in unit.values())


def test_a_notebook_shows_the_rows_of_the_text() -> None:
    head, *rows = Cells(PROFILE._repr_html_()).rows
    assert head == ["layer", "op", "on", "instructions", "cycles (estimated)"]
    assert rows[0] == ["0 conv<1>", "CONV_2D", "cpu", "1,000", "1,200"]
    assert [row[0] for row in rows] == ["0 conv<1>", "2 dense", "between", "net"]
    printed = [line.split() for line in str(PROFILE).splitlines()]
    assert printed[0] == ["layer", "op", "on", "instructions", "cycles"]
    assert [" ".join(row).split() for row in rows] == printed[1:]


def test_memory() -> None:
    rows = Cells(MemoryUse(1, 2000, 3, 4, 5)._repr_html_()).rows
    assert rows[1:3] == [["flash", "1"], ["ram", "2,000"]]
    assert len(rows) == 7


def test_a_layer_s_profile_names_the_layer_itself() -> None:
    with covp.Session("riscv32") as session:
        program = covp.compile("toycar", "riscv32")
        session.load(program).run(np.zeros(program.inputs[0].shape, np.int8))
        entries = session.profile().layers
    for entry, layer in zip(entries, program.layers, strict=True):
        for name in ("index", "name", "op", "target", "macs", "schedule"):
            assert getattr(entry, name) == getattr(layer, name)
