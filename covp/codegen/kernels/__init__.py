"""The kernels: one folder a group of operators, one file a family; what all use is here."""

# each of these registers its emitters: those of small networks of images and sounds in int8; the
# registry imports the others when a kernel is missing
import covp.codegen.kernels.convolution.conv2d
import covp.codegen.kernels.convolution.depthwise
import covp.codegen.kernels.moves.layout
import covp.codegen.kernels.normalization.softmax
import covp.codegen.kernels.pointwise.elementwise
import covp.codegen.kernels.pointwise.quantize
import covp.codegen.kernels.pointwise.unary_table
import covp.codegen.kernels.pooling.pooling
import covp.codegen.kernels.pooling.reduce  # noqa: F401
