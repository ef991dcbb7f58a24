"""The kernels, one file a family."""

from covp.codegen.kernels import (  # noqa: F401  (each registers its emitters)
    batch_matmul,
    circular_buffer,
    conv2d,
    depthwise,
    elementwise,
    float_activation,
    float_convolution,
    float_pooling,
    identity,
    layout,
    mean,
    pointwise,
    pooling,
    quantize,
    recurrent,
    resize,
    softmax,
    unary_table,
    user_operator,
)
