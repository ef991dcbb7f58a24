"""A function of one element, called for every one of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from covp.codegen.kernels.loop_nest import LoopNest
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import KernelRequest, LayerCode


def emit_each(
    request: KernelRequest,
    value: str,
    definitions: Sequence[str],
    includes: Sequence[str] = (),
    schedule: str = "",
    most: int = 4,
) -> LayerCode:
    """Emit the C of a layer; it may run in place where the elements have one size.

    Args:
        request: that is answered.
        value: C expression of an output; ``@`` is the input.
        definitions, includes, schedule: as for `Operands.layer`.
        most: elements of an iteration.
    """
    op = request.op
    nest = LoopNest.over((op.output.size,), input=(1,), output=(1,))

    def step(ahead: int) -> list[str]:
        at = nest.at("output", ahead)
        return [f"output[{at}] = {value.replace('@', f'input[{at}]')};"]

    same = op.input(0).dtype.itemsize == op.output.dtype.itemsize
    return Operands.of(op).layer(
        request,
        nest.loops(step, nest.unroll(most)),
        definitions,
        includes,
        [op.input(0)] if same else [],
        schedule,
    )
