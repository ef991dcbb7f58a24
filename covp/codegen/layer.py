"""`LayerCode`: the C of one layer, and the registry of the kernels that write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from covp.base.registry import Registry
from covp.chip.cores import Core
from covp.codegen.c_text import c_comment, c_type
from covp.codegen.schedule import Schedule
from covp.errors import ModelError, UsageError
from covp.graph.arithmetic import Arithmetic, ArithmeticPattern, Rule
from covp.graph.graph import Op, Tensor
from covp.graph.user_operators import find_user_operator


@dataclass(frozen=True)
class Scratch:
    """Working memory of one layer, given by the memory planner while the layer runs."""

    nbytes: int


Argument = Tensor | Scratch
"""Passed to a layer's function as a pointer. Constants are part of the function's own file."""


@dataclass(frozen=True, eq=False)
class LayerCode:
    """The C of one layer.

    Attributes:
        op: the operator (its output tensors are what the layer writes).
        function: name of the C function; `prototype` gives its type.
        source: the whole C file that defines it.
        arguments: of the function: tensors of the graph and scratch, by parameter name, in C
            order.
        in_place: the inputs whose memory the output may reuse.
        schedule: the choice the kernel made, short, for reports.
        target: "cpu" or the accelerator's name.
        changed: pairs of an input and an output that may have the same memory.
        parts: what a program calls in which core and units work at the same time; empty in others,
            and ``function`` is called.
        files: further C files, by name, that define functions of the parts.
    """

    op: Op
    function: str
    source: str
    arguments: dict[str, Argument]
    in_place: tuple[Tensor, ...] = ()
    schedule: str = ""
    target: str = "cpu"
    changed: tuple[tuple[Tensor, Tensor], ...] = ()
    parts: tuple[PartCode, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Pointer:
    """A pointer that a function is called with.

    Attributes:
        argument: a tensor of the graph, or scratch.
        offset: bytes from its start.
        nbytes: that may be accessed from there.
    """

    argument: Argument
    offset: int
    nbytes: int


@dataclass(frozen=True, eq=False)
class FunctionCall:
    """A call of a function of a layer.

    Attributes:
        name: of the function.
        declaration: in C, without semicolon.
        pointers: in C order.
    """

    name: str
    declaration: str
    pointers: tuple[Pointer, ...]


@dataclass(frozen=True, eq=False)
class PartCode:
    """A layer, or a band of its rows, as the run function calls it.

    Attributes:
        call: computes it, or begins to where there is an ``end``.
        end: waits until it is computed.
        unit: name of the accelerator that computes it; "": that of the layer, or the core.
    """

    call: FunctionCall
    end: FunctionCall | None = None
    unit: str = ""

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        """The part's pointers to memory."""
        return self.call.pointers + (self.end.pointers if self.end else ())


def whole_part(layer: LayerCode) -> PartCode:
    """Return a layer that the core computes, or waits for, as one part."""
    pointers = tuple(Pointer(a, 0, a.nbytes) for a in layer.arguments.values())
    declaration = prototype(layer.function, layer.op, layer.arguments)
    return PartCode(FunctionCall(layer.function, declaration, pointers))


def prototype(function: str, op: Op, arguments: dict[str, Argument]) -> str:
    """Return the C declaration of a layer's function, without semicolon.

    Args:
        function: its name.
        op: whose outputs it writes.
        arguments: by parameter name, in C order.

    Inputs are pointers to const, outputs plain pointers, scratch ``void *``. No
    restrict here: an ``in_place`` layer gets the same pointer twice.
    """
    parts = []
    for name, argument in arguments.items():
        if isinstance(argument, Scratch):
            parts.append(f"void *{name}")
        else:
            written = any(argument is output for output in op.outputs)
            parts.append(f"{'' if written else 'const '}{c_type(argument.dtype)} *{name}")
    return f"void {function}({', '.join(parts) or 'void'})"


@dataclass(frozen=True)
class KernelRequest:
    """A request for the C of one layer.

    Attributes:
        op: the operator.
        core: that it is to run on.
        function: name of the C function.
        schedule: one of `schedules` for the operator; None leaves the choice to the kernel.
    """

    op: Op
    core: Core
    function: str
    schedule: Schedule | None = None

    @cached_property
    def arithmetic(self) -> Arithmetic:
        """The operator's arithmetic."""
        return Arithmetic.of(self.op)

    @property
    def headline(self) -> str:
        """The comment that opens the generated file."""
        op = self.op
        shapes = ", ".join("x".join(map(str, t.shape)) for t in op.inputs[:1] if t is not None)
        result = "x".join(map(str, op.output.shape))
        return c_comment(f"{op.name}: {op.kind} {shapes} -> {result}")

    def choose(self, schedules: Schedules) -> Schedule:
        """Return the requested schedule, else the kernel's own choice.

        Raises:
            UsageError: it is none of ``schedules``.
        """
        valid = schedules(self)
        if self.schedule is None:
            return valid[0]
        if self.schedule not in valid:
            raise UsageError(
                f"{self.op.name}: schedule {str(self.schedule)!r} does not fit the layer"
            )
        return self.schedule


Emitter = Callable[[KernelRequest], LayerCode]
Schedules = Callable[[KernelRequest], list[Schedule]]
_KERNELS: Registry[tuple[str, ArithmeticPattern], tuple[Emitter, Schedules]] = Registry(
    "covp.codegen.kernels"
)
USER = "user's"
"""The kind under which the emitter of users' operators is registered."""


def no_schedules(request: KernelRequest) -> list[Schedule]:
    """Return no schedules, for kernels without a choice."""
    return []


def kernel(
    kind: str,
    *stored: str,
    schedules: Schedules = no_schedules,
    weights: str | None = None,
    rule: Rule | None = None,
) -> Callable[[Emitter], Emitter]:
    """Register the emitter of an operator kind for some arithmetics; the narrowest that fits wins.

    Args:
        kind: of operator.
        stored: dtypes of its first input.
        schedules: gives the valid schedules of a request, the kernel's own choice first.
        weights, rule: as of `ArithmeticPattern`.
    """

    def register(emitter: Emitter) -> Emitter:
        for dtype in stored:
            _KERNELS[kind, ArithmeticPattern(dtype, weights, rule)] = emitter, schedules
        return emitter

    return register


def schedules(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of a request, the default first; empty without a choice."""
    found = _find(request.op.kind, request.arithmetic)
    return found[1](request) if found is not None else []


def _find(kind: str, arithmetic: Arithmetic) -> tuple[Emitter, Schedules] | None:
    found = (_KERNELS.get((kind, pattern)) for pattern in arithmetic.patterns())
    return next((known for known in found if known is not None), None)


def emit_layer(request: KernelRequest) -> LayerCode:
    """Emit the C of one operator.

    Raises:
        ModelError: no kernel exists for the operator with that type.
    """
    op, arithmetic = request.op, request.arithmetic
    found = _find(op.kind, arithmetic)
    if found is None and find_user_operator(op.kind) is not None:
        found = _KERNELS[USER, ArithmeticPattern(arithmetic.stored)]
    if found is None:
        known = sorted({pattern.stored for kind, pattern in _KERNELS if kind == op.kind})
        hint = f"it exists for {', '.join(known)}" if known else "the operator has none"
        raise ModelError(f"{op.name}: no kernel for {op.kind} on {arithmetic.stored}; {hint}")
    emit, _ = found
    return emit(request)
