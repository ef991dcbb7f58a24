"""RNNoise: noise suppression by three GRUs, whose states are inputs and outputs of the network.

Each GRU is written out, as converters to TFLite do: J.-M. Valin, arXiv:1709.08243.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covp.graph.attributes import Activation, Concatenation, Elementwise, Split
from covp.graph.graph import Graph, Tensor
from covp.graph.ops.rearrange import Pack, SplitV
from covp.graph.zoo.random_network import RandomNetwork

_FEATURES, _BANDS = 42, 22
_VAD, _NOISE, _DENOISE = 24, 48, 96
_PLAIN = Elementwise()


def rnnoise(net: RandomNetwork) -> Graph:
    """Features and the three states to the bands' gains, voice activity and the new states."""
    features = net.input(1, 1, _FEATURES)
    states = [net.input(1, cells) for cells in (_VAD, _NOISE, _DENOISE)]
    one = net.builder.constant(np.array(1.0, np.float32))
    gru = [_Gru(net, state, one) for state in states]
    gru[2].recall()
    dense = net.dense(_shaped(net, features, (1, _FEATURES)), _VAD)
    first = _shaped(net, net.builder.add("TANH", dense), (1, 1, _VAD))
    gru[0].hear(first)
    gru[1].recall()
    gru[0].recall()
    voice = gru[0].step(late=True)
    gru[1].hear(_joined(net, first, voice, features))
    noise = gru[1].step(activation="relu")
    gru[2].hear(_joined(net, voice, noise, features))
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
        """What the state gives to z, r and the candidate."""
        cells = self.state.shape[1]
        sums = self.net.dense(self.state, 3 * cells)
        self._back = self.net.builder.add_all(
            "SPLIT_V", sums, attributes=SplitV(1, (cells,) * 3), outputs=3
        )

    def hear(self, x: Tensor) -> None:
        """What the input gives to them."""
        row = self.net.builder.add("UNPACK", x, attributes=Pack(0))
        sums = self.net.dense(row, 3 * self.state.shape[1])
        self._own = self.net.builder.add_all("SPLIT", sums, attributes=Split(1), outputs=3)

    def step(self, activation: Activation = "none", late: bool = False) -> Tensor:
        """The new state; ``late``: what is kept of the old one is multiplied at the end."""
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


def _shaped(net: RandomNetwork, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return net.builder.add("RESHAPE", x, shape=shape)


def _joined(net: RandomNetwork, *parts: Tensor) -> Tensor:
    return net.builder.add("CONCATENATION", *parts, attributes=Concatenation(2))


def _answer(net: RandomNetwork, x: Tensor, units: int) -> Tensor:
    dense = net.dense(_shaped(net, x, x.shape[1:]), units)
    return net.builder.add("LOGISTIC", _shaped(net, dense, (1, 1, units)))
