"""Operators of each element."""

from covp.codegen.kernels.pointwise import (  # noqa: F401  (each registers its emitters)
    activation_int16,
    elementwise,
    elementwise_int16,
    float_activation,
    pointwise,
    quantize,
    quantized_pointwise,
    unary_table,
)
