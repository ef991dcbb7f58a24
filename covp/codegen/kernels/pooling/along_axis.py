"""ARG_MAX, ARG_MIN, CUMSUM and CUMPROD: one pass along an axis for every other index."""

from __future__ import annotations

from math import prod

from covp.codegen.c_text import c_type, indent
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.pointwise_formulas import unsigned_type
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.graph import Op
from covp.graph.ops.definition import PLAIN_INTEGERS


def split_at(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Return the elements outside the axis, along it, and inside: a dense tensor of three axes."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


@kernel("ARG_MAX", "float32", *PLAIN_INTEGERS)
@kernel("ARG_MIN", "float32", *PLAIN_INTEGERS)
def emit_arg_max(request: KernelRequest) -> LayerCode:
    """Emit a running best and its index; stored values of a scale are in the order of real ones."""
    op = request.op
    outside, length, inside = split_at(op.input(0).shape, op.attributes.axis)
    sign = (">" if op.kind == "ARG_MAX" else "<") + "=" * op.attributes.last
    kind, index = c_type(op.input(0).dtype), c_type(op.output.dtype)
    one = [
        f"const {kind} *from = input + o * {length * inside} + i;",
        f"{kind} best = from[0];",
        f"{index} at = 0;",
        f"for (int32_t a = 1; a < {length}; a++) {{",
        f"    {kind} value = from[a * {inside}];",
        f"    if (value {sign} best) {{",
        "        best = value;",
        "        at = a;",
        "    }",
        "}",
        f"output[o * {inside} + i] = at;",
    ]
    return Operands.of(op).layer(request, _every(outside, inside, one))


@kernel("CUMSUM", "float32", *PLAIN_INTEGERS)
@kernel("CUMPROD", "float32", *PLAIN_INTEGERS)
def emit_cumulative(request: KernelRequest) -> LayerCode:
    """Emit a running sum or product; an axis of run time chooses between the loops of all axes."""
    op, shape = request.op, request.op.input(0).shape
    axis = op.attributes.axis
    if axis is not None:
        return Operands.of(op).layer(request, _accumulate(op, axis, "input"))
    lines = ["switch (input1[0]) {"]
    for possible in range(len(shape)):
        body = _accumulate(op, possible, "input0")
        cases = f"case {possible}: case {possible - len(shape)}:"
        lines += [cases, indent([*body, "break;"])]
    return Operands.of(op, (0, 1)).layer(request, [*lines, "}"])


def _accumulate(op: Op, axis: int, source: str) -> list[str]:
    a, dtype = op.attributes, op.input(0).dtype
    outside, length, inside = split_at(op.input(0).shape, axis)
    wide = "float" if dtype.kind == "f" else unsigned_type(dtype)
    sign, start = ("+", "0") if op.kind == "CUMSUM" else ("*", "1")
    place = f"o * {length * inside} + i + {f'({length} - 1 - a)' if a.reverse else 'a'} * {inside}"
    element = f"{source}[at]" if dtype.kind == "f" else f"({wide}){source}[at]"
    add, store = f"total {sign}= value;", f"output[at] = ({c_type(dtype)})total;"
    one = [
        f"{wide} total = {start};",
        f"for (int32_t a = 0; a < {length}; a++) {{",
        f"    int32_t at = {place};",
        f"    {wide} value = {element};",
        *(f"    {line}" for line in ([store, add] if a.exclusive else [add, store])),
        "}",
    ]
    return _every(outside, inside, one)


def _every(outside: int, inside: int, one: list[str]) -> list[str]:
    return [
        f"for (int32_t o = 0; o < {outside}; o++)",
        f"    for (int32_t i = 0; i < {inside}; i++) {{",
        indent(one, 2),
        "    }",
    ]
