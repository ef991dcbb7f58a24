"""The graph: tensors and operators in the order they run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from covp.errors import printable

_LONGEST = 80
"""Most characters of an attribute in a text; longer ones are truncated."""
_LONGEST_NAME = 48
"""Most characters of a tensor's name in a text."""


@dataclass(frozen=True)
class Rounding:
    """Whose results a quantized operator reproduces; `covp.graph.arithmetic` has the rules.

    Attributes:
        library: "tflm": TFLite Micro's fixed point. "onnxruntime": float32 factors, ties to even,
            as QLinearConv has it.
        offset: by how much the zero points are larger that are added before a level is rounded:
            128 where the file's tensors are uint8.
        unfused: float32 of what DequantizeLinear gives: a clamp stands before QuantizeLinear that
            its range does not imply. Nothing is added before a level is rounded.
        by_columns: an unfused average sums up each column of a window first, as MlasPool does;
            else row by row.
    """

    library: Literal["tflm", "onnxruntime"] = "tflm"
    offset: int = 0
    unfused: bool = False
    by_columns: bool = False


TFLM = Rounding()


@dataclass(frozen=True)
class Quantization:
    """Affine quantization: real = scale * (stored - zero_point).

    Attributes:
        scale: float32, shape (1,) for a whole tensor or (n,) for each index along ``axis``.
        zero_point: int32, the same shape as ``scale``.
        axis: the dimension that ``scale`` runs along; 0 when per tensor.
    """

    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    axis: int = 0

    @property
    def per_channel(self) -> bool:
        """True if it has more than one scale."""
        return self.scale.size > 1

    def __repr__(self) -> str:
        return f"<Quantization {self}>"

    def __str__(self) -> str:
        if self.scale.size != 1:
            return f"{self.scale.size} scales along axis {self.axis}"
        return f"scale {self.scale[0]:.6g} zero {self.zero_point[0]}"


@dataclass(eq=False)
class Tensor:
    """A value in the graph. Compared by identity.

    Attributes:
        name: unique in its graph.
        shape: all dimensions known and positive, batch first; images are NHWC.
        dtype: int8, int32, int16, uint8, float32 ...
        quantization: None for float and plain integer tensors.
        data: the constant's array, or None when the value comes at run time.
        bits: 4 for a constant of int8 whose values fit four bits: flash holds two in a byte where
            a kernel unpacks them. None: all bits of the dtype.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    quantization: Quantization | None = None
    data: NDArray[Any] | None = None
    bits: int | None = None

    @property
    def constant(self) -> bool:
        """True if the value is known at compile time."""
        return self.data is not None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, dense and row-major."""
        return self.size * self.dtype.itemsize

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantized tensor."""
        if self.quantization is None:
            raise ValueError(f"tensor {self.name} is not quantized")
        return float(self.quantization.scale[0])

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantized tensor."""
        if self.quantization is None:
            raise ValueError(f"tensor {self.name} is not quantized")
        return int(self.quantization.zero_point[0])

    def __repr__(self) -> str:
        parts = [str(self), *([str(self.quantization)] if self.quantization else [])]
        return f"<Tensor {', '.join(parts)}>"

    def __str__(self) -> str:
        kind = self.dtype.name if self.bits is None else f"int{self.bits}"
        extents = ",".join(map(str, self.shape))
        return f"{_name(self.name)} {kind}[{extents}]{' constant' * self.constant}"


@dataclass(eq=False)
class Op:
    """One operator. Compared by identity.

    Attributes:
        kind: TFLite's builtin name, e.g. "CONV_2D"; of what TFLite does not have, ONNX's name in
            that style, e.g. "LAYER_NORMALIZATION".
        name: unique in its graph; made from the kind and the index in the file.
        inputs: None is an optional input left out (a convolution without bias).
        outputs: mostly one.
        attributes: the operator's own attribute object from ``covp/graph/ops/``, or None.
        index: position in the model file, kept through the passes; what reports show.
        rounding: of quantized operators.
    """

    kind: str
    name: str
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    attributes: Any = None
    index: int = 0
    rounding: Rounding = TFLM

    @property
    def output(self) -> Tensor:
        """The first output."""
        return self.outputs[0]

    def input(self, position: int) -> Tensor:
        """Return the required input at a position."""
        tensor = self.inputs[position]
        if tensor is None:
            raise ValueError(f"{self.name}: input {position} is missing")
        return tensor

    def __repr__(self) -> str:
        return f"<Op {self}>"

    def __str__(self) -> str:
        given = attributes_text(self.attributes)
        return (
            f"{printable(self.kind)} {printable(self.name)}: {_tensors_text(self.inputs)} -> "
            f"{_tensors_text(self.outputs)}{f' {{{given}}}' * bool(given)}"
        )


@dataclass(eq=False)
class Strip(Op):
    """An operator over some rows of the output of another one, or a copy of some of its rows.

    Attributes:
        whole: the other operator; None for an operator that is no strip.
    """

    whole: Op | None = None


@dataclass(frozen=True, eq=False)
class State:
    """A tensor that a network remembers from one inference to the next.

    Attributes:
        name: unique in its graph.
        before: read by operators; holds what ``after`` was at the end of the inference before.
        after: of the same shape and type, written by an operator.
        initial: the value of ``before`` in the first inference and after a reset.
    """

    name: str
    before: Tensor
    after: Tensor
    initial: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Streaming:
    """The origin of a graph that takes new rows only: one that takes whole windows.

    Attributes:
        plain: takes windows.
        axis: of time in its input.
        hop: new rows of each inference.
    """

    plain: Graph
    axis: int
    hop: int

    @property
    def window(self) -> int:
        """Rows of a window."""
        return self.plain.inputs[0].shape[self.axis]

    @property
    def warm_up(self) -> int:
        """The first inference, from 1, whose outputs are those of a whole window."""
        return -(-self.window // self.hop)


@dataclass(frozen=True)
class Origin:
    """The file that a graph was read from.

    Attributes:
        path: of the file.
        shapes: of inputs that it leaves open, as they were given.
    """

    path: Path
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(eq=False)
class Graph:
    """A network: operators in execution order.

    Attributes:
        name: of the model, a C identifier.
        inputs, outputs: the graph's own.
        ops: each after the ones whose outputs it reads.
        source: "official", "custom" or "synthetic" for models of the zoo, "file" for those of
            a path, "memory" for a graph that was built in this process.
        expanded_bytes: by which the constants grew when int8 weights under float activations (a
            dynamic-range model) became float32.
        states: kept in memory between inferences.
        streaming: of a graph that `covp.graph.passes.streaming.make_streaming_graph` made.
        origin: the file that it was read from; None for a graph that was built in this process.
        notes: what its reader decided where the file leaves it open, one line each.
    """

    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    ops: list[Op] = field(default_factory=list)
    source: str = "memory"
    expanded_bytes: int = 0
    states: list[State] = field(default_factory=list)
    streaming: Streaming | None = None
    origin: Origin | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        inputs, outputs = _tensors_text(self.inputs), _tensors_text(self.outputs)
        return f"<Graph {printable(self.name)}: {inputs} -> {outputs}, {_count(self.ops)}>"

    def __str__(self) -> str:
        """Return a line for the graph and one for each operator."""
        constants = sum(tensor.nbytes for tensor in self.tensors() if tensor.constant)
        states = ", ".join(f"{printable(s.name)} {s.before} -> {s.after}" for s in self.states)
        first = (
            f"{printable(self.name)}: {_tensors_text(self.inputs)} -> "
            f"{_tensors_text(self.outputs)}; {_count(self.ops)}, "
            f"{constants:,} bytes of constants{f'; states {states}' * bool(states)}"
        )
        return "\n".join([first, *(f"  {op}" for op in self.ops)])

    @property
    def results(self) -> list[Tensor]:
        """Tensors needed after the last operator: the outputs, and the new values of the states."""
        return [*self.outputs, *(state.after for state in self.states)]

    def is_result(self, tensor: Tensor) -> bool:
        """Return whether the tensor is one of `results`."""
        return tensor in self.results

    def tensors(self) -> Iterator[Tensor]:
        """Yield every tensor once: inputs and states first, then in the order of the operators."""
        seen: set[int] = set()

        def fresh(tensors: Iterable[Tensor | None]) -> Iterator[Tensor]:
            for tensor in tensors:
                if tensor is not None and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield tensor

        yield from fresh(self.inputs)
        yield from fresh(state.before for state in self.states)
        for op in self.ops:
            yield from fresh(op.inputs)
            yield from fresh(op.outputs)
        yield from fresh(self.results)

    def producer(self, tensor: Tensor) -> Op | None:
        """Return the operator that writes the tensor; None for inputs and constants."""
        return next((op for op in self.ops if tensor in op.outputs), None)

    def consumers(self, tensor: Tensor) -> list[Op]:
        """Return the operators that read the tensor, in order."""
        return [op for op in self.ops if tensor in op.inputs]


def _name(name: str) -> str:
    """Return a name on one line; of one that a converter joined from many, both ends."""
    text = printable(name)
    return text if len(text) <= _LONGEST_NAME else f"{text[:18]}...{text[-27:]}"


def _count(ops: Sequence[Op]) -> str:
    return f"{len(ops)} operator{'s' * (len(ops) != 1)}"


def _tensors_text(tensors: Iterable[Tensor | None]) -> str:
    return ", ".join("none" if tensor is None else str(tensor) for tensor in tensors)


def attributes_text(attributes: Any) -> str:
    """Return text such as "stride=(2, 2), activation='relu'", without empty or default values."""
    if attributes is None:
        return ""
    if not is_dataclass(attributes) or isinstance(attributes, type):
        return _short(attributes)
    given = []
    for about in fields(attributes):
        value = getattr(attributes, about.name)
        factory = about.default_factory
        default = about.default if factory is MISSING else factory()
        if not _is_empty(value) and not _is_same(value, default):
            given.append(f"{about.name}={_short(value)}")
    return ", ".join(given)


def _is_empty(value: Any) -> bool:
    """Return whether there is nothing to show: None, an empty list, a padding of zeros."""
    if is_dataclass(value) and not isinstance(value, type):
        return not attributes_text(value)
    return value is None or (isinstance(value, str | Sequence | Mapping) and len(value) == 0)


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, np.ndarray) and value == default


def _short(value: Any) -> str:
    """Return a value on one line, of operators the kinds, of arrays the shape."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if isinstance(value, Op):
        return printable(value.kind)
    if isinstance(value, tuple) and any(isinstance(part, Op | np.ndarray) for part in value):
        text = f"({', '.join(map(_short, value))})"
    elif is_dataclass(value) and not isinstance(value, type):
        text = f"{type(value).__name__}({attributes_text(value)})"
    else:
        text = printable(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def copy_graph(graph: Graph) -> Graph:
    """Return a copy with new operators and lists; immutable tensors and attributes are shared."""
    ops: list[Op] = [
        replace(op, inputs=list(op.inputs), outputs=list(op.outputs)) for op in graph.ops
    ]
    return replace(
        graph,
        inputs=list(graph.inputs),
        outputs=list(graph.outputs),
        ops=ops,
        states=list(graph.states),
    )
