"""IDENTITY: a copy of the input's bytes."""

from __future__ import annotations

from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode, kernel

_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "bool")


@kernel("IDENTITY", *_TYPES)
def emit_identity(request: KernelRequest) -> LayerCode:
    """Emit one memcpy."""
    nbytes = request.op.output.nbytes
    body = [f"memcpy(output, input, {nbytes});"] if nbytes else ["(void)output;"]
    return Operands.of(request.op).layer(request, body, includes=["#include <string.h>"])
