"""SVDF: each filter's newest value, its state moved by one step, its sum over the steps."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array, c_type, indent
from covp.codegen.kernels.elementwise import float_clamp
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.rescale import high_multiply, rescale
from covp.codegen.layer import Argument, KernelRequest, LayerCode, kernel
from covp.cores import Core
from covp.graph.graph import Op
from covp.graph.ops.definition import Array
from covp.graph.ops.svdf import BIAS, FEATURE, STATE, TIME, svdf_factors


@kernel("SVDF", "float32")
def emit_float_svdf(request: KernelRequest) -> LayerCode:
    """One unit at a time."""
    op = request.op
    bias = op.inputs[BIAS]
    data = np.zeros(op.output.shape[1], np.float32) if bias is None else np.asarray(bias.data)
    clamp = float_clamp("sum", op.attributes.activation)
    finish = [*clamp.splitlines(), "*output++ = sum;"]
    return _layer(request, "float", "float", data, "newest", "kept", finish, [])


@kernel("SVDF", "int8")
def emit_quantized_svdf(request: KernelRequest) -> LayerCode:
    """Sums that may leave int32 are added modulo 2**32, as on TFLM's cores."""
    op = request.op
    bias, bounds = _bias_and_bounds(op)
    sums = "int32_t" if bounds[1] < 1 << 31 else "uint32_t"
    info, zero = np.iinfo(op.input(STATE).dtype), op.input(STATE).zero_point
    newest = f"admit(newest - {_offset(op)})" if _offset(op) else "admit(newest)"
    functions = _rescalers(request.core, op, bounds)
    functions.append(
        "static inline int32_t admit(int32_t sum)\n{\n"
        "    int32_t value = to_state(sum);\n"
        f"    value = value > {info.max} ? {info.max} : value < {info.min} ? {info.min} : value;\n"
        f"    return ({c_type(op.input(STATE).dtype)})(value + {zero});\n}}\n"
    )
    finish = [
        f"int32_t result = to_output((int32_t)sum) + {op.output.zero_point};",
        "*output++ = (int8_t)(result < -128 ? -128 : result > 127 ? 127 : result);",
    ]
    centred = f"(kept - ({zero}))" if zero else "kept"
    return _layer(request, "int32_t", sums, bias, newest, centred, finish, functions)


def _offset(op: Op) -> str:
    """C of what the input's zero point adds to the products of filter ``f``; empty: nothing."""
    return "offsets[f]" if op.input(0).zero_point else ""


def _bias_and_bounds(op: Op) -> tuple[Array, tuple[int, int]]:
    """The units' biases; bounds of a filter's and a unit's sum."""
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


def _layer(
    request: KernelRequest,
    total: str,
    sums: str,
    bias: Array,
    newest: str,
    centred: str,
    finish: list[str],
    functions: list[str],
) -> LayerCode:
    """The loops over batch, units and their filters.

    Args:
        request: that is answered.
        total, sums: C types of a filter's sum of products and of a unit's.
        bias: of the units.
        newest: C of the state's new element, from the sum ``newest`` of filter ``f``.
        centred: C of a state's element ``kept`` as it is multiplied.
        finish: statements that write ``sum``.
        functions: definitions.
    """
    op = request.op
    batch, depth = op.input(0).shape
    filters, steps = op.input(TIME).shape
    feature, time = (np.asarray(op.input(p).data) for p in (FEATURE, TIME))
    state = c_type(op.input(STATE).dtype)
    own = bias.astype(np.uint32) if sums == "uint32_t" else bias
    constants = [c_array("features", feature), c_array("times", time), c_array("biases", own)]
    if _is_offset(op):
        shift = op.input(0).zero_point * feature.astype(np.int64).sum(axis=1)
        constants.append(c_array("offsets", shift.astype(np.int32), "the input's zero point"))
    product = f"sum += times[f * {steps} + i] * {centred};"
    if sums == "uint32_t":
        product = f"sum += (uint32_t)(times[f * {steps} + i] * {centred});"
    one_filter = [
        f"const {c_type(feature.dtype)} *w = features + f * {depth};",
        f"{total} newest = 0;",
        f"for (int32_t i = 0; i < {depth}; i++)",
        "    newest += input[i] * w[i];",
        f"for (int32_t i = 0; i < {steps}; i++) {{",
        f"    {state} kept = i < {steps - 1} ? state[i + 1] : {newest};",
        "    state_after[i] = kept;",
        f"    {product}",
        "}",
        f"state += {steps};",
        f"state_after += {steps};",
    ]
    rank = op.attributes.rank
    body = [
        f"for (int32_t b = 0; b < {batch}; b++) {{",
        "    int32_t f = 0;",
        f"    for (int32_t unit = 0; unit < {filters // rank}; unit++) {{",
        f"        {sums} sum = biases[unit];",
        f"        for (int32_t r = 0; r < {rank}; r++, f++) {{",
        indent(one_filter, 3),
        "        }",
        indent(finish, 2),
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
    changed = [(op.input(STATE), op.outputs[1])]
    return Operands(arguments, "").layer(request, body, [*constants, *functions], changed=changed)


def _is_offset(op: Op) -> bool:
    return op.input(0).dtype == np.int8 and bool(_offset(op))
