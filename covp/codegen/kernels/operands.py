"""The operands of a kernel, and the C file around its function.

Kernels read and write any memory four bytes at a time as `word`. C99 6.5, paragraph 7, lets an
object be accessed by its own type and by characters alone; GCC's and Clang's attribute makes `word`
as free as a character, so that kernels need no -fno-strict-aliasing. A pointer becomes one to words
by way of ``void *``, as ``const word *w = (const void *)weights;``, where the address is certain to
be a multiple of 4: compilers warn of direct casts (-Wcast-align).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from covp.codegen.c_text import c_array, indent
from covp.codegen.layer import Argument, KernelRequest, LayerCode, prototype
from covp.graph.graph import Op, Tensor

_WORD = "typedef uint32_t __attribute__((may_alias)) word;"
_WORD_AT = """\
static inline uint32_t word_at(const void *address)
{
    return *(const word *)address;
}
"""


def word_definitions(text: str) -> list[str]:
    """Return C text of `word` and of ``word_at(address)``, as far as some C text uses them."""
    reads = re.search(r"\bword_at\b", text) is not None
    if not reads and re.search(r"\bword\b", text) is None:
        return []
    return [_WORD, _WORD_AT] if reads else [_WORD]


@dataclass(frozen=True)
class Operands:
    """The tensors that a kernel reads and writes, by C name.

    Attributes:
        arguments: of the layer's function, in C order.
        constants: C text of the inputs and tables that are known at compile time.
    """

    arguments: dict[str, Argument]
    constants: str

    @staticmethod
    def of(op: Op, inputs: Sequence[int] = (0,), outputs: int = 1) -> Operands:
        """Name operands ``input`` or ``input0``, ``input1``; ``output`` or ``output0``, ..."""
        arguments: dict[str, Argument] = {}
        constants = []
        for number, position in enumerate(inputs):
            tensor = op.input(position)
            name = "input" if len(inputs) == 1 else f"input{number}"
            if tensor.data is None:
                arguments[name] = tensor
            else:
                constants.append(c_array(name, tensor.data, tensor.name))
        for number, tensor in enumerate(op.outputs[:outputs]):
            arguments["output" if outputs == 1 else f"output{number}"] = tensor
        return Operands(arguments, "\n".join(constants))

    def layer(
        self,
        request: KernelRequest,
        body: Sequence[str],
        definitions: Sequence[str] = (),
        includes: Sequence[str] = (),
        in_place: Sequence[Tensor] = (),
        schedule: str = "",
        changed: Sequence[tuple[Tensor, Tensor]] = (),
    ) -> LayerCode:
        """Return the layer with its whole file.

        Args:
            request: that is answered.
            body: lines of the function.
            definitions: C text after the constants: functions, tables.
            includes: C text before the constants: headers, macros.
            in_place: inputs whose memory the output may reuse; constants are left out.
            schedule: for reports.
            changed: pairs of an input and an output that may have the same memory.
        """
        function = [
            *definitions,
            prototype(request.function, request.op, self.arguments),
            "\n".join(["{", indent(body), "}\n"]),
        ]
        parts = [
            request.headline,
            "#include <stdint.h>",
            *includes,
            *word_definitions("\n".join(function)),
            self.constants,
            *function,
        ]
        source = "\n".join(part for part in parts if part)
        reusable = tuple(t for t in in_place if t.data is None)
        return LayerCode(
            request.op,
            request.function,
            source,
            self.arguments,
            reusable,
            schedule,
            changed=tuple(changed),
        )
