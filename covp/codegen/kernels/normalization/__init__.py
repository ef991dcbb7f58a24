"""SOFTMAX and normalizations: operators over rows."""

from covp.codegen.kernels.normalization import (  # noqa: F401  (each registers its emitters)
    layer_norm_int8,
    normalization,
    quantized_rows,
    softmax,
    softmax_int16,
)
