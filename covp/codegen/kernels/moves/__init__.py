"""Operators that move values."""

from covp.codegen.kernels.moves import (  # noqa: F401  (each registers its emitters)
    bilinear,
    detection,
    gather,
    generate,
    identity,
    interpolate,
    layout,
    placed,
    rearrange,
    resize,
    top_k,
)
