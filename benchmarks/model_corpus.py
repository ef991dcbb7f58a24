"""Reads every .tflite file of a folder and compares it with LiteRT's reference kernels.

    python benchmarks/model_corpus.py FOLDER [-p PLATFORM] [--inferences N]

A line for each file: "exact" (integers equal to the byte, floats within 1e-5), "near" (integers
apart by one step, where TFLM's arithmetic is not LiteRT's, see docs/accuracy.md), "alone" (covp
runs it and LiteRT does not), "differs" or "refused" with the reason. With a platform each file also
runs on that emulated core, where every output must equal the reference; "FAULT" says that it does
not.
"""

from __future__ import annotations

import argparse
import hashlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import (  # type: ignore[import-untyped]
    Interpreter,
    OpResolverType,
)
from numpy.typing import NDArray

import covp
from covp.errors import CovpError
from covp.graph.graph import Graph
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import ReferenceExecutor
from covp.graph.tflite import load_tflite
from covp.runtime.session import Session

Array = NDArray[Any]
_CLOSE = 1e-5


def main() -> None:
    """Print a line for each file, and how many there are of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("-p", "--platform", help="also run each file on this emulated core")
    parser.add_argument("--inferences", type=int, default=3)
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for path in sorted(arguments.folder.rglob("*.tflite")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest in seen:
            continue
        seen.add(digest)
        word, detail = judge(path, arguments.platform, arguments.inferences)
        counts[word] += 1
        print(f"{word:8} {path.relative_to(arguments.folder)}  {detail}".rstrip(), flush=True)
    print(f"{len(seen)} files: " + ", ".join(f"{n} {word}" for word, n in counts.most_common()))


def judge(path: Path, platform: str | None, inferences: int) -> tuple[str, str]:
    """What is to be said of a file, and details.

    Args:
        path: of the file.
        platform: on whose core it runs too; None: nowhere.
        inferences: one after the other, states kept.
    """
    try:
        graph = load_tflite(path)
        samples = [random_inputs(graph.inputs, seed) for seed in range(inferences)]
        reference = ReferenceExecutor(graph)
        ours = [reference.run(*sample) for sample in samples]
        if platform is not None and (fault := _on_core(graph, platform, samples, ours)):
            return "FAULT", fault
    except CovpError as error:
        return "refused", str(error).removeprefix(f"{path}: ")
    try:
        # in a process of its own: some files end it
        with ProcessPoolExecutor(1, get_context("fork")) as child:
            theirs = child.submit(_litert, path, samples).result()
    except BrokenProcessPool:
        return "alone", "LiteRT crashes"
    except (RuntimeError, ValueError) as error:
        return "alone", f"LiteRT: {str(error).splitlines()[0][:100]}"
    return _compare(ours, theirs)


def _on_core(
    graph: Graph, platform: str, samples: Sequence[list[Array]], wanted: Sequence[list[Array]]
) -> str:
    """Runs the inferences on an emulated core; empty where every output is the reference's."""
    with Session(platform) as session:
        module = session.load(covp.compile(graph, platform))
        for number, (sample, outputs) in enumerate(zip(samples, wanted, strict=True)):
            found = module.run(*sample)
            several = [found] if isinstance(found, np.ndarray) else list(found)
            word, detail = _compare([several], [outputs])
            if word != "exact":
                return f"inference {number} on {platform}: {detail}"
    return ""


def _litert(path: Path, samples: Sequence[list[Array]]) -> list[list[Array]]:
    machine = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    machine.allocate_tensors()
    results = []
    for sample in samples:
        for detail, value in zip(machine.get_input_details(), sample, strict=True):
            machine.set_tensor(detail["index"], value)
        machine.invoke()
        outputs = machine.get_output_details()
        results.append([np.array(machine.get_tensor(detail["index"])) for detail in outputs])
    return results


def _compare(ours: Sequence[list[Array]], theirs: Sequence[list[Array]]) -> tuple[str, str]:
    worst, total, wrong = 0.0, 0, 0
    exact = True
    for mine, other in ((a, b) for x, y in zip(ours, theirs, strict=True)
                        for a, b in zip(x, y, strict=True)):  # fmt: skip
        if mine.dtype != other.dtype or mine.size != other.size:
            return "differs", f"{mine.dtype} {mine.shape} and {other.dtype} {other.shape}"
        a, b = mine.astype(np.float64).reshape(-1), other.astype(np.float64).reshape(-1)
        apart = np.abs(a - b)
        if mine.dtype.kind == "f":
            exact &= bool((apart <= _CLOSE * max(1.0, np.abs(b).max(initial=0))).all())
            continue
        total, wrong = total + a.size, wrong + int((apart > 0).sum())
        worst = max(worst, float(apart.max(initial=0)))
    if exact and not wrong:
        return "exact", ""
    detail = f"{wrong} of {total} integers, by at most {worst:g}" if wrong else "floats"
    return ("near" if exact and worst <= 1 else "differs"), detail


if __name__ == "__main__":
    main()
