"""The partitioner's time: which of six accelerators gets which layer, without code generation.

    python benchmarks/partitioner.py [MODEL ...]

Default: resnet. One row per model: the best of five, with the number of layers on each.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from covp.accelerator.placement import Partition
from covp.accelerator.registry import find_backends
from covp.codegen.offload import split_graph
from covp.graph.models import load_model
from covp.graph.passes import run_passes

SIX = ("qconv2d", "gemm", "vector", "dma", "vanilla", "cfu")
COMPARED = ("qconv2d", "gemm", "vector", "dma", "vanilla", "wide=gemm:size=16")
"""Six with estimates: a layer that `cfu` accepts goes to the accelerator named first."""


def measure(model: str, accelerators: tuple[str, ...], tries: int = 5) -> tuple[float, Partition]:
    """Seconds of the fastest try, and the partition."""
    graph, backends = run_passes(load_model(model)), find_backends(accelerators)
    seconds = []
    for _ in range(tries):
        start = time.perf_counter()
        _, split = split_graph(graph, backends)
        seconds.append(time.perf_counter() - start)
    return min(seconds), split


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", default=["resnet"], metavar="MODEL")
    for model in parser.parse_args().models:
        for accelerators in (SIX, COMPARED):
            seconds, split = measure(model, accelerators)
            targets = Counter(placement.target for placement in split.placements)
            layers = ", ".join(f"{name} {count}" for name, count in targets.items())
            print(f"{model}, {' '.join(accelerators)}: {seconds * 1e3:.0f} ms ({layers})")


if __name__ == "__main__":
    main()
