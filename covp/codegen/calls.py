"""The C of a layer that runs on an accelerator: constants, driver calls, requantization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import Argument as CallArgument
from covp.accelerator.call import CCall, Constant, Requantize, Step, Words, Workspace
from covp.accelerator.partition import Placement
from covp.codegen.c_text import c_array, c_float, c_name
from covp.codegen.kernels.requantize import Requantizer
from covp.codegen.layer import Argument, LayerCode, Scratch, prototype
from covp.cores import Core
from covp.errors import AcceleratorError, CovpError
from covp.graph.graph import Op, Tensor


def emit_calls(placement: Placement, core: Core, function: str) -> LayerCode:
    """The C of one offloaded layer under a function name.

    Raises:
        AcceleratorError: the backend's lowering broke its contract; the text names the layer.
    """
    backend, match = placement.backend, placement.match
    assert backend is not None and match is not None
    where = f"accelerator {backend.name}, layer {match.op.name}"
    return _CallCode(match.op, core, function, backend.name).layer(
        _lower(backend, placement, where)
    )


def _lower(backend: AcceleratorBackend, placement: Placement, where: str) -> Sequence[Step]:
    assert placement.match is not None
    try:
        lowered = backend.lower(placement.match)
    except CovpError:
        raise
    except Exception as error:
        raise AcceleratorError(
            f"{where}: lower() raised {type(error).__name__}: {error}"
        ) from error
    steps = [lowered] if isinstance(lowered, (CCall, Requantize)) else lowered
    if not isinstance(steps, Sequence) or not steps:
        raise AcceleratorError(f"{where}: lower() must return a CCall or several, not {lowered!r}")
    for step in steps:
        if not isinstance(step, (CCall, Requantize)):
            raise AcceleratorError(f"{where}: lower() returned {step!r}, which is no CCall")
    return steps


class _CallCode:
    """C text of one layer; collects constants and parameters while the steps are written."""

    def __init__(self, op: Op, core: Core, function: str, target: str) -> None:
        self.op, self.core, self.function, self.target = op, core, function, target
        self.arguments: dict[str, Argument] = {}
        self.includes = ["#include <stdint.h>"]
        self.definitions: list[str] = []
        self._names: dict[int, str] = {}
        self._used: set[str] = set()

    def layer(self, steps: Sequence[Step]) -> LayerCode:
        """The whole layer."""
        body = []
        for step in steps:
            if isinstance(step, CCall):
                self.includes.append(f'#include "{step.header}"')
                arguments = ", ".join(self._value(argument) for argument in step.arguments)
                body.append(f"    {step.function}({arguments});")
            else:
                body += self._requantize(step)
        source = "\n".join(
            [
                self._headline(),
                *filter(None, dict.fromkeys(self.includes)),
                "",
                *self.definitions,
                prototype(self.function, self.op, self.arguments),
                "{",
                *body,
                "}\n",
            ]
        )
        split = "core requantizes" if any(isinstance(s, Requantize) for s in steps) else ""
        return LayerCode(
            self.op, self.function, source, self.arguments, schedule=split, target=self.target
        )

    def _headline(self) -> str:
        shapes = ["x".join(map(str, t.shape)) for t in (self.op.input(0), self.op.output)]
        return f"/* {self.op.name}: {self.op.kind} {' -> '.join(shapes)} on {self.target} */"

    def _value(self, argument: CallArgument) -> str:
        """An argument as a C expression; defines or declares what it needs."""
        if isinstance(argument, (bool, int, np.integer)):
            return str(int(argument))
        if isinstance(argument, (float, np.floating)):
            return c_float(float(argument))
        if id(argument) in self._names:
            return self._names[id(argument)]
        if isinstance(argument, Constant):
            return self._array(argument, argument.name, argument.data)
        if isinstance(argument, Words):
            return self._words(argument)
        if isinstance(argument, Workspace):
            return self._parameter(argument, "scratch", Scratch(argument.nbytes))
        if not isinstance(argument, Tensor):
            raise AcceleratorError(
                f"accelerator {self.target}, layer {self.op.name}: {argument!r} cannot be passed "
                "to a driver; tensors, constants, words, workspace and numbers can"
            )
        if argument.data is not None:
            return self._array(argument, f"constant_{c_name(argument.name)}", argument.data)
        written = any(argument is output for output in self.op.outputs)
        return self._parameter(argument, "output" if written else "input", argument)

    def _name(self, wanted: object, stem: str) -> str:
        """A fresh C name for an object."""
        name, number = stem, 1
        while name in self._used:
            number += 1
            name = f"{stem}_{number}"
        self._used.add(name)
        self._names[id(wanted)] = name
        return name

    def _parameter(self, wanted: object, stem: str, argument: Argument) -> str:
        name = self._name(wanted, stem)
        self.arguments[name] = argument
        return name

    def _array(self, wanted: object, stem: str, data: NDArray[Any]) -> str:
        name = self._name(wanted, stem)
        self.definitions.append(c_array(name, data))
        return name

    def _words(self, argument: Words) -> str:
        lines = []
        for label, word in argument.words:
            value = f"{word & 0xFFFFFFFF:#x}" if isinstance(word, int) else self._value(word)
            cast = "" if isinstance(word, int) else "(uintptr_t)"
            lines.append(f"    {cast}{value}, /* {label} */")
        name = self._name(argument, argument.name)
        self.definitions.append(
            f"static const uintptr_t {name}[{len(lines)}] = {{\n" + "\n".join(lines) + "\n};\n"
        )
        return name

    def _requantize(self, step: Requantize) -> list[str]:
        """A loop over the channels with their constants in registers, over the pixels inside."""
        channels = step.multiplier.size
        requantizer = Requantizer(
            self.core,
            step.multiplier,
            step.shift,
            step.zero_point,
            *step.clamp,
            step.bound,
        )
        columns = requantizer.columns()
        table = Constant("channel_table", np.stack(columns, axis=1).astype(np.int32))
        self.includes.append(requantizer.includes)
        self.definitions.append(requantizer.function())
        constants = ", ".join(f"q{i} = *q++" for i in range(len(columns)))
        names = ", ".join(f"q{i}" for i in range(len(columns)))
        return [
            f"    const int32_t *q = {self._value(table)};",
            f"    for (int32_t channel = 0; channel < {channels}; channel++) {{",
            f"        const int32_t *sum = (const int32_t *){self._value(step.sums)} + channel;",
            f"        int8_t *result = {self._value(step.output)} + channel;",
            f"        int32_t {constants};",
            "#pragma GCC unroll 4",
            f"        for (int32_t i = {step.output.size // channels}; i > 0; i--) {{",
            f"            *result = (int8_t)requantize(*sum, {names});",
            f"            sum += {channels};",
            f"            result += {channels};",
            "        }",
            "    }",
        ]
