"""Models made here: the topologies of the catalog, seeded weights, calibrated scales."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from covp.base import cache
from covp.base.cache import content_key
from covp.graph.graph import Graph, Quantization
from covp.graph.zoo.builder import quantization

_SAMPLES = 8
INPUT_QUANTIZATION = {
    "resnet": ((1.0, -128),),
    "kws": ((0.5847029, 83),),
    "vww": ((1 / 255, -128),),
    "toycar": ((0.39101523, 89),),
    "sww": ((0.0037010426, -128),),
    "cifar10": ((1 / 255, -128),),
    "resnet_large": ((1.0, -128),),
    "micro_kws_m": ((0.101715684, -128),),
    "person_detect": ((0.007843138, -1),),
    "mnist_lstm": ((1 / 255, -128),),
    "dtln": ((0.06857891, -128),),
    "rnnoise": ((0.2215006, 14), (0.00784314, -1), (0.04794249, -128), (0.00784314, -1)),
}
"""Scale and zero point of each input: of the official models, and pixels from 0 to 1."""


def synthetic_path(name: str) -> Path:
    """The cached file of a zoo name ("resnet", "resnet_float" ...), built when it is missing."""
    here = Path(__file__).parent
    key = content_key(*(path.read_bytes() for path in sorted(here.glob("*.py"))))
    file = f"{name}-synthetic-{key[:16]}.tflite"
    found = cache.find("models", file)
    if found is not None:
        return found
    from covp.graph.zoo.tflite_writer import write_tflite

    return cache.store("models", file, write_tflite(synthetic_graph(name)))


def synthetic_graph(name: str) -> Graph:
    """The graph of a zoo name; the same on every call."""
    # these load numpy-heavy code that a cached file does without
    from covp.graph.zoo.calibrate import quantize, spread_logits
    from covp.graph.zoo.random_network import RandomNetwork
    from covp.graph.zoo.topology import TOPOLOGIES

    base = name.removesuffix("_float")
    scales = [quantization(*pair) for pair in INPUT_QUANTIZATION[base]]
    scaled = [scale for scale in scales if scale is not None]
    seed = zlib.crc32(base.encode())
    real = [_values(one) for one in scaled]
    network = RandomNetwork(name, seed, float(np.sqrt(np.mean(real[0] ** 2))))
    graph = TOPOLOGIES[base](network)
    rng = np.random.default_rng(seed + 1)
    samples = [
        [rng.choice(values, t.shape) for values, t in zip(real, graph.inputs, strict=True)]
        for _ in range(_SAMPLES)
    ]
    if graph.ops[-1].kind == "SOFTMAX":
        spread_logits(graph, samples)
    return graph if name != base else quantize(graph, scaled, samples)


def _values(scaled: Quantization) -> NDArray[np.float32]:
    """The real numbers that an int8 input may be."""
    stored = np.arange(-128, 128) - int(scaled.zero_point[0])
    return np.asarray((stored * scaled.scale[0]).astype(np.float32))
