"""The CODAI'22 paper's network on cores with an FPU: cost, memory, error against onnxruntime.

    python benchmarks/codai22_network.py [--time 128] [--platforms cortex-m4 riscv32f] [--unrolled]

float: all in float32. int8: convolutions and dense layer in int8 (QDQ), the GRU between in float32.
unrolled (slow to compile): what TFLite can express, the GRU as some hundred operators. "error" is
the largest difference of a probability from onnxruntime on the same file (unrolled: on the ONNX
file), "from float" that from the float network; both over 8 inputs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime

import covp
from covp.graph.graph import Graph
from covp.graph.onnx import read_onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from codai22 import Array, build_graph, build_onnx, samples  # the script has no package

INPUTS = 8


class Row(NamedTuple):
    """One form of the network on one platform."""

    network: str
    platform: str
    instructions: int
    cycles: int
    flash: int
    arena: int
    error: float
    from_float: float


def outputs_of(model: bytes, inputs: list[Array]) -> Array:
    """What onnxruntime computes."""
    session = onnxruntime.InferenceSession(model)
    return np.concatenate([session.run(None, {"x": x})[0] for x in inputs])


def networks(time: int, unrolled: bool) -> Iterator[tuple[str, Graph, bytes]]:
    """Name, graph, and the ONNX file that it is compared with."""
    shapes = {"x": (1, time, 6)}
    for name, quantized in (("float", False), ("int8", True)):
        model = build_onnx(quantized)
        yield name, read_onnx(model, shapes=shapes), model.SerializeToString()
    if unrolled:
        yield "unrolled", build_graph(time), build_onnx().SerializeToString()


def measured(name: str, graph: Graph, platform: str, wanted: Array, real: Array) -> Row:
    """Run all inputs; the cost is that of the last one."""
    inputs = [samples(graph.inputs[0].shape[1], seed) for seed in range(INPUTS)]
    with covp.Session(platform) as session:
        module = session.load(covp.compile(graph, platform))
        found = np.concatenate([module.run(x) for x in inputs])
        profile, memory = session.profile(), session.memory()
    return Row(
        name,
        platform,
        profile.instructions or 0,
        profile.cycles or 0,
        memory.flash_bytes,
        memory.arena_bytes,
        float(np.abs(found - wanted).max()),
        float(np.abs(found - real).max()),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", type=int, default=128)
    parser.add_argument("--platforms", nargs="+", default=["cortex-m4", "riscv32f"])
    parser.add_argument("--unrolled", action="store_true")
    given = parser.parse_args()
    inputs = [samples(given.time, seed) for seed in range(INPUTS)]
    real = outputs_of(build_onnx().SerializeToString(), inputs)
    print(f"{given.time} samples of 6 channels; error and difference of probabilities")
    print(f"{'network':10}{'platform':12}{'instructions':>13}{'cycles':>11}", end="")
    print(f"{'flash':>9}{'arena':>8}{'error':>10}{'from float':>12}")
    for name, graph, model in networks(given.time, given.unrolled):
        wanted = outputs_of(model, inputs)
        for platform in given.platforms:
            row = measured(name, graph, platform, wanted, real)
            print(f"{row.network:10}{row.platform:12}{row.instructions:>13,}", end="")
            print(f"{row.cycles:>11,}{row.flash:>9,}{row.arena:>8,}", end="")
            print(f"{row.error:>10.1e}{row.from_float:>12.1e}")


if __name__ == "__main__":
    main()
