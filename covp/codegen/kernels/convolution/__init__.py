"""Convolutions and fully connected layers."""

from covp.codegen.kernels.convolution import (  # noqa: F401  (each registers its emitters)
    batch_matmul,
    conv2d,
    conv2d_int4,
    conv2d_int16,
    convolution_nd,
    depthwise,
    depthwise_int4,
    depthwise_int16,
    float_convolution,
)
