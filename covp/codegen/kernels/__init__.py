"""The kernels, one file a family."""

from covp.codegen.kernels import (  # noqa: F401  (each registers its emitters)
    conv2d,
    depthwise,
    elementwise,
    pooling,
    softmax,
    unary_table,
)
