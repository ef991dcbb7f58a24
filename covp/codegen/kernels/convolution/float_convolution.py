"""float32 CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: a few output channels at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.elementwise import float_clamp
from covp.codegen.kernels.window import Window
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.errors import ModelError
from covp.graph.attributes import Padding
from covp.graph.graph import Op

Array = NDArray[Any]


@kernel("CONV_2D", "float32")
def emit_float_conv2d(request: KernelRequest) -> LayerCode:
    """Emit loops with weights OHWI: several output channels read one input value."""
    op, a = request.op, request.op.attributes
    weights = _weights(op)
    window = Window(
        op.input(0).shape,
        op.output.shape,
        (weights.shape[1], weights.shape[2]),
        a.stride,
        a.padding,
        a.dilation,
    )
    together = _outputs_at_once(weights.shape[0])
    return _emit(request, window, weights, _dense_taps(window, weights, together), together)


@kernel("FULLY_CONNECTED", "float32")
def emit_float_fully_connected(request: KernelRequest) -> LayerCode:
    """Emit a 1x1 convolution with one pixel for each row of the input."""
    weights = _weights(request.op)
    outputs, depth = weights.shape
    rows = request.op.input(0).size // depth
    window = Window((rows, 1, 1, depth), (rows, 1, 1, outputs), (1, 1), (1, 1), Padding())
    weights = weights.reshape(outputs, 1, 1, depth)
    together = _outputs_at_once(weights.shape[0])
    return _emit(request, window, weights, _dense_taps(window, weights, together), together)


@kernel("DEPTHWISE_CONV_2D", "float32")
def emit_float_depthwise(request: KernelRequest) -> LayerCode:
    """Emit loops with weights 1HWO: neighbouring channels have neighbouring weights."""
    op, a = request.op, request.op.attributes
    weights = _weights(op)
    _, kh, kw, outputs = weights.shape
    window = Window(op.input(0).shape, op.output.shape, (kh, kw), a.stride, a.padding, a.dilation)
    factor = a.depth_multiplier
    # one input channel for all sums, or one each
    together = _outputs_at_once(outputs if factor == 1 else factor)
    channel = "o" if factor == 1 else f"o / {factor}"
    inputs = [f"from[{n if factor == 1 else 0}]" for n in range(together)]
    taps = [
        f"const float *from = image + {window.tap} + {channel};",
        f"const float *w = weights + (ky * {kw} + kx) * {outputs} + o;",
        *(f"s{n} += {value} * w[{n}];" for n, value in enumerate(inputs)),
    ]
    return _emit(request, window, weights, taps, together)


def _dense_taps(window: Window, weights: Array, together: int) -> list[str]:
    _, kh, kw, depth = weights.shape
    step = next(n for n in (4, 3, 2, 1) if depth % n == 0)
    sums = [
        f"s{n} += from[c + {i}] * w[c + {n * kh * kw * depth + i}];"
        for i in range(step)
        for n in range(together)
    ]
    return [
        f"const float *from = image + {window.tap};",
        f"const float *w = weights + ((o * {kh} + ky) * {kw} + kx) * {depth};",
        f"for (int32_t c = 0; c < {depth}; c += {step}) {{",
        indent(sums),
        "}",
    ]


def _emit(
    request: KernelRequest, window: Window, weights: Array, taps: list[str], together: int
) -> LayerCode:
    op = request.op
    outputs = window.result[3]
    sums = [f"s{n}" for n in range(together)]
    clamp = float_clamp("sum", op.attributes.activation)
    activate = f"static inline float activate(float sum)\n{{\n{clamp}    return sum;\n}}\n"
    start = ", ".join(f"s{n} = bias[o + {n}]" for n in range(together))
    channels = [
        f"for (int32_t o = 0; o < {outputs}; o += {together}) {{",
        f"    float {start};",
        f"    {window.rows} {{",
        f"        {window.columns} {{",
        indent(taps, 3),
        "        }",
        "    }",
        *(f"    output[o + {n}] = activate({s});" for n, s in enumerate(sums)),
        "}",
    ]
    constants = [c_array("weights", weights), c_array("bias", _bias(op, outputs))]
    return Operands.of(op).layer(
        request,
        window.loops(channels, "float"),
        [*constants, activate],
        schedule=f"{together} channels at once",
    )


def _outputs_at_once(channels: int) -> int:
    """Return the sums that are kept in registers."""
    return next(n for n in (4, 3, 2, 1) if channels % n == 0)


def _weights(op: Op) -> Array:
    tensor = op.input(1)
    if tensor.data is None:
        raise ModelError(f"{op.name}: weights {tensor.name} must be constant; freeze the model")
    return tensor.data


def _bias(op: Op, outputs: int) -> Array:
    tensor = op.inputs[2] if len(op.inputs) > 2 else None
    if tensor is None:
        return np.zeros(outputs, np.float32)
    if tensor.data is None:
        raise ModelError(f"{op.name}: bias {tensor.name} must be constant; freeze the model")
    return tensor.data
