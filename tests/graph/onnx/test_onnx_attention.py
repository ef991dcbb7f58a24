"""Attention and RotaryEmbedding of random kinds against onnx's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from covp.errors import ModelError
from covp.graph.onnx import read_onnx


def _floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def _attention(seed):
    """Inputs, wanted outputs and attributes."""
    rng = np.random.default_rng(seed)
    batch, kv_heads, group = (int(n) for n in rng.integers(1, 4, 3))
    queries, keys, size, value_size = (int(n) for n in rng.integers(1, 9, 4))
    heads = kv_heads * group
    cache = rng.choice(["none", "past", "lengths"])
    past = int(rng.integers(1, 5)) if cache == "past" else 0
    packed = rng.random() < 0.5 and cache != "past"

    def tensor(count, length, extent):
        return _floats(
            rng, *((batch, length, count * extent) if packed else (batch, count, length, extent))
        )

    inputs = [
        tensor(heads, queries, size),
        tensor(kv_heads, keys, size),
        tensor(kv_heads, keys, value_size),
    ]
    mask = None
    shapes = [(queries, keys + past), (batch, 1, queries, keys + past), (heads, 1, keys + past)]
    if rng.random() < 0.7:
        shape = shapes[rng.integers(3)]
        mask = rng.random(shape) < 0.7 if rng.random() < 0.5 else _floats(rng, *shape)
        mask[..., 0] = True if mask.dtype == np.bool_ else 0
    inputs.append(mask)
    inputs += [_floats(rng, batch, kv_heads, past, n) if past else None for n in (size, value_size)]
    lengths = rng.integers(1, keys, batch, endpoint=True).astype(np.int64)
    inputs.append(lengths if cache == "lengths" else None)
    scores = rng.random() < 0.5
    outputs = ["y", "pk" if past else "", "pv" if past else "", "qk" if scores else ""]
    attributes = {
        "is_causal": int(rng.random() < 0.5),
        "left_window_size": int(rng.integers(-1, 4)),
        "right_window_size": int(rng.integers(-1, 3)),
        "softcap": float(rng.choice([0, 1.5])),
        "qk_matmul_output_mode": int(rng.integers(4)),
    }
    if attributes["softcap"]:
        # the evaluator caps mode 0's products, which the standard's text and body leave as they are
        attributes["qk_matmul_output_mode"] = max(1, attributes["qk_matmul_output_mode"])
    if mask is not None and mask.shape[-2] < queries:
        # the evaluator gives all queries the first one's causal row where the mask has one row
        attributes["is_causal"] = 0
    if packed:
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    if rng.random() < 0.3:
        attributes["scale"] = 0.3
    return inputs, outputs, attributes


@pytest.mark.parametrize("seed", range(10))
def test_attention(seed, one_node, on_cores):
    inputs, outputs, attributes = _attention(seed)
    model = one_node("Attention", inputs, outputs, **attributes)
    feeds = {f"x{i}": value for i, value in enumerate(inputs) if value is not None}
    names = [value.name for value in model.graph.output]
    expected = ReferenceEvaluator(model).run(names, feeds)
    on_cores(model, list(feeds.values()), expected, ["riscv32", "mps2-an386"][seed % 2 :][:1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 200))
def test_more_attention(seed, one_node, on_cores):
    test_attention(seed, one_node, on_cores)


def test_shapes_that_do_not_fit(one_node):
    rng = np.random.default_rng(1)
    q, k = _floats(rng, 1, 2, 3, 4), _floats(rng, 1, 2, 5, 6)
    with pytest.raises(ModelError, match="do not fit an attention"):
        read_onnx(one_node("Attention", [q, k, k]))
    mask = _floats(rng, 3, 7)
    with pytest.raises(ModelError, match="a mask of shape"):
        read_onnx(one_node("Attention", [q, q, q, mask]))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(packed, interleaved, one_node, on_cores):
    rng = np.random.default_rng(interleaved)
    batch, heads, sequence, size, turned = 2, 3, 4, 10, 6
    x = (
        _floats(rng, batch, sequence, heads * size)
        if packed
        else _floats(rng, batch, heads, sequence, size)
    )
    cos, sin = _floats(rng, 9, turned // 2), _floats(rng, 9, turned // 2)
    positions = rng.integers(0, 9, (batch, sequence))
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": turned}
    if packed:
        attributes["num_heads"] = heads
    inputs = [x, cos, sin, positions]
    model = one_node("RotaryEmbedding", inputs, constants=(1, 2), **attributes)
    expected = ReferenceEvaluator(model).run(None, {"x0": x, "x3": positions})
    on_cores(model, [x, positions], expected)
