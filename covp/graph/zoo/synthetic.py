"""Models made here: the topologies of the catalog, seeded weights, calibrated scales."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from covp.base import cache
from covp.base.cache import content_key
from covp.graph.attributes import Activation, Concatenation, Elementwise, Softmax, Split
from covp.graph.graph import Graph, Quantization, Tensor
from covp.graph.ops.rearrange import Pack, SplitV
from covp.graph.zoo.builder import quantization
from covp.graph.zoo.random_network import RandomNetwork

_FEATURES, _BANDS = 42, 22
_VAD, _NOISE, _DENOISE = 24, 48, 96
_PLAIN = Elementwise()


def rnnoise(net: RandomNetwork) -> Graph:
    """Build RNNoise: features and three states to band gains, voice activity and new states."""
    features = net.input(1, 1, _FEATURES)
    states = [net.input(1, cells) for cells in (_VAD, _NOISE, _DENOISE)]
    one = net.builder.constant(np.array(1.0, np.float32))
    gru = [_Gru(net, state, one) for state in states]
    gru[2].recall()
    dense = net.dense(_reshape(net, features, (1, _FEATURES)), _VAD)
    first = _reshape(net, net.builder.add("TANH", dense), (1, 1, _VAD))
    gru[0].hear(first)
    gru[1].recall()
    gru[0].recall()
    voice = gru[0].step(late=True)
    gru[1].hear(_concatenate(net, first, voice, features))
    noise = gru[1].step(activation="relu")
    gru[2].hear(_concatenate(net, voice, noise, features))
    denoised = gru[2].step()
    gains = _answer(net, denoised, _BANDS)
    activity = _answer(net, voice, 1)
    return net.builder.graph(denoised, gains, noise, voice, activity)


@dataclass
class _Gru:
    """One step of a GRU: z keeps, r resets; the candidate has TANH or RELU."""

    net: RandomNetwork
    state: Tensor
    one: Tensor

    def recall(self) -> None:
        """Compute the state's products for z, r and the candidate."""
        cells = self.state.shape[1]
        sums = self.net.dense(self.state, 3 * cells)
        self._back = self.net.builder.add_all(
            "SPLIT_V", sums, attributes=SplitV(1, (cells,) * 3), outputs=3
        )

    def hear(self, x: Tensor) -> None:
        """Compute the input's products for z, r and the candidate."""
        row = self.net.builder.add("UNPACK", x, attributes=Pack(0))
        sums = self.net.dense(row, 3 * self.state.shape[1])
        self._own = self.net.builder.add_all("SPLIT", sums, attributes=Split(1), outputs=3)

    def step(self, activation: Activation = "none", late: bool = False) -> Tensor:
        """Return the new state; ``late``: what is kept of the old one is multiplied at the end."""
        add = self.net.builder.add
        z = add("LOGISTIC", add("ADD", self._own[0], self._back[0], attributes=_PLAIN))
        kept = None if late else add("MUL", z, self.state, attributes=_PLAIN)
        rest = add("SUB", self.one, z, attributes=_PLAIN)
        r = add("LOGISTIC", add("ADD", self._own[1], self._back[1], attributes=_PLAIN))
        reset = add("MUL", r, self._back[2], attributes=_PLAIN)
        candidate = add("ADD", self._own[2], reset, attributes=Elementwise(activation))
        if activation == "none":
            candidate = add("TANH", candidate)
        new = add("MUL", rest, candidate, attributes=_PLAIN)
        if kept is None:
            kept = add("MUL", z, self.state, attributes=_PLAIN)
        after = add("ADD", kept, new, attributes=_PLAIN)
        return add("PACK", after, attributes=Pack(0))


def _reshape(net: RandomNetwork, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return net.builder.add("RESHAPE", x, shape=shape)


def _concatenate(net: RandomNetwork, *parts: Tensor) -> Tensor:
    return net.builder.add("CONCATENATION", *parts, attributes=Concatenation(2))


def _answer(net: RandomNetwork, x: Tensor, units: int) -> Tensor:
    dense = net.dense(_reshape(net, x, x.shape[1:]), units)
    return net.builder.add("LOGISTIC", _reshape(net, dense, (1, 1, units)))


def resnet(net: RandomNetwork, width: int = 16) -> Graph:
    """Build a ResNet-8 for CIFAR-10: three blocks of two 3x3 convolutions."""
    x = net.conv(net.input(1, 32, 32, 3), width, (3, 3))
    for filters, stride in ((width, (1, 1)), (2 * width, (2, 2)), (4 * width, (2, 2))):
        y = net.conv(x, filters, (3, 3), stride)
        y = net.conv(y, filters, (3, 3), activation="none")
        if stride != (1, 1):
            x = net.conv(x, filters, (1, 1), stride, "none")
        x = net.add(x, y)
    return net.classify(net.pool_and_flatten(x), 10)


def resnet_large(net: RandomNetwork) -> Graph:
    """Return the same with 2.5 times the channels."""
    return resnet(net, 40)


def micro_kws_m(net: RandomNetwork) -> Graph:
    """Build three convolutions with pools, three fully connected layers."""
    image = net.builder.add("RESHAPE", net.input(1, 1960), shape=(1, 49, 40, 1))
    x = net.max_pool(net.conv(image, 16, (8, 8)), (2, 2))
    x = net.average_pool(net.conv(x, 12, (6, 6)), (2, 2))
    x = net.average_pool(net.conv(x, 16, (4, 4)), (2, 2))
    x = net.dense(net.dense(net.flatten(x), 32, "relu"), 16, "relu")
    return net.classify(x, 10)


def person_detect(net: RandomNetwork) -> Graph:
    """Build a MobileNetV1 of width 0.25 on gray images, a convolution as its classifier."""
    x = net.input(1, 96, 96, 1)
    x = net.depthwise(x, stride=(2, 2), activation="relu6", multiplier=8)
    channels = [16, 32, 32, 64, 64, *[128] * 6, 256, 256]
    strides = [1, 2, 1, 2, 1, 2, *[1] * 5, 2, 1]
    for filters, stride in zip(channels, strides, strict=True):
        x = net.depthwise(x, stride=(stride, stride), activation="relu6")
        x = net.conv(x, filters, (1, 1), activation="relu6")
    x = net.conv(net.average_pool(x, (3, 3), (2, 2)), 2, (1, 1), activation="none")
    return net.builder.graph(net.builder.add("SOFTMAX", net.flatten(x), attributes=Softmax()))


def mnist_lstm(net: RandomNetwork) -> Graph:
    """Return an LSTM over the 28 rows of a digit; all its outputs are classified."""
    return net.classify(net.flatten(net.lstm(net.input(1, 28, 28), 20)), 10)


def dtln(net: RandomNetwork) -> Graph:
    """Return the first half of DTLN: two LSTMs over spectra, one an inference, and a mask."""
    x = net.lstm(net.lstm(net.input(1, 1, 257), 128), 128)
    return net.builder.graph(net.builder.add("LOGISTIC", net.dense(x, 257)))


def kws(net: RandomNetwork) -> Graph:
    """Build a DS-CNN: one convolution and four depthwise-separable ones of 64 channels."""
    x = net.conv(net.input(1, 49, 10, 1), 64, (10, 4), (2, 2))
    for _ in range(4):
        x = net.conv(net.depthwise(x), 64, (1, 1))
    return net.classify(net.pool_and_flatten(x), 12)


def vww(net: RandomNetwork) -> Graph:
    """Build a MobileNetV1 of width 0.25."""
    x = net.conv(net.input(1, 96, 96, 3), 8, (3, 3), (2, 2))
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5]
    for filters, stride in (*blocks, (256, 2), (256, 1)):
        x = net.conv(net.depthwise(x, stride=(stride, stride)), filters, (1, 1))
    return net.classify(net.pool_and_flatten(x), 2)


def toycar(net: RandomNetwork) -> Graph:
    """Return an autoencoder of ten fully connected layers, eight units in the middle."""
    x = net.input(1, 640)
    for units in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, units, "relu")
    return net.builder.graph(net.dense(x, 640, gain=10.0))


def sww(net: RandomNetwork) -> Graph:
    """Build depthwise-separable convolutions along time, then one row of 32 features."""
    x = net.input(1, 30, 1, 40)
    for rows, filters in ((3, 128), (5, 128), (10, 128), (15, 32)):
        x = net.depthwise(x, (rows, 1), same=False, activation="none")
        x = net.conv(x, filters, (1, 1))
    return net.classify(net.flatten(x), 3)


def cifar10(net: RandomNetwork) -> Graph:
    """Return the CNN of the microTVM thesis: three 5x5 convolutions with pools, one dense layer.

    Given are the kernels' sizes, the channels and the order of the layers. Left open, chosen here:
    SAME padding and pools of 2x2 in steps of 2, with which the inputs of the convolutions are
    32x32, 16x16 and 8x8 as in its comparison of single operators; ReLU, fused into the convolution
    as TFLite does; and no SOFTMAX at the end.
    """
    x = net.input(1, 32, 32, 3)
    for filters in (32, 32, 64):
        x = net.max_pool(net.conv(x, filters, (5, 5)), (2, 2))
    return net.builder.graph(net.dense(net.flatten(x), 10))


TOPOLOGIES: dict[str, Callable[[RandomNetwork], Graph]] = {
    "resnet": resnet,
    "kws": kws,
    "vww": vww,
    "toycar": toycar,
    "sww": sww,
    "cifar10": cifar10,
    "resnet_large": resnet_large,
    "micro_kws_m": micro_kws_m,
    "person_detect": person_detect,
    "mnist_lstm": mnist_lstm,
    "dtln": dtln,
    "rnnoise": rnnoise,
}
"""The function that builds each network, by name."""


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
    """Return the cached file of a zoo name ("resnet", "resnet_float" ...), built if missing."""
    here = Path(__file__).parent
    key = content_key(*(path.read_bytes() for path in sorted(here.glob("*.py"))))
    file = f"{name}-synthetic-{key[:16]}.tflite"
    found = cache.find("models", file)
    if found is not None:
        return found
    from covp.graph.zoo.tflite_writer import write_tflite

    return cache.store("models", file, write_tflite(synthetic_graph(name)))


def synthetic_graph(name: str) -> Graph:
    """Return the graph of a zoo name; the same on every call."""
    # these load numpy-heavy code that a cached file does without
    from covp.graph.zoo.calibrate import quantize, spread_logits
    from covp.graph.zoo.random_network import RandomNetwork
    from covp.graph.zoo.synthetic import TOPOLOGIES

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
    """Return the real numbers that an int8 input may be."""
    stored = np.arange(-128, 128) - int(scaled.zero_point[0])
    return np.asarray((stored * scaled.scale[0]).astype(np.float32))
