"""Two kernels under test: one in the style of CMSIS-NN, one in that of muRISCV-NN.

pytest --covp-platform cortex-m4 --covp-platform riscv32 --covp-sanitize
"""

import numpy as np
from hypothesis import given

from covp.testing import Buffer, problems


def dims(shape):
    return dict(zip(("n", "h", "w", "c"), shape, strict=True))


@given(problems.convolutions("int8", groups=1, per_channel=True))
def test_convolve_s8(kernel, p):
    convolve = kernel("convolve_s8.c", "convolve_s8")
    buffer_size = kernel("convolve_s8.c", "convolve_s8_get_buffer_size")
    r, (top, _, left, _) = p.requantization, p.padding
    size = buffer_size(dims(p.input.shape), dims(p.weights.shape))
    output = np.zeros(p.output_shape, np.int8)
    status = convolve(
        {"buf": Buffer(np.zeros(size, np.int8), scratch=True), "size": size},
        {
            "input_offset": -p.zero_point,
            "output_offset": r.zero_point,
            "stride": {"h": p.stride[0], "w": p.stride[1]},
            "padding": {"h": top, "w": left},
            "dilation": {"h": p.dilation[0], "w": p.dilation[1]},
            "activation": {"min": r.low, "max": r.high},
        },
        {"multiplier": r.multiplier, "shift": r.shift},
        dims(p.input.shape),
        p.input,
        dims(p.weights.shape),
        p.weights,
        p.bias,
        dims(p.output_shape),
        output,
    )
    assert status == 0
    assert np.array_equal(output, p.expected())


@given(problems.fully_connected("int8", batch=1, per_channel=False))
def test_vec_mat_mult_t_s8(kernel, p):
    multiply = kernel("vec_mat_mult_s8.c", "vec_mat_mult_t_s8")
    r, (rows, columns) = p.requantization, p.weights.shape
    output = np.zeros(rows, np.int8)
    status = multiply(
        p.input, p.weights, p.bias, output,
        -p.zero_point, r.zero_point, int(r.multiplier[0]), int(r.shift[0]),
        columns, rows, r.low, r.high,
    )  # fmt: skip
    assert status == 0
    assert np.array_equal(output, p.expected()[0])
