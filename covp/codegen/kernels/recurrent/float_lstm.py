"""float32 UNIDIRECTIONAL_SEQUENCE_LSTM: the four gates of a cell read each value once."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, c_float
from covp.codegen.kernels.recurrent.lstm_loop import Step, dimensions, lstm_layer
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.ops.sequence_lstm import BIASES, INPUT_WEIGHTS, RECURRENT_WEIGHTS

_SIGMOID = """\
static inline float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}
"""


@kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", "float32")
def emit_float_lstm(request: KernelRequest) -> LayerCode:
    """Emit the layer, its weights by cell, then feature and hidden value, then gate."""
    op = request.op
    _, _, depth, cells = dimensions(op)
    weights = [
        np.stack([np.asarray(op.input(first + gate).data) for gate in range(4)], axis=-1)
        for first in (INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES)
    ]
    constants = [
        c_array("weights", np.concatenate(weights[:2], axis=1), "by cell, input, gate"),
        c_array("biases", weights[2], "by cell, gate"),
        _SIGMOID,
    ]
    step = [
        f"const float *w = weights + j * {4 * (depth + cells)};",
        "const float *bias = biases + j * 4;",
        "float in = bias[0], forget = bias[1], new = bias[2], out_gate = bias[3];",
        *_products("x", depth),
        *_products("h", cells),
        "float next = sigmoid(forget) * c[j] + sigmoid(in) * tanhf(new);",
        *_clip(op.attributes.cell_clip),
        "kept[j] = next;",
        "out[j] = sigmoid(out_gate) * tanhf(next);",
    ]
    return lstm_layer(request, Step("float", "float", step), constants, ["#include <math.h>"])


def _products(vector: str, count: int) -> list[str]:
    return [
        f"for (int32_t k = 0; k < {count}; k++, w += 4) {{",
        f"    float value = {vector}[k];",
        "    in += value * w[0];",
        "    forget += value * w[1];",
        "    new += value * w[2];",
        "    out_gate += value * w[3];",
        "}",
    ]


def _clip(clip: float) -> list[str]:
    if clip <= 0:
        return []
    most = c_float(clip)
    return [f"next = next > {most} ? {most} : next < -{most} ? -{most} : next;"]
