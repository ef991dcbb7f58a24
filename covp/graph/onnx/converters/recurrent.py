"""RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Sequence

from covp.errors import ModelError, near_misses
from covp.graph.graph import Tensor
from covp.graph.onnx.converters.registry import register
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode
from covp.graph.ops.recurrent import FUNCTIONS, Activation, Recurrent

_DEFAULTS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
# alpha and beta where the node has none: those of the operators of that name; the functions that
# no operator has are the identity of their factors, as in onnxruntime
_PARAMETERS: dict[str, tuple[float, ...]] = {
    "sigmoid": (),
    "tanh": (),
    "relu": (),
    "softsign": (),
    "softplus": (),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "elu": (1.0,),
    "affine": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
}


@register("RNN", "GRU", "LSTM")
def _recurrent(node: OnnxNode, importer: Importer) -> Sequence[Tensor | None]:
    directions = {"forward": 1, "reverse": 1, "bidirectional": 2}
    direction = str(node.get("direction", "forward"))
    if direction not in directions:
        raise ModelError(f"direction {direction!r}", hint=near_misses(direction, directions))
    layout = int(node.get("layout", 0))
    if layout not in (0, 1):
        raise ModelError(f"layout {layout} is neither 0 nor 1")
    names = ("Y", "Y_h", "Y_c")[: 3 if node.kind == "LSTM" else 2]
    wanted = tuple(name for i, name in enumerate(names) if node.wants(i)) or ("Y",)
    most = 8 if node.kind == "LSTM" else 6
    if len(node.inputs) > most:
        raise ModelError(f"{len(node.inputs)} inputs; {node.kind} has at most {most}")
    clip = node.get("clip")
    if clip is not None and not float(clip) > 0:
        raise ModelError(f"clip is {clip}; it must be positive")
    attributes = Recurrent(
        _hidden_size(node),
        _activations(node, directions[direction]),
        direction,  # type: ignore[arg-type]  # one of the three
        layout,  # type: ignore[arg-type]
        None if clip is None else float(clip),
        wanted,
        bool(node.get("linear_before_reset", 0)),
        bool(node.get("input_forget", 0)),
    )
    inputs = [node.input(0), node.input(1), node.input(2), *node.inputs[3:]]
    results = importer.add_many(
        node.kind, *inputs, attributes=attributes, dtypes=[None] * len(wanted)
    )
    found = dict(zip(wanted, results, strict=True))
    return [found.get(name) for name in names[: len(node.outputs)]]


def _hidden_size(node: OnnxNode) -> int:
    """Return the hidden size: the attribute, or the last axis of R."""
    shape = node.input(2).shape
    size = node.get("hidden_size", shape[-1] if shape else 0)
    if size < 1:
        raise ModelError(f"hidden_size is {size}; it must be positive")
    return int(size)


def _activations(node: OnnxNode, directions: int) -> tuple[tuple[Activation, ...], ...]:
    """Return f, g and h of each direction; those with alphas and betas consume them."""
    each = FUNCTIONS[node.kind]
    names = [
        str(name).lower() for name in node.get("activations", _DEFAULTS[node.kind] * directions)
    ]
    if len(names) != each * directions:
        raise ModelError(f"{len(names)} activations; {each * directions} are needed")
    alphas, betas = (iter(node.get(f"activation_{n}", [])) for n in ("alpha", "beta"))
    made = []
    for name in names:
        if name not in _PARAMETERS:
            raise ModelError(f"activation {name!r}", hint=near_misses(name, _PARAMETERS))
        defaults = _PARAMETERS[name]
        values = [
            float(next(given, default))
            for given, default in zip((alphas, betas), defaults, strict=False)
        ]
        made.append(Activation(name, *values))
    return tuple(tuple(made[i : i + each]) for i in range(0, len(made), each))
