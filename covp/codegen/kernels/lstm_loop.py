"""The loops of an LSTM over batch, time and cells, for all its forms.

The hidden state of a step is what the step before wrote to the output, so neither state needs a
buffer of its own: the cell state is changed element by element where it will be, and the last row
of the output is copied to the hidden state at the end. Either may thus be changed in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from covp.codegen.c_text import indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import Argument, KernelRequest, LayerCode
from covp.graph.graph import Op
from covp.graph.ops.sequence_lstm import CELL, HIDDEN

NAMES = ("input", "hidden", "cell", "output", "hidden_after", "cell_after")


def lstm_layer(
    request: KernelRequest,
    value: str,
    state: str,
    step: Sequence[str],
    definitions: Sequence[str],
    includes: Sequence[str] = (),
) -> LayerCode:
    """The layer around the C of one cell in one time step.

    Args:
        request: that is answered.
        value, state: C types of activations and of the cell state.
        step: statements that read ``x`` (the input row), ``h`` (the hidden state of before) and
            ``c[j]``, and write ``kept[j]`` (the cell state) and ``out[j]`` for cell ``j``.
        definitions, includes: as of `Operands.layer`.
    """
    op = request.op
    batch, steps, depth, cells = dimensions(op)
    first = ("t", str(batch), "b") if op.attributes.time_major else ("b", str(steps), "t")
    row = f"({first[0]} * {first[1]} + {first[2]})"
    body = [
        f"for (int32_t b = 0; b < {batch}; b++) {{",
        f"    const {value} *h = hidden + b * {cells};",
        f"    const {state} *c = cell + b * {cells};",
        f"    {state} *kept = cell_after + b * {cells};",
        f"    for (int32_t t = 0; t < {steps}; t++) {{",
        f"        const {value} *x = input + {row} * {depth};",
        f"        {value} *out = output + {row} * {cells};",
        f"        for (int32_t j = 0; j < {cells}; j++) {{",
        indent(step, 3),
        "        }",
        "        h = out;",
        "        c = kept;",
        "    }",
        f"    memcpy(hidden_after + b * {cells}, h, {cells} * sizeof(*h));",
        "}",
    ]
    tensors = (op.input(0), op.input(HIDDEN), op.input(CELL), *op.outputs)
    arguments: dict[str, Argument] = dict(zip(NAMES, tensors, strict=True))
    return Operands(arguments, "").layer(
        request, body, definitions, ["#include <string.h>", *includes]
    )


def dimensions(op: Op) -> tuple[int, int, int, int]:
    """(batch, steps, features, cells)."""
    first, second, depth = op.input(0).shape
    batch, steps = (second, first) if op.attributes.time_major else (first, second)
    return batch, steps, depth, op.output.shape[2]
