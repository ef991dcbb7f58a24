"""float32 normalizations: each row is read for its figures, then written; may run in place."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from covp.codegen.c_text import c_float, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.normalization import L2_LEAST


def _emit_rows(
    request: KernelRequest, row: Callable[[int], list[str]], in_place: bool = True
) -> LayerCode:
    """Emit a loop over rows of the last axis; ``row(length)`` computes ``y`` from ``x``."""
    op = request.op
    length = op.input(0).shape[-1]
    return _emit(request, length, row(length), (0,), in_place)


def _emit(
    request: KernelRequest,
    length: int,
    row: list[str],
    positions: tuple[int, ...],
    in_place: bool = True,
) -> LayerCode:
    op = request.op
    source = "input" if len(positions) == 1 else "input0"
    target = "output" if len(op.outputs) == 1 else "output0"
    rows = op.input(0).size // length if length else 0
    body = [
        f"for (int32_t row = 0; row < {rows}; row++) {{",
        f"    const float *x = {source} + row * {length};",
        f"    float *y = {target} + row * {length};",
        indent(row),
        "}",
    ]
    reusable = [op.input(0)] if in_place else []
    return Operands.of(op, positions, len(op.outputs)).layer(
        request, body, includes=["#include <math.h>"], in_place=reusable
    )


def _each(length: int, *statements: str) -> list[str]:
    head = f"for (int32_t i = 0; i < {length}; i++)"
    if len(statements) == 1:
        return [head, f"    {statements[0]}"]
    return [f"{head} {{", *(f"    {line}" for line in statements), "}"]


@kernel("LAYER_NORMALIZATION", "float32")
def emit_layer_normalization(request: KernelRequest) -> LayerCode:
    """Emit the mean, the deviation from it, then scale and bias."""
    op = request.op
    length = prod(op.input(0).shape[op.attributes.axis :])
    positions = tuple(i for i, tensor in enumerate(op.inputs) if tensor is not None)
    names = {p: f"input{n}" for n, p in enumerate(positions)}
    scale = f" * {names[1]}[i]" if 1 in names else ""
    bias = f" + {names[2]}[i]" if 2 in names else ""
    figures = ["mean", "inverse"][: len(op.outputs) - 1]
    row = [
        "float mean = 0.0f, spread = 0.0f;",
        *_each(length, "mean += x[i];"),
        f"mean /= {float(length)}f;",
        *_each(length, "spread += (x[i] - mean) * (x[i] - mean);"),
        f"float inverse = 1.0f / sqrtf(spread / {float(length)}f + {_epsilon(op)});",
        *_each(length, f"y[i] = (x[i] - mean) * inverse{scale}{bias};"),
        *(f"output{n}[row] = {name};" for n, name in enumerate(figures, 1)),
    ]
    return _emit(request, length, row, positions)


@kernel("RMS_NORMALIZATION", "float32")
def emit_rms_normalization(request: KernelRequest) -> LayerCode:
    """Emit the root of the mean square, then the scale."""
    op = request.op
    length = prod(op.input(0).shape[op.attributes.axis :])
    row = [
        "float sum = 0.0f;",
        *_each(length, "sum += x[i] * x[i];"),
        f"float inverse = 1.0f / sqrtf(sum / {float(length)}f + {_epsilon(op)});",
        *_each(length, "y[i] = x[i] * inverse * input1[i];"),
    ]
    return _emit(request, length, row, (0, 1))


def _epsilon(op: Op) -> str:
    return c_float(op.attributes.epsilon)


@kernel("L2_NORMALIZATION", "float32")
def emit_l2_normalization(request: KernelRequest) -> LayerCode:
    """Emit L2_NORMALIZATION: x / max(norm, `L2_LEAST`) for each row."""

    def row(length: int) -> list[str]:
        least = c_float(L2_LEAST)
        return [
            "float sum = 0.0f;",
            *_each(length, "sum += x[i] * x[i];"),
            "float norm = sqrtf(sum);",
            f"norm = norm < {least} ? {least} : norm;",
            *_each(length, "y[i] = x[i] / norm;"),
        ]

    return _emit_rows(request, row)


@kernel("LP_NORMALIZATION", "float32")
def emit_lp_normalization(request: KernelRequest) -> LayerCode:
    """Emit LP_NORMALIZATION: x / norm for each row; a row of zeros stays."""
    square = request.op.attributes.p == 2

    def row(length: int) -> list[str]:
        return [
            "float norm = 0.0f;",
            *_each(length, "norm += x[i] * x[i];" if square else "norm += fabsf(x[i]);"),
            *(["norm = sqrtf(norm);"] if square else []),
            *_each(length, "y[i] = norm == 0.0f ? 0.0f : x[i] / norm;"),
        ]

    return _emit_rows(request, row)


@kernel("LOCAL_RESPONSE_NORMALIZATION", "float32")
def emit_local_response(request: KernelRequest) -> LayerCode:
    """Emit the squares of a window that moves along the channels."""
    a = request.op.attributes

    def row(length: int) -> list[str]:
        first, last = f"i < {a.before} ? 0 : i - {a.before}", f"i + {a.after} + 1"
        power = f"powf({c_float(a.bias)} + {c_float(a.alpha)} * sum, {c_float(-a.beta)})"
        return _each(
            length,
            f"int32_t first = {first}, last = {last} < {length} ? {last} : {length};",
            "float sum = 0.0f;",
            "for (int32_t k = first; k < last; k++)",
            "    sum += x[k] * x[k];",
            f"y[i] = x[i] * {power};",
        )

    return _emit_rows(request, row, in_place=False)


@kernel("LOG_SOFTMAX", "float32")
def emit_log_softmax(request: KernelRequest) -> LayerCode:
    """Emit the distance from the largest, less the logarithm of the sum of exponentials."""

    def row(length: int) -> list[str]:
        return [
            *_largest(length),
            "float sum = 0.0f;",
            *_each(length, "sum += expf(x[i] - most);"),
            "sum = logf(sum);",
            *_each(length, "y[i] = x[i] - most - sum;"),
        ]

    return _emit_rows(request, row)


@kernel("HARDMAX", "float32")
def emit_hardmax(request: KernelRequest) -> LayerCode:
    """Emit HARDMAX: 1 at the first maximum of each row, 0 elsewhere."""

    def row(length: int) -> list[str]:
        return [
            "int32_t at = 0;",
            *_each(length, "at = x[i] > x[at] ? i : at;"),
            *_each(length, "y[i] = i == at ? 1.0f : 0.0f;"),
        ]

    return _emit_rows(request, row)


def _largest(length: int) -> list[str]:
    return ["float most = x[0];", *_each(length, "most = x[i] > most ? x[i] : most;")]
