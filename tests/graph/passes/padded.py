"""A network that a pass changes: a PAD that becomes a part of the convolution behind it."""

from __future__ import annotations

import numpy as np

from covp.graph.attributes import Conv2D, Elementwise, Pad, Padding
from covp.graph.graph import Graph
from covp.graph.zoo.builder import GraphBuilder


def padded() -> Graph:
    """Return PAD, CONV_2D and an ADD of int8."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder("padded")
    x = builder.input((1, 8, 8, 4), np.int8, 0.05)
    around = Pad(((0, 0), (1, 1), (1, 1), (0, 0)))
    x = builder.add("PAD", x, attributes=around, scale=0.05)
    w = builder.constant(rng.integers(-90, 90, (8, 3, 3, 4), np.int8), scale=0.02)
    x = builder.add("CONV_2D", x, w, attributes=Conv2D((1, 1), Padding()), scale=0.1)
    return builder.graph(builder.add("ADD", x, x, attributes=Elementwise(), scale=0.2))
