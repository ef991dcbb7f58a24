"""Problems: their expected results against TFLM's loops in Python's integers; how they shrink."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import covp.testing
from covp.errors import UsageError
from covp.testing import problems
from covp.testing.requantization import Requantization
from tests.codegen.tflm import scaled

FEW = settings(max_examples=40, deadline=None)
SMALL: dict[str, Any] = {"max_size": 4, "max_channels": 4}
EVERY = [
    *(f(dtype) for f in (problems.convolutions, problems.depthwise_convolutions)
      for dtype in ("int8", "int16", "float32")),
    *(problems.fully_connected(dtype) for dtype in ("int8", "int16", "float32")),
    *(problems.pools(dtype=dtype) for dtype in ("int8", "int16", "float32")),
    problems.additions(subtract=None), problems.additions("int16"),
    problems.products(), problems.products("int16"),
    problems.svdfs(), problems.lstms(), problems.lstms("int16"), problems.grus(),
]  # fmt: skip


def reduced(value: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier of int64: 16 bits of the multiplier, one rounding."""
    factor = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    total = 15 - shift
    wide = ((value * factor + (1 << (total - 1))) >> total) & 0xFFFFFFFF
    return wide - (1 << 32) if wide >> 31 else wide


def stored(value: int, r: Requantization, channel: int, wide: bool = False) -> int:
    index = channel if r.multiplier.size > 1 else 0
    scale = reduced if wide else scaled
    result = scale(value, int(r.multiplier[index]), int(r.shift[index])) + r.zero_point
    return min(max(result, r.low), r.high)


def windows(p: Any, kernel: Any, dilation: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Each place of the output, and (tap, place in the image) of all taps inside the image."""
    _, height, width, _ = p.input.shape
    for b, y, x in np.ndindex(p.output_shape[:3]):
        inside = []
        for ky, kx in itertools.product(range(kernel[0]), range(kernel[1])):
            row = y * p.stride[0] + ky * dilation[0] - p.padding[0]
            column = x * p.stride[1] + kx * dilation[1] - p.padding[2]
            if 0 <= row < height and 0 <= column < width:
                inside.append(((ky, kx), (b, row, column)))
        yield (b, y, x), inside


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize("depthwise", [False, True])
@given(st.data())
@FEW
def test_convolutions(depthwise: bool, dtype: str, data: st.DataObject) -> None:
    """Seven loops: groups and depth multipliers follow from the shapes."""
    draw = problems.depthwise_convolutions if depthwise else problems.convolutions
    p: Any = data.draw(draw(dtype, **SMALL))
    result = p.expected()
    assert result.shape == p.output_shape and result.dtype == p.input.dtype
    outputs, channels = result.shape[3], p.input.shape[3]
    for place, inside in windows(p, p.weights.shape[1:3], p.dilation):
        for o in range(outputs):
            if depthwise:
                terms = [
                    (p.weights[0][tap][o], p.input[at][o * channels // outputs])
                    for tap, at in inside
                ]
            else:
                depth = p.weights.shape[3]
                first = o // (outputs // (channels // depth)) * depth
                terms = [
                    (p.weights[o][tap][c], p.input[at][first + c])
                    for tap, at in inside
                    for c in range(depth)
                ]
            bias = 0 if p.bias is None else p.bias[o]
            if dtype == "float32":
                total = float(bias) + sum(float(w) * float(x) for w, x in terms)
                assert np.clip(total, *p.activation) == pytest.approx(
                    float(result[place][o]), abs=1e-4
                )
            else:
                exact = int(bias) + sum(int(w) * (int(x) - p.zero_point) for w, x in terms)
                expected = stored(exact, p.requantization, o, dtype == "int16")
                assert expected == result[place][o]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@given(st.data())
@FEW
def test_fully_connected(dtype: str, data: st.DataObject) -> None:
    p = data.draw(problems.fully_connected(dtype, max_depth=12))
    result = p.expected()
    assert result.shape == p.output_shape and p.requantization is not None
    for row, o in np.ndindex(result.shape):
        sums = sum(
            int(w) * (int(x) - p.zero_point)
            for w, x in zip(p.weights[o], p.input[row], strict=True)
        )
        total = sums + (0 if p.bias is None else int(p.bias[o]))
        assert stored(total, p.requantization, o, dtype == "int16") == result[row, o]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@given(st.data())
@FEW
def test_pools(dtype: str, data: st.DataObject) -> None:
    p = data.draw(problems.pools(dtype=dtype, **SMALL))
    result = p.expected()
    for place, inside in windows(p, p.filter, (1, 1)):
        assert inside, "a window has a pixel of the image"
        for c in range(result.shape[3]):
            values = [int(p.input[at][c]) for _, at in inside]
            total, count = sum(values), len(values)
            rounded = (abs(total) + count // 2) // count * (1 if total > 0 else -1)
            chosen = max(values) if p.kind == "max" else rounded
            assert min(max(chosen, p.low), p.high) == result[place][c]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@given(st.data())
@FEW
def test_sums_and_products(dtype: str, data: st.DataObject) -> None:
    p: Any = data.draw(
        st.one_of(problems.additions(dtype, subtract=None), problems.products(dtype))
    )
    result = p.expected()
    a, b = (np.broadcast_to(each, result.shape) for each in (p.a, p.b))
    for place in np.ndindex(result.shape):
        x, y = int(a[place]) - p.zero_points[0], int(b[place]) - p.zero_points[1]
        if isinstance(p, covp.testing.AddProblem):
            x, y = (
                scaled(v << p.left_shift, p.multipliers[i], p.shifts[i])
                for i, v in enumerate((x, y))
            )
            value = x - y if p.subtract else x + y
        else:
            value = x * y
        assert stored(value, p.requantization, 0) == result[place]


@given(problems.svdfs())
@FEW
def test_svdf(p: Any) -> None:
    output, state = p.expected()
    assert np.array_equal(state[..., :-1], p.state[..., 1:])
    for b, f in np.ndindex(p.state.shape[:2]):
        dot = sum(
            int(w) * (int(x) - p.zero_point)
            for w, x in zip(p.feature_weights[f], p.input[b], strict=True)
        )
        assert state[b, f, -1] == min(max(scaled(dot, *p.state_factor), -32768), 32767)
    for b, unit in np.ndindex(output.shape):
        mine = range(unit * p.rank, (unit + 1) * p.rank)
        pairs = [(s, w) for f in mine for s, w in zip(state[b, f], p.time_weights[f], strict=True)]
        total = sum(int(s) * int(w) for s, w in pairs)
        total += 0 if p.bias is None else int(p.bias[unit])
        assert -(2**31) <= total < 2**31, "a sum that C defines"
        assert stored(total, p.requantization, 0) == output[b, unit]


@given(problems.grus())
@FEW
def test_gru_is_onnx(p: Any) -> None:
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    helper = onnx.helper
    cells = p.hidden.shape[1]
    single = onnx.TensorProto.FLOAT
    arrays = {
        "x": p.input.swapaxes(0, 1),
        "w": p.weights.reshape(1, 3 * cells, -1),
        "r": p.recurrent_weights.reshape(1, 3 * cells, cells),
        "b": np.concatenate([p.bias.ravel(), p.recurrent_bias.ravel()])[None],
        "h": p.hidden[None],
    }
    node = helper.make_node(
        "GRU", ["x", "w", "r", "b", "", "h"], ["y", "last"],
        hidden_size=cells, linear_before_reset=int(p.reset_after),
    )  # fmt: skip
    inputs = [helper.make_tensor_value_info(n, single, a.shape) for n, a in arrays.items()]
    outputs = [helper.make_tensor_value_info(n, single, None) for n in ("y", "last")]
    model = helper.make_model(
        helper.make_graph([node], "gru", inputs, outputs),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=9,
    )  # fmt: skip
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    y, last = session.run(None, arrays)
    sequence, hidden = p.expected()
    assert np.allclose(y[:, 0].swapaxes(0, 1), sequence, atol=1e-5)
    assert np.allclose(last[0], hidden, atol=1e-5)


@pytest.mark.parametrize("strategy", EVERY, ids=repr)
@given(st.data())
@settings(max_examples=25, deadline=None)
def test_the_text_of_a_problem_makes_it_again(strategy: Any, data: st.DataObject) -> None:
    p = data.draw(strategy)
    again = eval(repr(p), {"np": np, **{n: getattr(covp.testing, n) for n in dir(covp.testing)}})
    assert again == p
    results = p.expected(), again.expected()
    one, two = (each if isinstance(each, tuple) else (each,) for each in results)
    assert all(map(np.array_equal, one, two))


@pytest.mark.costly
def test_what_is_wrong_for_three_rows_shrinks_to_three_rows_of_zeros() -> None:
    p = find(
        problems.convolutions(),
        lambda p: p.weights.shape[1] >= 3,
        settings=settings(database=None, max_examples=2000),
    )
    assert p.input.shape == (1, 3, 1, 1) and p.weights.shape == (1, 3, 1, 1)
    assert not any(np.any(each) for each in (p.input, p.weights, p.bias) if each is not None)


@pytest.mark.slow
def test_a_missing_saturation_shrinks_to_one_number() -> None:
    """A kernel whose result wraps instead: one product is enough."""

    def wrong(p: Any) -> bool:
        free = replace(p.requantization, low=-(1 << 31), high=(1 << 31) - 1)
        return not np.array_equal(p.expected(), replace(p, requantization=free).expected())

    few = settings(database=None, max_examples=500)
    draws = problems.fully_connected()
    found = [find(draws, wrong, settings=few, random=Random(n)) for n in range(5)]
    single = [p for p in found if p.weights.size == p.input.size == 1]
    assert len(single) >= 4, "nearly always: 19 of 20"


def test_geometry_that_is_given() -> None:
    @settings(max_examples=20, deadline=None)
    @given(
        problems.convolutions(
            batch=1, size=(5, 4), channels=(4, 6), groups=2, kernel=st.just((3, 1)), bias=False,
            padding="same", stride=(2, 1), dilation=(1, 1), zero_point=-128,
        )
    )  # fmt: skip
    def drawn(p: Any) -> None:
        assert p.input.shape == (1, 5, 4, 4) and p.weights.shape == (6, 3, 1, 2)
        assert p.output_shape == (1, 3, 4, 6) and p.bias is None and p.zero_point == -128

    drawn()
    with pytest.raises(UsageError, match="strides cannot be given; batch, bias"):
        problems.convolutions(strides=(1, 1))
    with pytest.raises(UsageError, match="int8, int16 or float32 are needed"):
        problems.pools(dtype="uint8")
