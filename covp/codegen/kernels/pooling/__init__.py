"""Pools, reductions and other operators over windows and axes."""

from covp.codegen.kernels.pooling import (  # noqa: F401  (each registers its emitters)
    along_axis,
    float_pooling,
    mean,
    pooling,
    pooling_nd,
    reduce,
)
