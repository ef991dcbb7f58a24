"""Operators from outside: their own C, or a table."""

from __future__ import annotations

from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.pointwise.unary_table import emit_unary_table
from covp.codegen.layer import USER, KernelRequest, LayerCode, kernel
from covp.errors import CovpError, ModelError
from covp.graph.graph import Op
from covp.graph.user_operators import UserOperator, find_user_operator


@kernel(USER, "int8", "int32", "float32")
def emit_user_operator(request: KernelRequest) -> LayerCode:
    """Emit the statements of `UserOperator.body`, or for int8 and one input a table."""
    op = request.op
    operator = find_user_operator(op.kind)
    assert operator is not None
    if operator.body is None:
        inputs = [tensor for tensor in op.inputs if tensor is not None]
        if op.input(0).dtype != "int8" or op.output.dtype != "int8" or len(inputs) != 1:
            raise ModelError(
                f"{op.name}: operator {op.kind} has neither compose() nor body(); only int8 "
                "operators of one input can do without"
            )
        return emit_unary_table(request)
    body, definitions = _texts(operator, op)
    positions = [i for i, tensor in enumerate(op.inputs) if tensor is not None]
    return Operands.of(op, positions, len(op.outputs)).layer(
        request, body.splitlines(), definitions=[definitions], schedule="user's"
    )


def _texts(operator: UserOperator, op: Op) -> tuple[str, str]:
    assert operator.body is not None
    try:
        texts: tuple[object, object] = (
            operator.body(op),
            operator.definitions(op) if operator.definitions is not None else "",
        )
    except CovpError:
        raise
    except Exception as error:
        raise ModelError(
            f"{op.name}: the C of operator {op.kind} cannot be made: "
            f"{type(error).__name__}: {error}"
        ) from error
    body, definitions = texts
    if not isinstance(body, str) or not isinstance(definitions, str):
        raise ModelError(f"{op.name}: body() and definitions() of {op.kind} must return C text")
    return body, definitions
