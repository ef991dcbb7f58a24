"""TopK against numpy's sorting, Einsum against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from covp.errors import ModelError
from covp.graph.onnx import read_onnx

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(dtype, largest, one_node, on_cores):
    for axis in (-1, 0, 1):
        x = RNG.integers(0, 12, (5, 6, 4)).astype(dtype)  # many are equal
        places = np.argsort(-x.astype(np.int64) if largest else x, axis=axis, kind="stable")
        places = np.take(places, range(3), axis=axis).astype(np.int64)
        wanted = [np.take_along_axis(x, places, axis), places]
        inputs = [x, np.array([3])]
        model = one_node("TopK", inputs, 2, constants=(1,), axis=axis, largest=largest)
        on_cores(model, [x], wanted, platforms=["riscv32", "mps2-an386"][axis % 2 :][:1])


def test_more_than_there_are(one_node):
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    with pytest.raises(ModelError, match="4 elements cannot be taken"):
        read_onnx(one_node("TopK", [x, np.array([4])], 2, constants=(1,)))


@pytest.mark.parametrize(
    "equation",
    ["bij,bjk->bik", "ij,kj->ki", "bhid,bhjd->bhij", "i,j->ij", "ij->ji", "ijk->j", "ij,ij",
     "ab,bc,cd->ad", "bij,bj->bi"],
)  # fmt: skip
def test_einsum(equation, one_node, on_cores):
    extents = {letter: 2 + "abcdhijk".index(letter) for letter in set(equation) - set(",->")}
    terms = equation.partition("->")[0].split(",")
    shapes = [[extents[letter] for letter in term] for term in terms]
    inputs = [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]
    wanted = np.asarray(np.einsum(equation, *inputs))
    on_cores(one_node("Einsum", inputs, equation=equation), inputs, [wanted], ["mps2-an386"])


@pytest.mark.parametrize("equation", ["...i->i", "ii->i", "i->ij", "ij,jk,kl->il"])
def test_equations_that_are_not_supported(equation, one_node):
    inputs = [RNG.standard_normal((3, 3)).astype(np.float32)] * (2 if "," in equation else 1)
    model = one_node("Relu", inputs[:1])
    model.graph.node[0].op_type = "Einsum"
    attribute = model.graph.node[0].attribute.add()
    attribute.name, attribute.s, attribute.type = "equation", equation.encode(), 3
    with pytest.raises(ModelError):
        read_onnx(model)
