"""SVDF: each filter's newest value, its state moved by one step, its sum over the steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.elementwise import float_clamp
from covp.codegen.kernels.requantize.scaling import high_multiply, rescale
from covp.codegen.layer import Argument, KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.definition import Array
from covp.graph.ops.svdf import BIAS, FEATURE, STATE, TIME, svdf_factors


@dataclass(frozen=True)
class _Form:
    """The C in which the types differ.

    Attributes:
        total, sums: C types of a filter's sum of products and of a unit's.
        newest: C of the state's new element, from the sum ``newest`` of filter ``f``.
        centred: C of a state's element ``kept`` as it is multiplied.
        finish: statements that write ``sum``.
        definitions: C text of constants and functions.
    """

    total: str
    sums: str
    newest: str
    centred: str
    finish: list[str]
    definitions: list[str]


@kernel("SVDF", "float32")
def emit_float_svdf(request: KernelRequest) -> LayerCode:
    """Emit one unit at a time."""
    op = request.op
    bias = op.inputs[BIAS]
    data = np.zeros(op.output.shape[1], np.float32) if bias is None else np.asarray(bias.data)
    clamp = float_clamp("sum", op.attributes.activation)
    finish = [*clamp.splitlines(), "*output++ = sum;"]
    form = _Form("float", "float", "newest", "kept", finish, [c_array("biases", data)])
    return _layer(request, form)


@kernel("SVDF", "int8")
def emit_quantized_svdf(request: KernelRequest) -> LayerCode:
    """Emit the layer; sums that may leave int32 are added modulo 2**32, as on TFLM's cores."""
    op = request.op
    bias, bounds = _bias_and_bounds(op)
    sums = "int32_t" if bounds[1] < 1 << 31 else "uint32_t"
    zero, own = op.input(STATE).zero_point, op.input(0).zero_point
    definitions = [c_array("biases", bias.astype(sums.removesuffix("_t")))]
    if own:
        shift = own * np.asarray(op.input(FEATURE).data).astype(np.int64).sum(axis=1)
        definitions.append(c_array("offsets", shift.astype(np.int32), "the input's zero point"))
    finish = [
        f"int32_t result = to_output((int32_t)sum) + {op.output.zero_point};",
        "*output++ = (int8_t)(result < -128 ? -128 : result > 127 ? 127 : result);",
    ]
    form = _Form(
        "int32_t",
        sums,
        "admit(newest - offsets[f])" if own else "admit(newest)",
        f"(kept - ({zero}))" if zero else "kept",
        finish,
        [*definitions, *_rescalers(request.core, op, bounds), _admit(op)],
    )
    return _layer(request, form)


def _admit(op: Op) -> str:
    """Return C text of the function from a filter's sum to the state's new element."""
    state = op.input(STATE)
    info = np.iinfo(state.dtype)
    return (
        "static inline int32_t admit(int32_t sum)\n{\n"
        "    int32_t value = to_state(sum);\n"
        f"    value = value > {info.max} ? {info.max} : value < {info.min} ? {info.min} : value;\n"
        f"    return ({c_type(state.dtype)})(value + {state.zero_point});\n}}\n"
    )


def _bias_and_bounds(op: Op) -> tuple[Array, tuple[int, int]]:
    """Return the units' biases; bounds of a filter's and a unit's sum."""
    feature, time = (np.asarray(op.input(p).data).astype(np.int64) for p in (FEATURE, TIME))
    bias = op.inputs[BIAS]
    units = op.output.shape[1]
    own = np.zeros(units, np.int64) if bias is None else np.asarray(bias.data).astype(np.int64)
    most = 1 << (8 * op.input(STATE).dtype.itemsize)
    steps = np.abs(time).sum(axis=1).reshape(units, -1).sum(axis=1)
    first = 255 * int(np.abs(feature).sum(axis=1).max())
    return own.astype(np.int32), (first, int((np.abs(own) + most * steps).max()))


def _rescalers(core: Core, op: Op, bounds: tuple[int, int]) -> list[str]:
    first, second = svdf_factors(op)
    functions = [
        rescale(core, "to_state", first, bounds[0]),
        rescale(core, "to_output", second, bounds[1]),
    ]
    called = any("high_multiply(" in function for function in functions)
    return [high_multiply(core), *functions] if called else functions


def _layer(request: KernelRequest, form: _Form) -> LayerCode:
    """Return the loops over batch, units and their filters."""
    op = request.op
    batch, depth = op.input(0).shape
    filters, rank = op.input(TIME).shape[0], op.attributes.rank
    body = [
        f"for (int32_t b = 0; b < {batch}; b++) {{",
        "    int32_t f = 0;",
        f"    for (int32_t unit = 0; unit < {filters // rank}; unit++) {{",
        f"        {form.sums} sum = biases[unit];",
        f"        for (int32_t r = 0; r < {rank}; r++, f++) {{",
        indent(_one_filter(op, form), 3),
        "        }",
        indent(form.finish, 2),
        "    }",
        f"    input += {depth};",
        "}",
    ]
    arguments: dict[str, Argument] = {
        "input": op.input(0),
        "state": op.input(STATE),
        "output": op.output,
        "state_after": op.outputs[1],
    }
    weights = [
        c_array(name, np.asarray(op.input(position).data))
        for name, position in (("features", FEATURE), ("times", TIME))
    ]
    changed = [(op.input(STATE), op.outputs[1])]
    return Operands(arguments, "").layer(
        request, body, [*weights, *form.definitions], changed=changed
    )


def _one_filter(op: Op, form: _Form) -> list[str]:
    """Return the new element of a filter, its state moved by one step, its sum over the steps."""
    depth, steps = op.input(0).shape[1], op.input(TIME).shape[1]
    state = c_type(op.input(STATE).dtype)
    product = f"times[f * {steps} + i] * {form.centred}"
    if form.sums == "uint32_t":
        product = f"(uint32_t)({product})"
    return [
        f"const {c_type(op.input(FEATURE).dtype)} *w = features + f * {depth};",
        f"{form.total} newest = 0;",
        f"for (int32_t i = 0; i < {depth}; i++)",
        "    newest += input[i] * w[i];",
        f"for (int32_t i = 0; i < {steps}; i++) {{",
        f"    {state} kept = i < {steps - 1} ? state[i + 1] : ({state}){form.newest};",
        "    state_after[i] = kept;",
        f"    sum += {product};",
        "}",
        f"state += {steps};",
        f"state_after += {steps};",
    ]
