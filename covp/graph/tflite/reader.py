"""The TFLite reader: a flatbuffer into a `Graph`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from covp.errors import ModelError, Subject
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.model_file import identifier, model_bytes
from covp.graph.ops import definition
from covp.graph.reference import run_all
from covp.graph.tflite.checks import check_op, check_order
from covp.graph.tflite.converters import CONVERTERS, Converter
from covp.graph.tflite.converters.common import options_of
from covp.graph.tflite.flatbuffer import DAMAGE, SYNONYMS, TfliteFile, indices
from covp.graph.tflite.tensors import SubgraphTensors
from covp.graph.tflite.unsigned import adapt, keep_interface
from covp.graph.tflite.variables import CHANGED_INPUTS, Variables
from covp.graph.user_operators import find_user_operator

_MOST = 64
"""Most elements of a tensor that is taken for a shape."""


def settle(op: Op) -> bool:
    """Compute the outputs of SHAPE, and of operators on a few constant integers, now.

    Args:
        op: of tensors that no output of the file is; its outputs become constants.

    Returns:
        Whether that was done; the operator is then not needed.
    """
    tensors = [t for t in op.inputs if t is not None]
    if op.kind != "SHAPE" and not all(map(_is_shape, tensors)):
        return False
    if any(t.dtype not in (np.int32, np.int64) or t.size > _MOST for t in op.outputs):
        return False
    values = [None if t is None else t.data for t in op.inputs]
    for tensor, value in zip(op.outputs, definition(op.kind).reference(op, values), strict=True):
        tensor.data = np.asarray(value)
    return True


def _is_shape(tensor: Tensor) -> bool:
    integers = tensor.dtype in (np.int32, np.int64) and tensor.quantization is None
    return tensor.data is not None and integers and tensor.size <= _MOST


_IDENTIFIER = b"TFL3"
_LONGEST = 500  # characters of an error
# their output is a variable, whose previous value is a further input
_CHANGED_OUTPUT = ("CIRCULAR_BUFFER",)
_RESOURCES = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")
_CONTROL_FLOW = ("IF", "WHILE", "CALL", "STABLEHLO_CASE", "STABLEHLO_WHILE")


def load_tflite(path: str | Path) -> Graph:
    """Read a .tflite file.

    Raises:
        ModelError: the file is missing, damaged, or uses what is not supported. The text names
            the file, the operator with its index or the tensor, and what would fix it.
    """
    path = Path(path)
    data = model_bytes(path, ".tflite", "copy or convert the model again")
    return read_tflite(data, identifier(path.stem), str(path))


def read_tflite(data: bytes, name: str = "model", where: str = "model") -> Graph:
    """Read a TFLite file's content, like `load_tflite`; errors begin with ``where``."""
    try:
        if data[4:8] != _IDENTIFIER:
            raise ModelError("not a TFLite model (no 'TFL3' at byte 4); expected .tflite or .onnx")
        return _model(TfliteFile(data), name)
    except ModelError as error:
        text = str(error)  # with names and numbers of any length in a damaged file
        cut = f"{text[:_LONGEST]}{'...' * (len(text) > _LONGEST)}"
        raise ModelError(f"{where}: {cut}", **error.subject) from None
    except DAMAGE as error:
        raise ModelError(
            f"{where}: damaged or truncated ({type(error).__name__} while reading); "
            "copy or convert the model again"
        ) from error


def _model(file: TfliteFile, name: str) -> Graph:
    """Return the first subgraph; others matter where it runs them once for its variables."""
    reader = _Subgraph(file, 0)
    for index in reader.initializers:
        reader.initial |= _initial_values(file, index)
    graph = reader.graph(name)
    if not graph.ops:
        raise ModelError("has no operator; nothing is left to run")
    if not graph.inputs or not graph.outputs:
        raise ModelError("has no input or no output")
    check_order(graph)
    return graph


def _initial_values(file: TfliteFile, index: int) -> dict[Hashable, NDArray[Any]]:
    """Return the values that a subgraph of CALL_ONCE gives to resources, by key."""
    reader = _Subgraph(file, index)
    graph = reader.graph("initialization")
    if graph.inputs:
        raise ModelError(f"subgraph {index} initializes variables from inputs; it has none")
    check_order(graph)
    values = run_all(graph, [])
    return {
        key: values[tensor.name] if tensor.data is None else tensor.data
        for key, tensor in reader.variables.final_values().items()
    }


class _Subgraph:
    """One subgraph; every access may raise what `DAMAGE` lists.

    Attributes:
        variables: read and written by the operators.
        initial: values of resources before the first inference, by key.
        initializers: the subgraphs that CALL_ONCE names.
    """

    def __init__(self, file: TfliteFile, index: int) -> None:
        self.file = file
        self.table = file.subgraph(index)
        self.tensors = SubgraphTensors(file, self.table)
        self.initial: dict[Hashable, NDArray[Any]] = {}
        self.variables = Variables(self.initial)
        self.initializers: list[int] = []
        self._handles: dict[int, Hashable] = {}
        self._expanded_bytes = 0
        self._outputs = set(self._indices(self.table.OutputsAsNumpy()))
        self._ops = [
            op for i in file.range(self.table.OperatorsLength()) if (op := self._op(i)) is not None
        ]

    def graph(self, name: str) -> Graph:
        """Return the operators with the graph's inputs, outputs and states."""
        graph = Graph(
            name,
            [self.tensors[i] for i in self._indices(self.table.InputsAsNumpy())],
            [self._result(i) for i in self._indices(self.table.OutputsAsNumpy())],
            self._ops,
            expanded_bytes=self._expanded_bytes + self.tensors.expanded_bytes,
        )
        graph.states = list(self.variables.states())
        keep_interface(graph, self.tensors.unsigned)
        return graph

    def _indices(self, values: Any) -> Iterator[int]:
        return indices(values, len(self.tensors))

    def _op(self, index: int) -> Op | None:
        """Return the operator; None for those that only name variables or constants."""
        raw = self.table.Operators(index)
        kind = self.file.kind(raw)
        inputs = [int(raw.Inputs(i)) for i in self.file.range(raw.InputsLength())]
        outputs = list(self._indices(raw.OutputsAsNumpy()))
        if any(not -1 <= position < len(self.tensors) for position in inputs):
            raise IndexError(inputs)
        try:
            options = self.file.options(raw)
            if kind in _RESOURCES:
                self._resource(kind, options, inputs, outputs)
                return None
            if kind == "DEQUANTIZE" and self._is_real(inputs[0]):
                self.tensors[outputs[0]] = self.tensors[inputs[0]]
                return None
            kind, convert = _converter(kind)
            op = Op(kind, f"{kind.lower()}_{index}", [], [], None, index)
            self._connect(op, inputs, outputs)
            self._expanded_bytes += _widen_weights(op)
            op.attributes = convert(op, options)
            adapt(op, self.tensors.unsigned)
            check_op(op)
            if self._outputs.isdisjoint(outputs) and settle(op):
                return None
        except _UnknownOperatorError as error:
            raise ModelError(f"operator {index} is {error}", operator=f"{index}") from None
        except ModelError as error:
            subject: Subject = {"operator": f"{kind.lower()}_{index}", **error.subject}
            raise ModelError(f"operator {index} ({kind}): {error}", **subject) from None
        return op

    def _connect(self, op: Op, inputs: list[int], outputs: list[int]) -> None:
        """Connect the operator's tensors, those of its variables in their present version."""
        op.inputs = [None if at == -1 else self._present(at) for at in inputs]
        op.outputs = [self.tensors[at] for at in outputs]
        for position in CHANGED_INPUTS.get(op.kind, ()):
            if position < len(inputs) and inputs[position] != -1:
                op.outputs.append(self._next(inputs[position]))
        if op.kind in _CHANGED_OUTPUT:
            op.inputs.insert(0, self._present(outputs[0]))
            op.outputs = [self._next(outputs[0])]

    def _is_real(self, at: int) -> bool:
        """Return whether a tensor is a constant of floats: float16 in the file."""
        return self.tensors[at].constant and self.tensors[at].dtype == np.float32

    def _present(self, at: int) -> Tensor:
        if not self.tensors.is_variable(at):
            return self.tensors[at]
        return self.variables.read(("tensor", at), self.tensors[at])

    def _result(self, at: int) -> Tensor:
        """Return an output of the graph; of a constant a copy that is computed."""
        found = self._present(at)
        if not found.constant:
            return found
        name = self.tensors.unused_name(f"{found.name}_copy")
        copy = Tensor(name, found.shape, found.dtype, found.quantization)
        index = self.table.OperatorsLength() + len(self._ops)
        self._ops.append(Op("IDENTITY", f"identity_{index}", [found], [copy], None, index))
        return copy

    def _next(self, at: int) -> Tensor:
        """Return the variable after the operator that is read now."""
        before = self.tensors[at]
        if not self.tensors.is_variable(at):
            raise ModelError(
                f"tensor {before.name} is changed but not marked as variable", tensor=before.name
            )
        name = self.tensors.unused_name(f"{before.name}_after")
        after = Tensor(name, before.shape, before.dtype, before.quantization)
        self.variables.write(("tensor", at), after)
        return after

    def _resource(self, kind: str, options: Any, inputs: list[int], outputs: list[int]) -> None:
        if kind == "CALL_ONCE":
            once = options_of(tflite.CallOnceOptions, options)
            self.initializers.append(once.InitSubgraphIndex())
        elif kind == "VAR_HANDLE":
            handle = options_of(tflite.VarHandleOptions, options)
            self._handles[outputs[0]] = ("resource", handle.Container(), handle.SharedName())
        elif kind == "READ_VARIABLE":
            declared = self.tensors[outputs[0]]
            self.tensors[outputs[0]] = self.variables.read(self._key(inputs[0]), declared)
        else:
            self.variables.write(self._key(inputs[0]), self._present(inputs[1]))

    def _key(self, handle: int) -> Hashable:
        if handle not in self._handles:
            raise ModelError("its resource is not that of a VAR_HANDLE before it")
        return self._handles[handle]


class _UnknownOperatorError(ModelError):
    """An operator of a kind without converter."""


def _converter(kind: str) -> tuple[str, Converter]:
    """Return the kind and converter: covp's own, or a user's."""
    if kind in CONVERTERS:
        return kind, CONVERTERS[kind]
    if kind in _CONTROL_FLOW:
        raise _UnknownOperatorError(
            f"{kind}, control flow at run time, which is not supported; convert the model without "
            "it (Keras layers with unroll=True)"
        )
    operator = find_user_operator(kind.removeprefix("custom "))
    if operator is None:
        known = ", ".join(sorted({*CONVERTERS, *SYNONYMS}))
        raise _UnknownOperatorError(
            f"{kind}, which is not supported; a file or package can add it, see "
            f"covp.graph.user_operators; known: {known}"
        )
    return operator.kind, operator.convert or (lambda op, options: None)


def _widen_weights(op: Op) -> int:
    """Convert a dynamic-range model's int8 weights of float layers to float32 constants.

    TFLM refuses such models; LiteRT quantizes the activations on the fly instead, so that its
    results differ by about 1 % of the range.

    Returns:
        The bytes by which the constants grew.
    """
    grown = 0
    source = op.inputs[0] if op.inputs else None
    if source is None or source.dtype != np.float32:
        return grown
    for position, tensor in enumerate(op.inputs):
        if tensor is None or tensor.data is None or tensor.dtype != np.int8:
            continue
        scales = tensor.quantization
        if scales is None:
            raise ModelError(
                f"tensor {tensor.name} is int8 without a scale; quantize the model",
                tensor=tensor.name,
            )
        shape = [1] * len(tensor.shape)
        shape[scales.axis] = scales.scale.size
        centred = tensor.data.astype(np.float32) - scales.zero_point.reshape(shape)
        data = (centred * scales.scale.reshape(shape)).astype(np.float32)
        op.inputs[position] = Tensor(tensor.name, tensor.shape, np.dtype(np.float32), None, data)
        grown += data.nbytes - tensor.nbytes
    return grown
