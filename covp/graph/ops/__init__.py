"""The operators: shape rules, reference implementations, costs. One file a family."""

# each of these registers its operators
import covp.graph.ops.activation
import covp.graph.ops.arg_max
import covp.graph.ops.attention
import covp.graph.ops.bilinear
import covp.graph.ops.binary
import covp.graph.ops.circular_buffer
import covp.graph.ops.convolution
import covp.graph.ops.cumulative
import covp.graph.ops.detection
import covp.graph.ops.elementwise
import covp.graph.ops.gather
import covp.graph.ops.generate
import covp.graph.ops.identity
import covp.graph.ops.interpolate
import covp.graph.ops.layer_norm_int8
import covp.graph.ops.layout
import covp.graph.ops.lookup
import covp.graph.ops.matmul
import covp.graph.ops.normalization
import covp.graph.ops.placed
import covp.graph.ops.pooling
import covp.graph.ops.pooling_nd
import covp.graph.ops.quantize
import covp.graph.ops.quantized_binary
import covp.graph.ops.quantized_gelu
import covp.graph.ops.quantized_rows
import covp.graph.ops.quantized_unary
import covp.graph.ops.rearrange
import covp.graph.ops.recurrent
import covp.graph.ops.reduction
import covp.graph.ops.rotary_embedding
import covp.graph.ops.sequence_lstm
import covp.graph.ops.softmax
import covp.graph.ops.svdf
import covp.graph.ops.tiled_attention
import covp.graph.ops.top_k
import covp.graph.ops.unary
import covp.graph.ops.windows  # noqa: F401
from covp.graph.ops.definition import OPS, OpDefinition, definition, macs

__all__ = ["OPS", "OpDefinition", "definition", "macs"]
