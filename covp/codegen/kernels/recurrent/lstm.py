"""UNIDIRECTIONAL_SEQUENCE_LSTM of float32, int8 and int16.

The hidden state of a step is what the step before wrote to the output, so neither state needs a
buffer of its own: the cell state is changed element by element where it will be, and the last row
of the output is copied to the hidden state at the end. Either may thus be changed in place.

The integers are those of `covp.graph.ops.quantized_lstm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, c_float, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.recurrent.gate_functions import gate_functions
from covp.codegen.kernels.recurrent.gate_products import GateProducts
from covp.codegen.kernels.requantize.scaling import high_multiply, rescale, rescale_wide
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel
from covp.graph.graph import Op
from covp.graph.ops.quantized_lstm import UNIT_BITS, QuantizedLstm
from covp.graph.ops.sequence_lstm import BIASES, CELL, HIDDEN, INPUT_WEIGHTS, RECURRENT_WEIGHTS
from covp.graph.quantization import quantize_multiplier

NAMES = ("input", "hidden", "cell", "output", "hidden_after", "cell_after")


@dataclass(frozen=True)
class LstmStep:
    """One time step of an LSTM.

    Attributes:
        value, state: C types of activations and of the cell state.
        cell: statements that read ``x`` (the input row), ``h`` (the hidden state of before) and
            ``c[j]``, and write ``kept[j]`` (the cell state) and ``out[j]`` for cell ``j``.
        prepare: statements before the loop over the cells.
        scratch: bytes of a buffer ``scratch``; 0: none.
        schedule: for reports.
    """

    value: str
    state: str
    cell: Sequence[str]
    prepare: Sequence[str] = ()
    scratch: int = 0
    schedule: str = ""


def lstm_layer(
    request: KernelRequest, step: LstmStep, definitions: Sequence[str], includes: Sequence[str] = ()
) -> LayerCode:
    """Return the layer around a step; ``definitions`` and ``includes`` as of `Operands.layer`."""
    op = request.op
    states = (op.input(HIDDEN), op.input(CELL))
    arguments: dict[str, Argument] = dict(
        zip(NAMES, (op.input(0), *states, *op.outputs), strict=True)
    )
    if step.scratch:
        arguments["scratch"] = Scratch(step.scratch)
    return Operands(arguments, "").layer(
        request,
        _loops(op, step),
        definitions,
        ["#include <string.h>", *includes],
        schedule=step.schedule,
        changed=list(zip(states, op.outputs[1:], strict=True)),
    )


def _loops(op: Op, step: LstmStep) -> list[str]:
    batch, steps, depth, cells = dimensions(op)
    first = ("t", str(batch), "b") if op.attributes.time_major else ("b", str(steps), "t")
    row = f"({first[0]} * {first[1]} + {first[2]})"
    return [
        f"for (int32_t b = 0; b < {batch}; b++) {{",
        f"    const {step.value} *h = hidden + b * {cells};",
        f"    const {step.state} *c = cell + b * {cells};",
        f"    {step.state} *kept = cell_after + b * {cells};",
        f"    for (int32_t t = 0; t < {steps}; t++) {{",
        f"        const {step.value} *x = input + {row} * {depth};",
        f"        {step.value} *out = output + {row} * {cells};",
        *([indent(step.prepare, 2)] if step.prepare else []),
        f"        for (int32_t j = 0; j < {cells}; j++) {{",
        indent(step.cell, 3),
        "        }",
        "        h = out;",
        "        c = kept;",
        "    }",
        f"    memcpy(hidden_after + b * {cells}, h, {cells} * sizeof(*h));",
        "}",
    ]


def dimensions(op: Op) -> tuple[int, int, int, int]:
    """Return (batch, steps, features, cells)."""
    first, second, depth = op.input(0).shape
    batch, steps = (second, first) if op.attributes.time_major else (first, second)
    return batch, steps, depth, op.output.shape[2]


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
    return lstm_layer(request, LstmStep("float", "float", step), constants, ["#include <math.h>"])


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


Array = NDArray[Any]
_GATES = ("in", "forget", "new", "last")
_SATURATE = """\
static inline int32_t saturate(int32_t value)
{
    return value > 32767 ? 32767 : value < -32768 ? -32768 : value;
}
"""


@kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", "int8", "int16")
def emit_quantized_lstm(request: KernelRequest) -> LayerCode:
    """Emit the layer, its weights by cell, then feature and hidden value, then gate."""
    numbers = QuantizedLstm.of(request.op)
    _, _, depth, cells = dimensions(request.op)
    wide = _bound(numbers) >= 1 << 31
    # sums of int8 products wrap as on TFLM's cores
    beyond = "int64_t" if numbers.dtype == np.int16 else "uint32_t"
    total = beyond if wide else "int32_t"
    products = GateProducts.of(request.core, {"x": depth, "h": cells}, total)
    step = LstmStep(
        f"{numbers.dtype.name}_t",
        "int16_t",
        _cell(numbers, products),
        products.prepare(),
        products.scratch,
        products.name,
    )
    definitions = [
        *_constants(numbers, products),
        _SATURATE,
        *_rescalers(request.core, numbers, wide),
        gate_functions(numbers),
    ]
    return lstm_layer(request, step, definitions, products.includes)


def _constants(numbers: QuantizedLstm, products: GateProducts) -> list[str]:
    """Return C text of the weights and biases."""
    gates = numbers.gates
    matrices = [[gate.weights for gate in gates], [gate.recurrent for gate in gates]]
    weights = [products.pack(np.stack(parts, axis=-1)) for parts in matrices]
    biases = [gate.bias for gate in gates] + [gate.recurrent_bias for gate in gates]
    stored = np.stack(biases, axis=-1).astype(products.total.removesuffix("_t"))
    return [
        c_array("weights", np.concatenate(weights, axis=1), "by cell, vector, gate"),
        c_array("biases", stored, "by cell, gate"),
    ]


def _cell(numbers: QuantizedLstm, products: GateProducts) -> list[str]:
    """Return C statements of one cell in one step."""
    total = products.total
    value = "(int32_t)" if total == "uint32_t" else ""
    return [
        f"const int8_t *w = weights + j * {products.stride()};",
        f"const {total} *bias = biases + j * 8;",
        *products.start(),
        *_sums(total, "", 0),
        *products.lines([f"sum_{name}" for name in _GATES], "x"),
        *(f"int32_t {name} = saturate(own_{name}({value}sum_{name}));" for name in _GATES),
        *_sums(total, "_back", 4),
        *products.lines([f"sum_back_{name}" for name in _GATES], "h"),
        *(
            f"{name} = saturate({name} + {_back(numbers, f'{value}sum_back_{name}', name)});"
            for name in _GATES
        ),
        *_update(numbers),
    ]


def _bound(numbers: QuantizedLstm) -> int:
    """Return an upper bound of the magnitude of all sums."""
    most = -int(np.iinfo(numbers.dtype).min)
    return max(
        int((np.abs(bias) + most * np.abs(weights.astype(np.int64)).sum(axis=1)).max())
        for gate in numbers.gates
        for weights, bias in ((gate.weights, gate.bias), (gate.recurrent, gate.recurrent_bias))
    )


def _sums(total: str, suffix: str, first: int) -> list[str]:
    """Return the sums of the four gates at their start."""
    start = ", ".join(f"sum{suffix}_{name} = bias[{first + i}]" for i, name in enumerate(_GATES))
    return [f"{total} {start};"]


def _back(numbers: QuantizedLstm, total: str, name: str) -> str:
    scaled = f"back_{name}({total})"
    return f"saturate({scaled})" if numbers.dtype == np.int16 else scaled


def _rescalers(core: Core, numbers: QuantizedLstm, wide: bool) -> list[str]:
    """Return the functions that rescale each gate's sums, cell-state products and the output."""
    functions = []
    for name, gate in zip(_GATES, numbers.gates, strict=True):
        for prefix, factor in (("own", gate.factor), ("back", gate.recurrent_factor)):
            if numbers.dtype == np.int16:
                functions.append(rescale_wide(f"{prefix}_{name}", factor, wide))
            else:
                functions.append(rescale(core, f"{prefix}_{name}", factor, _bound(numbers)))
    functions.append(rescale(core, "hide", numbers.hidden_factor, 32767 * 32767))
    shifts = {"keep": UNIT_BITS, "admit": 2 * UNIT_BITS + numbers.cell_power}
    for name, bits in shifts.items():
        if numbers.dtype == np.int16:
            factor = quantize_multiplier(2.0**-bits)
            functions.append(rescale(core, name, factor, 32768 * 32767))
        else:
            functions.append(_divide(name, bits))
    called = any("high_multiply(" in function for function in functions)
    return [high_multiply(core), *functions] if called else functions


def _divide(name: str, bits: int) -> str:
    """Emit RoundingDivideByPOT, which rounds ties away from zero."""
    mask = (1 << bits) - 1
    return (
        f"static inline int32_t {name}(int32_t value)\n{{\n"
        f"    return (value >> {bits}) + ((value & {mask}) > {mask >> 1} + (value < 0));\n}}\n"
    )


def _update(numbers: QuantizedLstm) -> list[str]:
    """Emit the update of cell and hidden state from the four gates."""
    info = np.iinfo(numbers.dtype)
    clip = numbers.clip
    held = [f"next = next > {clip} ? {clip} : next < -{clip} ? -{clip} : next;"] if clip else []
    return [
        "int32_t kept_part = keep(sigmoid(forget) * c[j]);",
        "int32_t next = saturate(kept_part + admit(sigmoid(in) * tanh_gate(new)));",
        *held,
        "kept[j] = (int16_t)next;",
        f"int32_t result = hide(sigmoid(last) * tanh_cell(next)) + {numbers.hidden_zero_point};",
        f"result = result < {info.min} ? {info.min} : result > {info.max} ? {info.max} : result;",
        f"out[j] = ({numbers.dtype.name}_t)result;",
    ]
