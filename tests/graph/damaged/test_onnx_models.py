"""Damaged ONNX models: a graph that can be compiled and computed, or a ModelError of one line."""

from __future__ import annotations

import cProfile
import re
import resource
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from covp.codegen.generate import generate
from covp.errors import CapacityError, CovpError, ModelError
from covp.evaluation import Sample
from covp.graph.onnx import load_onnx, read_onnx

from .onnx_attributes import altered
from .onnx_mutations import damaged, models
from .test_models import LONGEST, no_hang

_MOST_MEMORY = 6 << 30


@pytest.fixture
def _little_memory() -> Iterator[None]:
    """An allocation of many gigabytes raises, and fails the test, instead of succeeding lazily."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def _attack(seeds: range, folder: Path, make: Callable[[int], bytes]) -> tuple[int, int]:
    """How many were rejected, and how many became programs."""
    rejected = compiled = 0
    path, wrong = folder / "net.onnx", []
    for seed in seeds:
        path.write_bytes(make(seed))
        with no_hang(seed), warnings.catch_warnings():
            warnings.simplefilter("error")  # the command line would print them
            try:
                program = generate(load_onnx(path), "riscv32")
                if sum(t.nbytes for t in program.graph.tensors()) < 1 << 20:
                    Sample.random(program.graph, seed)
                compiled += 1
            except CovpError as error:
                rejected += 1
                if "\n" in str(error) or len(str(error)) > LONGEST:
                    wrong.append(f"seed {seed}: {error}")
            except Exception as error:
                wrong.append(f"seed {seed}: {error!r}")
    assert not wrong, "\n".join(wrong)
    return rejected, compiled


def of_networks(seed: int) -> bytes:
    return damaged(seed, models())


def of_nodes(seed: int) -> bytes:
    return bytes(altered(seed).SerializeToString())


@pytest.mark.slow
@pytest.mark.usefixtures("_little_memory")
def test_altered_attributes(tmp_path: Path) -> None:
    rejected, compiled = _attack(range(400), tmp_path, of_nodes)
    assert rejected > 150 and compiled > 100


@pytest.mark.slow
@pytest.mark.usefixtures("_little_memory")
def test_ten_thousand_altered_attributes(tmp_path: Path) -> None:
    rejected, compiled = _attack(range(10_000, 20_000), tmp_path, of_nodes)
    assert rejected > 4000 and compiled > 3000


def node(kind: str, inputs: str, shape: tuple[int, ...], **how: Any) -> onnx.ModelProto:
    """A model of one node from x to y; further inputs are constants among ``how``, as arrays."""
    constants = {k: how.pop(k) for k in list(how) if isinstance(how[k], np.ndarray)}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(kind, inputs.split(), ["y"], **how)],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = onnx.helper.make_opsetid("", 18)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9)


WINDOW = np.ones((1, 1, 2, 2), np.float32)
BILLION = 10**9


@pytest.mark.usefixtures("_little_memory")
@pytest.mark.parametrize(
    "model, reason",
    [
        (node("Conv", "x w", (1, 1, 4, 4), w=WINDOW, dilations=[BILLION] * 2, pads=[BILLION] * 4),
         "a padded image of shape"),
        (node("Conv", "x w", (1, 1, 4, 4), w=WINDOW, strides=[BILLION] * 2, pads=[BILLION] * 4),
         "a padded image of shape"),
        (node("GatherND", "x i", (2, 2), i=np.zeros((1, 1), np.int64), batch_dims=2),
         "batch_dims is 2; 0 to 1"),
        (node("LpPool", "x", (1, 1, 4, 4), kernel_shape=[2, 2], p=0), "p is 0"),
        (node("MaxPool", "x", (1, 1, 4, 4), kernel_shape=[2, 2], strides=[2**62, 1]), "strides"),
    ],
    ids=["dilations", "pads", "batches", "norm", "strides"],
)  # fmt: skip
def test_small_files_that_failed(model: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(ModelError, match=re.escape(reason)):
        read_onnx(model)


@pytest.mark.parametrize(
    "model, shape",
    [
        (node("Softmax", "x", (2, 0, 3), axis=1), (2, 0, 3)),
        (node("LogSoftmax", "x", (2, 0, 3), axis=1), (2, 0, 3)),
        (node("Tile", "x r", (0, 4), r=np.array([2**63 - 1, 1])), (0, 4)),
    ],
)
def test_nothing_is_computed_of_no_elements(model: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    program = generate(read_onnx(model), "riscv32")
    assert [tensor.shape for tensor in program.outputs] == [shape]


def chain(first: list[onnx.NodeProto], count: int, **constants: NDArray[Any]) -> onnx.ModelProto:
    """From x of one element, by way of t0, to y."""
    nodes = [*first]
    nodes += [onnx.helper.make_node("Neg", [f"t{n}"], [f"t{n + 1}"]) for n in range(count)]
    nodes.append(onnx.helper.make_node("ReduceMax", [f"t{count}"], ["r"], keepdims=0))
    nodes.append(onnx.helper.make_node("Add", ["r", "x"], ["y"]))
    model = node("Neg", "x", (1,))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()]
    model.graph.initializer.extend(tensors)
    return model


@pytest.fixture
def _very_little_memory() -> Iterator[None]:
    """So much more than now: what a file of some hundred bytes asks for is refused before."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("_very_little_memory")
def test_activations_are_bounded_before_they_are_computed() -> None:
    expand = onnx.helper.make_node("Expand", ["x", "s"], ["t0"])
    with pytest.raises(CapacityError, match=r"needs [\d,]+ bytes for activations, the RAM of"):
        generate(read_onnx(chain([expand], 5, s=np.array([2**27 - 1]))), "stm32l4r5")


@pytest.mark.usefixtures("_very_little_memory")
@pytest.mark.parametrize("count, extent", [(0, 2**27 - 1), (8, 2**23)])
def test_constants_are_bounded_before_they_are_computed(count: int, extent: int) -> None:
    made = onnx.helper.make_node("ConstantOfShape", ["s"], ["t0"])
    with pytest.raises(ModelError, match=r"larger than a core|are computed when a model is read"):
        read_onnx(chain([made], count, s=np.array([extent])))


@pytest.mark.costly
@pytest.mark.parametrize("count", [5000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_time_of_many_operators_grows_as_their_number(count: int) -> None:
    """By calls of Python functions, as times tell of the machine: 16 for one operator, twice."""

    def calls(operators: int) -> int:
        profile = cProfile.Profile()
        model = chain([onnx.helper.make_node("Neg", ["x"], ["t0"])], operators)
        profile.runcall(lambda: generate(read_onnx(model), "riscv32"))
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(count) < 1.2 * 5 * calls(count // 5)


@pytest.mark.costly
@pytest.mark.usefixtures("_little_memory")
def test_damaged_models(tmp_path: Path) -> None:
    rejected, compiled = _attack(range(300), tmp_path, of_networks)
    assert rejected > 100 and compiled > 30


@pytest.mark.slow
@pytest.mark.usefixtures("_little_memory")
def test_two_thousand_damaged_models(tmp_path: Path) -> None:
    rejected, compiled = _attack(range(10_000, 12_000), tmp_path, of_networks)
    assert rejected > 700 and compiled > 200
