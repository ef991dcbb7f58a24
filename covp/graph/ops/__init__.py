"""The operators: shape rules, reference implementations, costs. One file a family."""

from covp.graph.ops import (  # noqa: F401  (each registers its operators)
    activation,
    convolution,
    elementwise,
    layout,
    pooling,
    quantize,
    reduction,
    softmax,
)
from covp.graph.ops.definition import OPS, OpDefinition, definition

__all__ = ["OPS", "OpDefinition", "definition"]
