"""The loops of an LSTM over batch, time and cells, for all its forms.

The hidden state of a step is what the step before wrote to the output, so neither state needs a
buffer of its own: the cell state is changed element by element where it will be, and the last row
of the output is copied to the hidden state at the end. Either may thus be changed in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covp.codegen.c_text import indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch
from covp.graph.graph import Op
from covp.graph.ops.sequence_lstm import CELL, HIDDEN

NAMES = ("input", "hidden", "cell", "output", "hidden_after", "cell_after")


@dataclass(frozen=True)
class Step:
    """One step in time.

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
    request: KernelRequest, step: Step, definitions: Sequence[str], includes: Sequence[str] = ()
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


def _loops(op: Op, step: Step) -> list[str]:
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
    """(batch, steps, features, cells)."""
    first, second, depth = op.input(0).shape
    batch, steps = (second, first) if op.attributes.time_major else (first, second)
    return batch, steps, depth, op.output.shape[2]
