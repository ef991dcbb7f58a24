"""`CallExpressions`: the arguments of driver calls as C expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.argument_visitor import ArgumentVisitor
from covp.accelerator.call import CCall, Constant, RegisterImage, TensorSlice, Workspace
from covp.c_names import c_name
from covp.codegen.c_text import c_array, c_float
from covp.codegen.layer import Argument, Scratch
from covp.errors import AcceleratorError
from covp.graph.graph import Tensor


class CallExpressions(ArgumentVisitor[str]):
    """C expressions of a call's arguments; collects what they need while they are written.

    Attributes:
        definitions: C text of the constants.
        arguments: of the surrounding function, by parameter name.
    """

    def __init__(
        self, where: str, inputs: Sequence[Tensor] = (), outputs: Sequence[Tensor] = ()
    ) -> None:
        super().__init__(where)
        self.inputs, self.outputs = inputs, outputs
        self.definitions: list[str] = []
        self.arguments: dict[str, Argument] = {}
        self._used: set[str] = set()

    def call(self, step: CCall) -> str:
        """The statement."""
        arguments = ", ".join(self.value(argument) for argument in step.arguments)
        return f"    {step.function}({arguments});"

    def number(self, value: int | float) -> str:
        """A literal."""
        return c_float(value) if isinstance(value, float) else str(value)

    def constant(self, constant: Constant) -> str:
        """A static array."""
        return self._array(constant.name, constant.data)

    def image(self, image: RegisterImage) -> str:
        """A static array of words."""
        lines = []
        for label, word in image.words:
            value = f"{word & 0xFFFFFFFF:#x}" if isinstance(word, int) else self.value(word)
            cast = "" if isinstance(word, int) else "(uintptr_t)"
            lines.append(f"    {cast}{value}, /* {label} */")
        name = self._name(image.name)
        self.definitions.append(
            f"static const uintptr_t {name}[{len(lines)}] = {{\n" + "\n".join(lines) + "\n};\n"
        )
        return name

    def slice(self, part: TensorSlice) -> str:
        """A pointer into its whole."""
        cast = "(uint8_t *)" if isinstance(part.whole, Workspace) else ""
        return f"({cast}{self.value(part.whole)} + {self._offset(part)})"

    def workspace(self, workspace: Workspace) -> str:
        """A parameter of the function, from the memory planner."""
        return self._parameter("scratch", Scratch(workspace.nbytes))

    def tensor(self, tensor: Tensor) -> str:
        """A parameter of the function, or a static array.

        Raises:
            AcceleratorError: the tensor is neither an input nor an output of the match.
        """
        if tensor.data is not None:
            return self._array(f"constant_{c_name(tensor.name)}", tensor.data)
        written = any(tensor is output for output in self.outputs)
        if not written and not any(tensor is known for known in self.inputs):
            raise AcceleratorError(
                f"{self.where}: tensor {tensor.name} is no input and no output of the match; "
                "tensors between its operators need a Workspace"
            )
        return self._parameter("output" if written else "input", tensor)

    def _offset(self, part: TensorSlice) -> int:
        whole = part.whole
        size = whole.nbytes if isinstance(whole, Workspace) else whole.size
        if not (isinstance(part.offset, (int, np.integer)) and 0 <= part.offset < size):
            what = "a workspace" if isinstance(whole, Workspace) else whole.name
            raise AcceleratorError(
                f"{self.where}: a TensorSlice at {part.offset!r} of {what}, which ends at {size}"
            )
        return int(part.offset)

    def _name(self, stem: str) -> str:
        """A C name that is not used yet."""
        name, number = stem, 1
        while name in self._used:
            number += 1
            name = f"{stem}_{number}"
        self._used.add(name)
        return name

    def _parameter(self, stem: str, argument: Argument) -> str:
        name = self._name(stem)
        self.arguments[name] = argument
        return name

    def _array(self, stem: str, data: NDArray[Any]) -> str:
        name = self._name(stem)
        self.definitions.append(c_array(name, data))
        return name
