"""`Importer`: collects the operators of a graph while nodes are converted; constants are folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray

from covp.errors import ModelError
from covp.graph.attributes import Transpose
from covp.graph.graph import TFLM, Graph, Op, Quantization, Rounding, Tensor
from covp.graph.onnx.values import check_size
from covp.graph.ops import definition

_HELPERS = frozenset({"CAST", "CONCATENATION", "PAD", "RESHAPE", "TRANSPOSE"})
# a converter puts these around the operator that the node is named for
MOST_BYTES = 2**29
"""Largest size of a tensor in bytes: larger ones fit no core."""
MOST_FOLDED = 2**28
"""Bytes of all constants that are computed from others when a model is read."""


_MOVING = frozenset(
    {
        *("BROADCAST_TO", "COMPRESS", "DEPTH_TO_SPACE", "DYNAMIC_SLICE", "GATHER"),
        *("GATHER_ELEMENTS", "GATHER_ND", "MAX_POOL", "MIRROR_PAD", "REVERSE_SEQUENCE"),
        *("REVERSE_V2", "SPACE_TO_DEPTH", "SPLIT_V", "STRIDED_SLICE", "TILE"),
    }
)
"""Operators whose outputs are elements of their first input, in its quantization."""


class Importer:
    """A graph under construction.

    Attributes:
        ops: added so far, in order.
        label: prefix of names that have none in the model; the node being converted.
        index: of that node.
        signed: the int8 tensors that stand for uint8 ones.
        defined: QuantizeLinear and DequantizeLinear are the arithmetic of the standard's text, so
            that no operator for quantized values judges itself.
        read: reads another model, such as a function whose results become a table.
    """

    def __init__(self, defined: bool = False) -> None:
        self.defined = defined
        self.ops: list[Op] = []
        self.label = "graph"
        self._folded = 0
        self.index = 0
        self.read: Callable[[onnx.ModelProto], Graph] | None = None
        self.signed: dict[Tensor, Tensor] = {}
        self._names: set[str] = set()
        self._op_names: set[str] = set()

    def add(
        self,
        kind: str,
        *inputs: Tensor | None,
        attributes: Any = None,
        dtype: DTypeLike | None = None,
        shape: Sequence[int] | None = None,
        quantization: Quantization | None = None,
        rounding: Rounding = TFLM,
    ) -> Tensor:
        """Return an operator with one output, or the result where all inputs are constant.

        Args:
            kind: of `covp.graph.ops`.
            inputs: None for one left out.
            attributes: of the kind.
            dtype: of the output; None: the first input's.
            shape: of the output, for kinds whose inputs and attributes do not give it (RESHAPE).
            quantization: of the output.
            rounding: of quantized operators.

        Raises:
            ModelError: shapes or types do not fit.
        """
        outputs = self.add_many(
            kind,
            *inputs,
            attributes=attributes,
            dtypes=[dtype],
            shape=shape,
            quantization=quantization,
            rounding=rounding,
        )
        return outputs[0]

    def add_many(
        self,
        kind: str,
        *inputs: Tensor | None,
        attributes: Any = None,
        dtypes: Sequence[DTypeLike | None],
        shape: Sequence[int] | None = None,
        quantization: Quantization | None = None,
        rounding: Rounding = TFLM,
    ) -> list[Tensor]:
        """Add an operator with several outputs, one for each of ``dtypes``; see `add`."""
        first = next((t.dtype for t in inputs if t is not None), np.dtype(np.float32))
        if quantization is None and kind in _MOVING and inputs[0] is not None:
            quantization = inputs[0].quantization
        outputs = [
            Tensor(
                self.unique(f"{self.label}_{kind.lower()}"),
                tuple(shape or ()),
                first if dtype is None else np.dtype(dtype),
                quantization,
            )
            for dtype in dtypes
        ]
        name = _unused_name(
            f"{self.label}_{kind.lower()}" if kind in _HELPERS else self.label, self._op_names
        )
        op = Op(kind, name, list(inputs), outputs, attributes, self.index, rounding)
        known = definition(kind)
        known.types(op)
        for tensor, found in zip(outputs, known.infer_shapes(op), strict=True):
            tensor.shape = tuple(int(extent) for extent in found)
            check_size(tensor.shape, tensor.dtype, MOST_BYTES, "a tensor")
        if outputs and not any(tensor.size for tensor in outputs):
            for tensor in outputs:  # nothing is computed of no elements
                tensor.data = np.zeros(tensor.shape, tensor.dtype)
        elif all(t is None or t.data is not None for t in inputs):
            self._limit_folds(kind, outputs)
            values = [None if t is None else t.data for t in inputs]
            results = known.reference(op, values)
            for tensor, value in zip(outputs, results, strict=True):
                tensor.data = np.asarray(value)
        else:
            self.ops.append(op)
        return outputs

    def _limit_folds(self, kind: str, made: Sequence[Tensor]) -> None:
        """Raise ModelError before constants are computed that would take more than a core has."""
        self._folded += sum(tensor.nbytes for tensor in made)
        if self._folded > MOST_FOLDED:
            raise ModelError(
                f"{kind} of constants makes {made[0].nbytes:,} bytes, with those before "
                f"{self._folded:,}: at most {MOST_FOLDED:,} are computed when a model is read"
            )

    def constant(
        self, data: NDArray[Any], name: str = "", quantization: Quantization | None = None
    ) -> Tensor:
        """Return a constant; without a name it is called after the node being converted."""
        array = np.ascontiguousarray(data).reshape(np.shape(data))
        label = self.unique(name or f"{self.label}_constant")
        return Tensor(label, array.shape, array.dtype, quantization, array)

    def reshape(self, source: Tensor, shape: Sequence[int]) -> Tensor:
        """Return the tensor in another shape; the tensor itself if it has that shape."""
        if source.shape == tuple(shape):
            return source
        return self.add("RESHAPE", source, shape=shape, quantization=source.quantization)

    def transpose(self, source: Tensor, permutation: Sequence[int]) -> Tensor:
        """Make output axis i of source axis permutation[i]; a reshape if no elements move."""
        order = tuple(permutation)
        if sorted(order) != list(range(len(source.shape))):
            raise ModelError(f"permutation {order} does not fit the shape {source.shape}")
        moved = [axis for axis in order if source.shape[axis] != 1]
        if moved == sorted(moved):
            return self.reshape(source, [source.shape[axis] for axis in order])
        return self.add(
            "TRANSPOSE", source, attributes=Transpose(order), quantization=source.quantization
        )

    def unique(self, name: str) -> str:
        """Return the name, or one derived from it that no tensor has yet."""
        return _unused_name(name, self._names)

    def rename(self, tensor: Tensor, name: str) -> None:
        """Give a tensor its name in the model, unless another tensor has that name."""
        if name not in self._names:
            self._names.add(name)
            tensor.name = name

    def graph(self, name: str, inputs: list[Tensor], outputs: list[tuple[str, Tensor]]) -> Graph:
        """Return the graph; outputs that are inputs, constants or other outputs get own memory.

        Args:
            name: of the graph.
            inputs: of the graph.
            outputs: names and tensors.
        """
        taken = {id(tensor) for tensor in inputs}
        results: list[Tensor] = []
        for label, tensor in outputs:
            result = tensor
            if tensor.data is not None or id(tensor) in taken:
                called = _unused_name(f"{label}_identity", self._op_names)
                op = Op("IDENTITY", called, [tensor], [], None, self.index)
                own = self.unique(label if label not in self._names else f"{label}_output")
                result = Tensor(own, tensor.shape, tensor.dtype, tensor.quantization)
                op.outputs = [result]
                self.ops.append(op)
            taken.add(id(result))
            results.append(result)
        return Graph(name, inputs, results, self.ops)


def _unused_name(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found
