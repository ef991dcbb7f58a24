"""The kernels: one folder a group of operators, one file a family; what all use is here."""

from covp.codegen.kernels import (  # noqa: F401  (each registers its emitters)
    attention,
    convolution,
    moves,
    normalization,
    pointwise,
    pooling,
    recurrent,
    user_operator,
)
