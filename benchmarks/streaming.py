"""Streams beside windows: cycles of a frame, and every output byte of a stream of 1,000 frames.

    python benchmarks/streaming.py [--frames 1000] [--platform cortex-m4 --platform riscv32]

Runs each network with `--streaming` on a random stream, and the plain network on every full window
of it, both on the emulated core. Exits with 1 where an output after the warm-up differs, or where
sww takes more than a fifteenth of the plain network's cycles per frame.

sww is MLPerf Tiny's network (`COVP_MODEL_DIR`; without it a stand-in of the same layers). The
others have random weights: "gesture" is a 2-D network on 128 samples of 3 acceleration axes that
pools by 3 twice, so that 9 samples are new; "tcn" has six residual blocks with dilations to 32.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import covp
from covp.graph.attributes import (
    Conv2D,
    Elementwise,
    FullyConnected,
    Padding,
    Pair,
    Pool2D,
    Softmax,
    StridedSlice,
)
from covp.graph.graph import Graph, Tensor
from covp.graph.ops import macs
from covp.graph.passes.streaming import make_streaming_graph
from covp.graph.random_inputs import random_inputs
from covp.graph.zoo.builder import GraphBuilder

LIMIT = 15.0
"""Plain cycles by streaming cycles that sww must reach."""


class _Network:
    """A builder of quantized layers with random weights."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.rng = np.random.default_rng(sum(name.encode()))
        self.builder = GraphBuilder(name)
        self.input = self.builder.input(shape, scale=0.05)

    def weights(self, shape: tuple[int, ...]) -> Tensor:
        limit = 1.5 / np.sqrt(np.prod(shape[1:]))
        data = self.rng.normal(0, 40, shape).clip(-127, 127).astype(np.int8)
        return self.builder.constant(data, np.full(shape[0], limit / 40, np.float32))

    def convolution(self, x: Tensor, outputs: int, size: Pair, dilation: int = 1) -> Tensor:
        attributes = Conv2D((1, 1), Padding(), (dilation, 1), "relu")
        weights = self.weights((outputs, *size, x.shape[3]))
        return self.builder.add("CONV_2D", x, weights, attributes=attributes, scale=0.05)

    def classes(self, x: Tensor, count: int) -> Graph:
        flat = self.builder.add("RESHAPE", x, shape=(1, x.size))
        weights = self.weights((count, x.size))
        sums = self.builder.add(
            "FULLY_CONNECTED", flat, weights, attributes=FullyConnected(), scale=0.1
        )
        out = self.builder.add(
            "SOFTMAX", sums, attributes=Softmax(), scale=1 / 256, zero_point=-128
        )
        return self.builder.graph(out)


def gesture() -> Graph:
    """Two convolutions with pools, on 128 samples of three axes."""
    net = _Network("gesture", (1, 128, 3, 1))
    pool = Pool2D((3, 1), (3, 1), Padding())
    x = net.convolution(net.input, 8, (4, 3))
    x = net.builder.add("MAX_POOL_2D", x, attributes=pool)
    x = net.convolution(x, 16, (4, 1))
    x = net.builder.add("MAX_POOL_2D", x, attributes=pool)
    return net.classes(x, 4)


def tcn() -> Graph:
    """Residual blocks of dilated convolutions, 128 rows of 16 features."""
    net = _Network("tcn", (1, 128, 1, 16))
    x = net.input
    for dilation in (1, 2, 4, 8, 16, 32):
        y = net.convolution(x, 16, (3, 1), dilation)
        bounds = ((0, 1, 1), (2 * dilation, x.shape[1], 1), (0, 1, 1), (0, 16, 1))
        x = net.builder.add("STRIDED_SLICE", x, attributes=StridedSlice(bounds))
        x = net.builder.add("ADD", x, y, attributes=Elementwise(), scale=0.06)
    last = (x.shape[1] - 1, x.shape[1], 1)
    bounds = ((0, 1, 1), last, (0, 1, 1), (0, 16, 1))
    return net.classes(net.builder.add("STRIDED_SLICE", x, attributes=StridedSlice(bounds)), 6)


NETWORKS: dict[str, tuple[Callable[[], Graph], int]] = {
    "sww": (lambda: covp.load_model("sww"), 1),
    "gesture": (gesture, 9),
    "tcn": (tcn, 1),
}
"""Name to model and new rows of a frame."""


@dataclass(frozen=True)
class Outcome:
    """A network on a platform, as windows and as a stream.

    Attributes:
        plain, stream: cycles of a frame.
        compared, wrong: output bytes after the warm-up, and how many of them differ.
        arena, states: bytes; of the plain network's arena, then of the stream's and its states.
    """

    plain: int
    stream: int
    compared: int
    wrong: int
    arena: tuple[int, int]
    states: int

    @property
    def faster(self) -> float:
        """Plain cycles by the stream's."""
        return self.plain / self.stream


def measure(graph: Graph, hop: int, platform: str, frames: int) -> Outcome:
    """Run a stream of frames, and the plain network on each full window."""
    plain, stream = (covp.compile(graph, platform, streaming=n) for n in (0, hop))
    streaming = stream.graph.streaming
    assert streaming is not None
    window, axis = streaming.window, streaming.axis
    source = graph.inputs[0]
    shape = (*source.shape[:axis], frames * hop, *source.shape[axis + 1 :])
    (data,) = random_inputs([covp.graph.graph.Tensor("rows", shape, source.dtype)], 1)
    compared = wrong = 0
    with covp.Session(platform) as first, covp.Session(platform) as second:
        whole, new = first.load(plain), second.load(stream)
        for end in range(hop, frames * hop + 1, hop):
            got = new.run(np.take(data, range(end - hop, end), axis))
            if end < streaming.warm_up * hop:
                continue
            wanted = whole.run(np.take(data, range(end - window, end), axis))
            wrong += sum(a != b for a, b in zip(got.tobytes(), wanted.tobytes(), strict=True))
            compared += got.nbytes
        before, after = whole.profile().cycles, new.profile().cycles
    assert before and after
    arena = plain.arena_bytes, stream.arena_bytes
    return Outcome(before, after, compared, wrong, arena, stream.state_bytes)


def main() -> int:
    """Measure, print a table, and say by the exit status whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--platform", action="append")
    wanted = parser.parse_args()
    print(
        "| network | platform | MACs of a window | of a frame | cycles of a window | of a frame "
        "| fewer | arena | with states | differing bytes |\n" + "|---" * 10 + "|"
    )
    failed = False
    for name, (make, hop) in NETWORKS.items():
        graph = make()
        stream = make_streaming_graph(graph, hop)
        for platform in wanted.platform or ["cortex-m4", "riscv32"]:
            found = measure(graph, hop, platform, wanted.frames)
            print(
                f"| {name} | {platform} | {macs(graph):,} | {macs(stream):,} | {found.plain:,} "
                f"| {found.stream:,} | {found.faster:.1f}x | {found.arena[0]:,} "
                f"| {found.arena[1]:,} ({found.states:,}) "
                f"| {found.wrong:,} of {found.compared:,} |",
                flush=True,
            )
            failed |= found.wrong > 0 or (name == "sww" and found.faster < LIMIT)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
