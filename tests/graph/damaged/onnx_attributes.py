"""Attributes of the ONNX standard's own node tests, set to extremes, lost or doubled."""

from __future__ import annotations

import random
from functools import cache

import onnx
from onnx import AttributeProto

from tests.graph.onnx.node_tests import node_tests

from .onnx_mutations import FLOATS, INTEGERS

_LARGEST = 20_000
"""Bytes of a model; some node tests have tables of constants."""
_EXTREMES = [*INTEGERS, 10**9, 2**63 - 1]


@cache
def models() -> list[bytes]:
    """The node tests that have attributes."""
    found = [test.model for tests in node_tests().values() for test in tests]
    return [
        model.SerializeToString()
        for model in found
        if model.graph.node[0].attribute and model.ByteSize() < _LARGEST
    ]


def altered(seed: int) -> onnx.ModelProto:
    """A node test with one or two attributes altered."""
    rng, bases = random.Random(seed), models()
    model = onnx.ModelProto.FromString(bases[rng.randrange(len(bases))])
    for _ in range(rng.choice([1, 1, 2])):
        _alter(rng.choice(model.graph.node[0].attribute), rng)
    return model


def _alter(attribute: AttributeProto, rng: random.Random) -> None:
    if attribute.type == AttributeProto.INT:
        attribute.i = rng.choice(_EXTREMES)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice(FLOATS)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice([b"", b"x", b"SAME_UPPER", b"linear"])
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        how = rng.choice(["one", "all", "lost", "more"])
        if how == "lost":
            del attribute.ints[-1]
        elif how == "more":
            attribute.ints.append(rng.choice(_EXTREMES))
        else:
            value, count = rng.choice(_EXTREMES), len(attribute.ints)
            for place in range(count) if how == "all" else [rng.randrange(count)]:
                attribute.ints[place] = value
