"""The advice of a run: what it says is so, and doing it brings about what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from covp.base.request import RunOptions
from covp.evaluation import build, run
from covp.evaluation.advice import MOST, Advice
from covp.graph.onnx import read_onnx

RNG = np.random.default_rng(3)
UNCHECKED = RunOptions(check="none")


def advised(model: Any, platform: str, *accelerators: str, **options: Any) -> list[Advice]:
    return list(run(build(model, platform, accelerators, **options), None, UNCHECKED).advice)


def cycles(model: str, platform: str, *accelerators: str, **options: Any) -> int:
    made = build(model, platform, accelerators, **options)
    found = run(made, None, UNCHECKED).profile.cycles
    assert found is not None
    return found


SLOW = [
    ("toycar", "nucleo-l4r5zi"),
    ("kws", "nucleo-l4r5zi"),
    ("toycar", "disco-f746ng"),
    ("toycar", "raspberry-pi-pico"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "platform"), SLOW)
def test_weights_in_slow_flash(model: str, platform: str) -> None:
    [found] = [a for a in advised(model, platform) if "from flash" in a.seen]
    assert "--ram-weights" in found.do
    saved = cycles(model, platform) - cycles(model, platform, ram_weights=1 << 31)
    assert saved > 0.03 * cycles(model, platform)
    moved = advised(model, platform, ram_weights=1 << 31)
    assert not any("from flash" in a.seen for a in moved)


def test_weights_in_fast_flash_are_not_named() -> None:
    for platform in ("cortex-m4", "riscv32"):
        assert not any("from flash" in a.seen for a in advised("toycar", platform))


def network(nodes: list[Any], shape: list[int], constants: dict[str, Any], out: list[int]) -> Any:
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "net",
        [tensor("x", TensorProto.FLOAT, shape)],
        [tensor("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    return read_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def weights(*shape: int) -> Any:
    return (RNG.standard_normal(shape) * 0.2).astype(np.float32)


def quantized(name: str, to: str) -> list[Any]:
    """QuantizeLinear and DequantizeLinear."""
    return [
        helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{to}_q"]),
        helper.make_node("DequantizeLinear", [f"{to}_q", "s", "z"], [to]),
    ]


SCALE = {"s": np.float32(0.05), "z": np.int8(0)}
DENSE = {"wq": RNG.integers(-9, 9, (32, 4)).astype(np.int8), "ws": np.float32(0.02)}
DENSE_NODES = [
    helper.make_node("DequantizeLinear", ["wq", "ws", "z"], ["w"]),
    helper.make_node("MatMul", ["in", "w"], ["d"]),
    *quantized("d", "y"),
]


def test_a_recurrent_layer_that_stayed_float() -> None:
    """As onnxruntime leaves it: the dense layer after it is of integers."""
    gru = [
        helper.make_node("GRU", ["x", "gw", "gr"], ["", "h"], hidden_size=32),
        helper.make_node("Squeeze", ["h", "axes"], ["flat"]),
        *quantized("flat", "in"),
    ]
    constants = {"gw": weights(1, 96, 16), "gr": weights(1, 96, 32), "axes": np.array([0])}
    model = network([*gru, *DENSE_NODES], [9, 1, 16], {**constants, **SCALE, **DENSE}, [1, 4])
    (found,) = advised(model, "riscv32")
    assert re.match(r"(9[5-9]|100)% of the cycles are GRU, which stayed float", found.seen)
    assert "onnxruntime's static quantization leaves it so" in found.do and found.cycles > 0


def test_an_operator_between_integers() -> None:
    middle = [*quantized("x", "a"), helper.make_node("Sin", ["a"], ["b"]), *quantized("b", "in")]
    model = network([*middle, *DENSE_NODES], [1, 32], {**SCALE, **DENSE}, [1, 4])
    (found,) = advised(model, "riscv32")
    assert "SIN" in found.seen and "float" in found.seen and "op_types_to_quantize" in found.do


def test_dynamic_quantization() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        helper.make_node("MatMulInteger", ["xq", "wq", "xz"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "xs"], ["m"]),
        helper.make_node("Mul", ["m", "ws"], ["y"]),
    ]
    (found,) = advised(network(nodes, [1, 32], DENSE, [1, 4]), "riscv32")
    assert "dynamic quantization" in found.seen and "quantize_static" in found.do


@pytest.mark.parametrize("model", ["kws", "toycar"])
def test_nothing_is_advised_where_nothing_is_amiss(model: str) -> None:
    assert advised(model, "riscv32") == []


@pytest.mark.costly
@pytest.mark.parametrize(("platform", "told"), [("riscv32", True), ("riscv32f", False)])
def test_floats_on_a_core_without_a_unit_for_them(platform: str, told: bool) -> None:
    found = advised("toycar_float", platform)
    assert ["no floating-point unit" in one.seen for one in found] == [True] * told
    assert cycles("toycar_float", "riscv32f") < cycles("toycar_float", "riscv32") / 3


@pytest.mark.parametrize(
    ("macs", "port", "limit"),
    [(4, 4, "multipliers"), (64, 1, "memory port"), (64, 2, "memory port")],
)
def test_twice_of_what_limits_a_unit_saves_what_is_said(macs: int, port: int, limit: str) -> None:
    def unit(macs: int, port: int) -> str:
        return f"qconv2d:macs_per_cycle={macs},bytes_per_cycle={port}"

    found = advised("kws", "riscv32", unit(macs, port))[0]
    assert found.seen == f"qconv2d is limited by its {limit}"
    said = re.search(r"twice (\w+) saves about (\d+)%", found.do)
    assert said is not None
    now = cycles("kws", "riscv32", unit(macs, port))
    better = unit(2 * macs, port) if said[1] == "macs_per_cycle" else unit(macs, 2 * port)
    saved = 1 - cycles("kws", "riscv32", better) / now
    assert saved == pytest.approx(int(said[2]) / 100, abs=0.03)
    if "more multipliers nothing" in found.do:
        assert cycles("kws", "riscv32", unit(2 * macs, port)) == pytest.approx(now, rel=0.02)


@pytest.mark.costly
def test_the_layer_that_sets_the_peak_of_ram_where_it_is_scarce() -> None:
    (found,) = advised("vww", "nucleo-f401re")
    assert re.match(
        r"layer 2 CONV_2D sets the peak of RAM, [\d,]+ B of tensors, on 96 KB", found.seen
    )
    assert not advised("vww", "riscv32")


@pytest.mark.costly
def test_the_command_prints_two_at_most_and_json_has_all(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from covp.cli.main import main

    def told(*more: str) -> str:
        with pytest.raises(SystemExit):
            main(["run", "kws_float", "-p", "riscv32", "--check", "none", *more])
        return capsys.readouterr().out

    assert 1 <= told().count("\nadvice: ") <= MOST
    assert '"do": "quantize these too' in told("--json")


@pytest.mark.parametrize(
    ("unit", "limit"),
    [
        ("qconv2d:macs_per_cycle=2", "multipliers"),
        ("qconv2d:macs_per_cycle=2,clock_ratio=4", "multipliers"),
        ("ne16", ""),  # loads of its tiles, one after the other
        ("systolic:bytes_per_cycle=64", ""),  # an array that small layers do not fill
    ],
)
def test_more_multipliers_are_advised_where_they_are_in_use(unit: str, limit: str) -> None:
    found = [str(one) for one in advised("kws", "riscv32", unit) if "limited by its" in str(one)]
    assert [text for text in found if limit and limit in text] == found
    assert bool(found) == bool(limit)
