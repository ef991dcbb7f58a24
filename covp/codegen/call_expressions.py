"""`CallExpressions`: the arguments of driver calls as C expressions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.argument_visitor import ArgumentVisitor
from covp.accelerator.call import CCall, Constant, RegisterImage, TensorSlice, Workspace
from covp.base.c_names import c_name
from covp.codegen.c_text import c_array, c_float
from covp.codegen.layer import Argument, Scratch
from covp.errors import AcceleratorError
from covp.graph.graph import Tensor


class FileConstants:
    """The constants of a C file; its functions share those that are alike.

    Attributes:
        definitions: C text, in order.
    """

    def __init__(self) -> None:
        self.definitions: list[str] = []
        self._names: set[str] = set()
        self._arrays: dict[tuple[str, str, bytes], str] = {}
        self._scratch: dict[int, tuple[Workspace, Scratch]] = {}

    def array(self, stem: str, data: NDArray[Any], taken: Collection[str]) -> str:
        """Return the name of an array with this content; it avoids the names in ``taken``."""
        key = stem, data.dtype.str, np.ascontiguousarray(data).tobytes()
        if self._arrays.get(key, "") not in self._names - {*taken}:
            self._arrays[key] = self.name(stem, taken)
            self.definitions.append(c_array(self._arrays[key], data))
        return self._arrays[key]

    def name(self, stem: str, taken: Collection[str]) -> str:
        """Return a new name in the file."""
        name = unused_name(stem, self._names.union(taken))
        self._names.add(name)
        return name

    def scratch(self, workspace: Workspace) -> Scratch:
        """Return the memory of a workspace; functions that use it together get the same."""
        found = self._scratch.setdefault(id(workspace), (workspace, Scratch(workspace.nbytes)))
        return found[1]

    def parameter(self, stem: str, taken: Collection[str]) -> str:
        """Return a name for a parameter that hides no constant."""
        return unused_name(stem, self._names.union(taken))


def unused_name(stem: str, taken: Collection[str]) -> str:
    """Return a C name that is not taken."""
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


class CallExpressions(ArgumentVisitor[str]):
    """C expressions of a call's arguments; collects what they need while they are written.

    Attributes:
        constants: of the file.
        arguments: of the surrounding function, by parameter name.
    """

    def __init__(
        self,
        where: str,
        inputs: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        constants: FileConstants | None = None,
    ) -> None:
        super().__init__(where)
        self.inputs, self.outputs = inputs, outputs
        self.constants = constants or FileConstants()
        self.arguments: dict[str, Argument] = {}

    @property
    def definitions(self) -> list[str]:
        """C text of the constants."""
        return self.constants.definitions

    def call(self, step: CCall) -> str:
        """Return the statement."""
        arguments = ", ".join(self.render(step))
        return f"    {step.function}({arguments});"

    def number(self, value: int | float) -> str:
        """Return a literal."""
        return c_float(value) if isinstance(value, float) else str(value)

    def constant(self, constant: Constant) -> str:
        """Return a static array."""
        return self._array(constant.name, constant.data)

    def image(self, image: RegisterImage, sizes: tuple[int, ...]) -> str:
        """Return a static array of words."""
        lines = []
        for label, word in image.words:
            value = f"{word & 0xFFFFFFFF:#x}" if isinstance(word, int) else self.value(word)
            cast = "" if isinstance(word, int) else "(uintptr_t)"
            lines.append(f"    {cast}{value}, /* {label} */")
        name = self.constants.name(image.name, self.arguments)
        if sizes:
            listed = ", ".join(map(str, sizes))
            lines += ["#if COVP_DATA_CACHE_LINE", f"    {listed}, /* bytes */", "#endif"]
        self.definitions.append(
            f"static const uintptr_t {name}[] = {{\n" + "\n".join(lines) + "\n};\n"
        )
        return name

    def slice(self, part: TensorSlice) -> str:
        """Return a pointer into its whole."""
        cast = "(uint8_t *)" if isinstance(part.whole, Workspace) else ""
        return f"({cast}{self.value(part.whole)} + {self._offset(part)})"

    def workspace(self, workspace: Workspace) -> str:
        """Return a parameter of the function, from the memory planner."""
        return self._parameter("scratch", self.constants.scratch(workspace))

    def tensor(self, tensor: Tensor) -> str:
        """Return a parameter of the function, or a static array.

        Raises:
            AcceleratorError: the tensor is neither an input nor an output of the match.
        """
        if tensor.data is not None:
            return self._array(f"constant_{c_name(tensor.name)}", tensor.data)
        written = any(tensor is output for output in self.outputs)
        if not written and not any(tensor is known for known in self.inputs):
            raise AcceleratorError(
                f"{self.where}: tensor {tensor.name} is neither input nor output of the match; "
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

    def _parameter(self, stem: str, argument: Argument) -> str:
        name = self.constants.parameter(stem, self.arguments)
        self.arguments[name] = argument
        return name

    def _array(self, stem: str, data: NDArray[Any]) -> str:
        return self.constants.array(stem, data, self.arguments)
