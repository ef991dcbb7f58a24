"""The C of a layer that runs on an accelerator: constants, driver calls, requantization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import (
    CCall,
    Constant,
    CoreKernel,
    RegisterImage,
    Requantize,
    Step,
)
from covp.accelerator.partition import Placement
from covp.base.plugins import call_hook
from covp.chip.cores import Core
from covp.codegen.c_text import c_comment
from covp.codegen.call_expressions import CallExpressions, FileConstants
from covp.codegen.kernels.requantize.requantize import TflmRequantizer
from covp.codegen.layer import (
    Argument,
    KernelRequest,
    LayerCode,
    emit_layer,
    prototype,
)
from covp.errors import AcceleratorError
from covp.graph.arithmetic import Scaling
from covp.graph.graph import Op
from covp.graph.pattern import Match

_STEPS = (CCall, Requantize, CoreKernel)


def emit_calls(placement: Placement, core: Core, function: str) -> LayerCode:
    """Emit the C of one offloaded layer under a function name.

    Raises:
        AcceleratorError: the backend's lowering broke its contract; the text names the layer.
    """
    backend, match = placement.backend, placement.match
    assert backend is not None and match is not None
    steps = lower_placement(placement)
    if isinstance(steps[0], CoreKernel):
        extended = replace(core, features=core.features | steps[0].features)
        request = KernelRequest(match.op, extended, function)
        return replace(emit_layer(request), target=backend.name)
    file = CallFile(match.op, core, backend.name)
    arguments = file.function(function, match, steps)
    return LayerCode(
        match.op,
        function,
        file.source(),
        arguments,
        schedule=split_of(steps),
        target=backend.name,
    )


def split_of(steps: Sequence[Step]) -> str:
    """Return the part of a layer that is left to the core, for reports."""
    return "core requantizes" if any(isinstance(step, Requantize) for step in steps) else ""


def lower_placement(placement: Placement) -> Sequence[Step]:
    """Return the steps of an offloaded layer, checked.

    Raises:
        AcceleratorError: the backend's lowering broke its contract; the text names the layer.
    """
    backend = placement.backend
    assert backend is not None and placement.match is not None
    where = f"accelerator {backend.name}, layer {placement.match.op.name}"
    lowered = call_hook(where, "lower", backend.lower, placement.match)
    steps = _check(lowered, f"{where}: lower()")
    refined = call_hook(where, "refine", backend.refine, placement.match, steps)
    return _check(refined, f"{where}: refine()")


def _check(lowered: object, where: str) -> Sequence[Step]:
    steps = [lowered] if isinstance(lowered, _STEPS) else lowered
    if not isinstance(steps, Sequence) or not steps:
        raise AcceleratorError(f"{where} must return a CCall or several, not {lowered!r}")
    for step in steps:
        if not isinstance(step, _STEPS):
            raise AcceleratorError(f"{where} returned {step!r}, which is not a CCall")
        if isinstance(step, CoreKernel) and len(steps) > 1:
            raise AcceleratorError(f"{where}: a CoreKernel is the whole layer, not a part of it")
    return steps


@dataclass(frozen=True)
class StartupCode:
    """Calls of accelerators at the start of every inference, as parts of a C file."""

    includes: str = ""
    definitions: str = ""
    body: tuple[str, ...] = ()

    @classmethod
    def of(cls, backends: Sequence[AcceleratorBackend]) -> StartupCode:
        """Return the calls of all backends, in order.

        Raises:
            AcceleratorError: one of them is no call with constants.
        """
        includes, body = [], []
        expressions = CallExpressions("startup()")
        for backend in backends:
            expressions.where = f"accelerator {backend.name}, startup()"
            for step in startup_calls(backend):
                includes.append(f'#include "{step.header}"\n')
                body.append(expressions.call(step))
        if expressions.arguments:
            raise AcceleratorError("startup(): only constants and numbers can be passed")
        definitions = "".join(f"{text}\n" for text in expressions.definitions)
        return cls("".join(dict.fromkeys(includes)), definitions, tuple(body))


def startup_calls(backend: AcceleratorBackend) -> Sequence[CCall]:
    """Return the calls of an accelerator at the start of every inference.

    Raises:
        AcceleratorError: it raised, or gave something else than calls.
    """
    calls: object = call_hook(f"accelerator {backend.name}", "startup", backend.startup)
    where = f"accelerator {backend.name}: startup()"
    if not isinstance(calls, Sequence):
        raise AcceleratorError(f"{where} must return several CCalls, not {calls!r:.80}")
    for call in calls:
        if not isinstance(call, CCall):
            raise AcceleratorError(f"{where} gave {call!r}, which is not a CCall")
    return calls


class CallFile:
    """A C file of a layer on an accelerator; its functions share their constants.

    Args:
        op: the operator.
        core: that requantizes.
        target: name of the accelerator.
    """

    def __init__(self, op: Op, core: Core, target: str) -> None:
        self.op, self.core, self.target = op, core, target
        self.includes = ["#include <stdint.h>"]
        self.constants = FileConstants()
        self.definitions = self.constants.definitions
        self.functions: list[str] = []

    def function(
        self, name: str, match: Match, steps: Sequence[Step], target: str = ""
    ) -> dict[str, Argument]:
        """Add a function that computes ``steps``; its arguments by parameter name, in C order.

        Args:
            name: of the function.
            match, steps: what it computes.
            target: the accelerator of these steps, where it is another one of the same kind.
        """
        where = f"accelerator {self.target}, layer {self.op.name}"
        expressions = CallExpressions(where, match.inputs, match.outputs, self.constants)
        body = []
        for step in steps:
            if isinstance(step, CCall):
                self.includes.append(f'#include "{step.header}"')
                if any(isinstance(argument, RegisterImage) for argument in step.arguments):
                    self.includes.append(f'#include "{target or self.target}_place.h"')
                body.append(expressions.call(step))
            elif isinstance(step, Requantize):
                body += self._requantize(step, expressions)
        declaration = prototype(name, match.op, expressions.arguments)
        self.functions.append("\n".join([declaration, "{", *body, "}\n"]))
        return expressions.arguments

    def source(self) -> str:
        """Return the text."""
        shapes = ["x".join(map(str, t.shape)) for t in (self.op.input(0), self.op.output)]
        headline = f"{self.op.name}: {self.op.kind} {' -> '.join(shapes)} on {self.target}"
        return "\n".join(
            [
                c_comment(headline),
                *filter(None, dict.fromkeys(self.includes)),
                "",
                *dict.fromkeys(self.definitions),
                *self.functions,
            ]
        )

    def _requantize(self, step: Requantize, expressions: CallExpressions) -> list[str]:
        """Return a loop over channels, with constants in registers, around one over pixels."""
        channels = step.multiplier.size
        scaling = Scaling(step.multiplier, step.shift, step.zero_point, step.clamp)
        requantizer = TflmRequantizer(self.core, scaling, step.bound)
        value = expressions.value
        columns = requantizer.columns()
        table = Constant("channel_table", np.stack(columns, axis=1).astype(np.int32))
        self.includes.append(requantizer.includes)
        self.definitions.append(requantizer.function())
        constants = ", ".join(f"q{i} = *q++" for i in range(len(columns)))
        names = ", ".join(f"q{i}" for i in range(len(columns)))
        return [
            f"    const int32_t *q = {value(table)};",
            f"    for (int32_t channel = 0; channel < {channels}; channel++) {{",
            f"        const int32_t *sum = (const int32_t *){value(step.sums)} + channel;",
            f"        int8_t *result = {value(step.output)} + channel;",
            f"        int32_t {constants};",
            "#pragma GCC unroll 4",
            f"        for (int32_t i = {step.output.size // channels}; i > 0; i--) {{",
            f"            *result = (int8_t)requantize(*sum, {names});",
            f"            sum += {channels};",
            f"            result += {channels};",
            "        }",
            "    }",
        ]
