"""`covp show`: the graph as the passes leave it, the layers as compiled, the C of the program."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from covp.building.builder import build
from covp.graph.graph import copy_graph
from covp.graph.models import load_model
from covp.graph.passes import PASSES, graph_after, run_passes

from .conftest import Call


def test_every_operator_is_on_one_line(call: Call) -> None:
    graph = load_model("vww")
    lines = call("show", "vww").out.splitlines()
    assert len(lines) == 1 + len(graph.ops)
    for op, line in zip(graph.ops, lines[1:], strict=True):
        assert line.split(":")[0].split() == [op.kind, op.name]


def test_after_a_pass_that_runs_twice_is_its_last_run() -> None:
    graph = load_model("vww")
    names = [run.__name__ for run in PASSES]
    assert names.count("remove_dead_ops") == 2
    for name in {*names, "all"}:
        lowered, seen = copy_graph(graph), {"all": str(graph)}
        for run in PASSES:
            run(lowered)
            seen[run.__name__] = seen["all"] = str(lowered)
        assert str(graph_after(graph, name)) == seen[name], name
    assert str(graph_after(graph, "all")) == str(run_passes(graph))
    assert str(graph) == str(load_model("vww")), "the graph that was given stays"


def test_after_is_printed(call: Call) -> None:
    assert call("show", "vww", "--after", "all").out.strip() == str(run_passes(load_model("vww")))
    document = call("show", "vww", "--after", "fuse_pads", "--json").document
    after = graph_after(load_model("vww"), "fuse_pads")
    assert [row["name"] for row in document["operators"]] == [op.name for op in after.ops]
    assert document["after"] == "fuse_pads" and document["platform"] is None
    for row, op in zip(document["operators"], after.ops, strict=True):
        assert [tuple(one["shape"]) for one in row["outputs"]] == [t.shape for t in op.outputs]


def test_the_layers_are_those_of_the_build(call: Call) -> None:
    program = build("kws", "riscv32", ["qconv2d"]).program
    words = ("show", "kws", "-p", "riscv32", "-a", "qconv2d")
    document = call(*words, "--json").document
    assert document["operators"] == [] and document["arena_bytes"] == program.arena_bytes
    assert {row["target"] for row in document["layers"]} == {"cpu", "qconv2d"}
    shown = [(row["layer"], row["target"], row["function"]) for row in document["layers"]]
    assert shown == [(one.index, one.target, one.function) for one in program.layers]
    table = call(*words).out
    for layer in program.layers:
        assert layer.function in table and layer.schedule in table


def test_no_two_tensors_share_bytes_at_one_time(call: Call) -> None:
    """What the plan says of offsets, sizes and lifetimes fits together, and into the arena."""
    document = call("show", "resnet", "-p", "riscv32", "--json").document
    memory = document["memory"]
    assert max(row["offset"] + row["bytes"] for row in memory) <= document["arena_bytes"]
    seen = 0
    for position in range(len(document["layers"])):
        there = [row for row in memory if row["first"] <= position <= row["last"]]
        for one, other in combinations(there, 2):
            overlap = max(one["offset"], other["offset"]) < min(
                one["offset"] + one["bytes"], other["offset"] + other["bytes"]
            )
            # a result may lie on an operand that is read for the last time
            in_place = {one["first"], other["first"]} & {one["last"], other["last"]} == {position}
            assert not overlap or in_place, (position, one["name"], other["name"])
            seen += 1
    assert seen > len(memory)


def test_one_layer(call: Call) -> None:
    program = build("kws", "riscv32").program
    layer = program.layers[3]
    document = call("show", "kws", "-p", "riscv32", "--layer", layer.index, "--json").document
    assert [row["function"] for row in document["layers"]] == [layer.function]
    used = {(piece.offset, piece.nbytes) for piece in layer.memory}
    assert used <= {(row["offset"], row["bytes"]) for row in document["memory"]}
    assert len(document["memory"]) < len(
        call("show", "kws", "-p", "riscv32", "--json").document["memory"]
    )
    (line,) = call("show", "kws", "--layer", layer.index).out.splitlines()
    assert line.split()[0] == layer.op


def test_the_c_is_what_the_program_holds(call: Call) -> None:
    program = build("kws", "riscv32", ["qconv2d"]).program
    words = ("show", "kws", "-p", "riscv32", "-a", "qconv2d", "--c")
    files = {row["name"]: row["text"] for row in call(*words, "--json").document["files"]}
    assert files == program.sources
    printed = call(*words).out
    assert all(text.rstrip("\n") in printed for text in program.sources.values())
    layer = program.layers[2]
    text = call(*words, "--layer", layer.index).out
    name = f"{layer.function}.c"
    assert text == f"/* {name} */\n" + program.sources[name].rstrip("\n") + "\n"
    others = {one.function for one in program.layers} - {layer.function}
    assert not any(f"{one}(" in text for one in others)


def test_c_is_not_folded(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = call("show", "kws", "-p", "riscv32", "--c", "--layer", 2).out
    monkeypatch.setenv("COLUMNS", "40")
    assert call("show", "kws", "-p", "riscv32", "--c", "--layer", 2).out == plain


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--after", "fuse_pad"), "did you mean fuse_pads"),
        (("--after", "fuse_pad"), "passes are expand_operators, fold_constants"),
        (("--after", "zzz"), "known are all, expand_operators"),
        (("--layer", "99"), "--layer 99: the graph of kws has no such layer; known are 0, 1"),
        (("--layer", "99", "-p", "riscv32"), "--layer 99: kws has no such layer; known are 0"),
        (("--c",), "--c: name the platform too, with -p"),
        (("-a", "gemm"), "--accel: name the platform too"),
        (("-p", "riscv32", "--c", "--after", "all"), "leave out --after"),
        (("-p", "riscv31"), "did you mean riscv32"),
    ],
)
def test_refused(call: Call, words: tuple[str, ...], told: str) -> None:
    assert told in call("show", "kws", *words).refusal


def test_a_file(call: Call, small: Path) -> None:
    assert call("show", small, "--after", "all", "-p", "riscv32").status == 0
