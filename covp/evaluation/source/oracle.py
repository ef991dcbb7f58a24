"""Other libraries as oracles: a model file executed by onnxruntime or LiteRT, with all tensors."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.cache import content_key, load, store
from covp.errors import CovpError
from covp.graph.graph import Graph
from covp.graph.rounding_rules import Oracle

Array = NDArray[Any]
_WORKER = Path(__file__).with_name("worker.py")
_KIND = "source"
_MOST_KEPT = 16 << 20
"""Bytes of an answer in the cache."""
_PACKAGES: dict[Oracle, tuple[str, str]] = {
    "onnxruntime": ("onnxruntime", "onnxruntime"),
    "LiteRT": ("ai_edge_litert", "ai-edge-litert"),
}
"""Module and package."""


class NoAnswer(CovpError):
    """An oracle cannot execute a model; one line says why."""


@dataclass(frozen=True)
class OracleLibrary:
    """A library that executes model files.

    Attributes:
        name: of the library.
        version: of its package.
    """

    name: Oracle
    version: str

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(self.version.split('.')[:2])}"

    @staticmethod
    def for_file(path: Path) -> OracleLibrary:
        """Return the one for a model file. Raises NoAnswer: it is not installed."""
        name: Oracle = "onnxruntime" if path.suffix.lower() == ".onnx" else "LiteRT"
        module, package = _PACKAGES[name]
        try:
            if importlib.util.find_spec(module) is None:
                raise ImportError
            return OracleLibrary(name, importlib.metadata.version(package))
        except ImportError:
            raise NoAnswer(f"{package} is not installed: pip install {package}") from None

    def answers(
        self, graph: Graph, path: Path, samples: Sequence[dict[str, Array]], seconds: int
    ) -> list[dict[str, Array]]:
        """Return the tensors of a graph that the library computes, by name, for each sample.

        They are kept in the cache.

        Args:
            graph: that covp made of the file.
            path: of the file.
            samples: values of the inputs by name, in the graph's order.
            seconds: of processor time that it may take.

        Raises:
            NoAnswer: it does not know an operator, fails, or takes longer.
        """
        key = self._key(graph, path, samples)
        data = load(_KIND, key)
        if data is None:
            data = self._run(graph, path, samples, seconds)
            if len(data) <= _MOST_KEPT:
                store(_KIND, key, data)
        return _read(data, graph, len(samples))

    def _key(self, graph: Graph, path: Path, samples: Sequence[dict[str, Array]]) -> str:
        constants = (t.data for t in graph.tensors() if t.data is not None)
        sums = [zlib.crc32(np.ascontiguousarray(data).tobytes()) for data in constants]
        values = [value.tobytes() for sample in samples for value in sample.values()]
        try:
            content = path.read_bytes()
        except OSError as error:
            raise NoAnswer(f"{path}: cannot be read: {error.strerror}") from None
        names = json.dumps([*(t.name for t in graph.tensors()), *(map(list, samples)), sums])
        return content_key(_WORKER.read_bytes(), self.name, self.version, names, content, *values)

    def _run(
        self, graph: Graph, path: Path, samples: Sequence[dict[str, Array]], seconds: int
    ) -> bytes:
        here = os.getcwd()
        wanted = {
            "engine": self.name,
            "model": str(path.resolve()),
            "names": [tensor.name for tensor in graph.tensors() if tensor.data is None],
            "inputs": list(samples[0]),
            "samples": len(samples),
            "seconds": seconds,
            "path": [p for p in sys.path if os.path.isabs(p) and os.path.realpath(p) != here],
        }
        given = {
            f"{number}.{position}": value
            for number, sample in enumerate(samples)
            for position, value in enumerate(sample.values())
        }
        stream = io.BytesIO()
        np.savez(stream, **given)  # type: ignore[arg-type]
        # isolated: nothing is imported from the current folder
        command = [sys.executable, "-I", str(_WORKER)]
        text = json.dumps(wanted).encode() + b"\n" + stream.getvalue()
        done = subprocess.run(command, input=text, capture_output=True, check=False)
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        if done.returncode < 0:
            late = -done.returncode in (9, 24)  # SIGKILL, SIGXCPU
            said = f"took more than {seconds} s of processor time" if late else ""
            said = said or f"ended with signal {-done.returncode}"
        raise NoAnswer(f"{self}: {said[:300] or f'ended with status {done.returncode}'}")


def _read(data: bytes, graph: Graph, samples: int) -> list[dict[str, Array]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        said = json.loads(file["said"].tobytes())
        names = said["names"]
        found = [
            {name: file[f"{n}.{i}"] for i, name in enumerate(names) if f"{n}.{i}" in file}
            for n in range(samples)
        ]
    if said["outputs"] == len(graph.outputs):  # one that is an input has another name here
        for values in found:
            pairs = zip(graph.outputs, names, strict=False)
            values |= {t.name: values[name] for t, name in pairs if name in values}
    return found
