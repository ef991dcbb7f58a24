"""The operators: shape rules, reference implementations, costs. One file a family."""

# each of these registers its operators: those of small networks of images and sounds; the registry
# imports the others when a kind is missing
import covp.graph.ops.activation
import covp.graph.ops.convolution
import covp.graph.ops.elementwise
import covp.graph.ops.layout
import covp.graph.ops.pooling
import covp.graph.ops.quantize
import covp.graph.ops.reduction
import covp.graph.ops.softmax  # noqa: F401
from covp.graph.ops.definition import OPS, OpDefinition, definition, macs

__all__ = ["OPS", "OpDefinition", "definition", "macs"]
