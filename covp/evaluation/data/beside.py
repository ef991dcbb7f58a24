"""Other computations of the same samples: a float model, and LiteRT where it is installed."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.evaluation.data.inference import OnReference
from covp.evaluation.data.layout import Inputs
from covp.evaluation.data.stored import quantizer, real
from covp.graph.graph import Graph, Tensor

Array = NDArray[Any]

_PACKAGE = "ai-edge-litert"
_MODULE = "ai_edge_litert.interpreter"


class OtherModel:
    """Another model of the same task, computed by the reference: mostly the float one.

    Args:
        graph: the other model; inputs of integers are quantized by its own scales.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph, self._quantize = graph, quantizer(graph)
        self._inference = OnReference(graph)

    def outputs(self, inputs: Sequence[Inputs]) -> Array:
        """Return the first output of samples as real values, (samples, elements)."""
        pairs = zip(inputs, self._graph.inputs, strict=True)
        given = [self._input(each.reals, tensor) for each, tensor in pairs]
        (first, *_) = self._inference.run(given).outputs
        return real(first, self._graph.outputs[0]).reshape(len(first), -1)

    def _input(self, reals: Array, tensor: Tensor) -> Array:
        whole = np.ascontiguousarray(reals).reshape(*reals.shape[:2], *tensor.shape)
        if tensor.quantization is not None:
            return self._quantize(whole.astype(np.float32), tensor)
        return whole.astype(tensor.dtype)


def demand_same_task(graph: Graph, other: Graph) -> None:
    """Raise UsageError if a model takes or gives other numbers of values than another one."""
    sizes = [
        [tensor.size for tensor in (*model.inputs, model.outputs[0])] for model in (graph, other)
    ]
    if sizes[0] != sizes[1]:
        texts = [f"{', '.join(map(str, own[:-1]))} to {own[-1]}" for own in sizes]
        raise UsageError(
            f"{other.name} maps {texts[1]} values, {graph.name} {texts[0]}: it is not the same "
            "network"
        )
    if graph.states and not other.states:
        raise UsageError(f"{other.name} keeps no states, {graph.name} does")


def why_no_litert(graph: Graph, path: Path) -> str | None:
    """Return why a model cannot run on LiteRT; None: it can.

    Args:
        graph: the model.
        path: of its TFLite file.
    """
    if graph.states:
        return "the model keeps states, which LiteRT's interpreter does not reset"
    try:
        Litert(path)
    except ImportError:
        return f"not installed: pip install {_PACKAGE}"
    except (RuntimeError, ValueError) as error:
        return " ".join(str(error).split())
    return None


class Litert:
    """LiteRT's interpreter with its reference kernels.

    The optimized ones round in their own way, docs/accuracy.md.

    Args:
        path: of a TFLite file.

    Raises:
        ImportError: it is not installed.
        RuntimeError, ValueError: it cannot run the model.
    """

    def __init__(self, path: Path) -> None:
        module: Any = importlib.import_module(_MODULE)
        kernels = module.OpResolverType.BUILTIN_REF
        self._interpreter = module.Interpreter(
            model_path=str(path), experimental_op_resolver_type=kernels, num_threads=1
        )
        self._interpreter.allocate_tensors()

    def outputs(self, inputs: Sequence[Inputs]) -> list[Array]:
        """Return each output (samples, *shape) of samples with one step."""
        machine, found = self._interpreter, []
        for sample in range(len(inputs[0].stored)):
            for detail, each in zip(machine.get_input_details(), inputs, strict=True):
                machine.set_tensor(detail["index"], each.stored[sample, 0])
            machine.invoke()
            details = machine.get_output_details()
            found.append([np.array(machine.get_tensor(detail["index"])) for detail in details])
        return [np.stack(parts) for parts in zip(*found, strict=True)]


def litert_version() -> str:
    """Return the name, such as "LiteRT 2.0.1, reference kernels"."""
    return f"LiteRT {importlib.metadata.version(_PACKAGE)}, reference kernels"
