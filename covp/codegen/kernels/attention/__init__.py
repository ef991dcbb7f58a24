"""Attention, whole and in tiles."""

from covp.codegen.kernels.attention import (  # noqa: F401  (each registers its emitters)
    attention,
    rotary_embedding,
    tiled_attention,
)
