"""Documents of runs, written and read back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from covp.evaluation.documents import Compare, Run, Survey
from tests.plain import plain

OLD: dict[str, Any] = {
    "schema": "covp.run/1", "model": "kws", "platform": "riscv32", "device": "virtual:x",
    "toolchain": "zig 0.17.0", "accelerators": ["gemm"], "instructions": 10, "cycles": None,
    "seconds": None, "matches_reference": True,
    "memory": {"flash_bytes": 3, "ram_bytes": 4, "arena_bytes": 2},
    "layers": [
        {"index": 0, "name": "a", "op": "ADD", "target": "cpu", "macs": 25},
        {"index": 1, "name": "b", "op": "CONV_2D", "target": "gemm", "macs": 75},
    ],
}  # fmt: skip
"""The keys of the first version of the schema."""


def test_what_is_written_is_read_back() -> None:
    run = msgspec.convert(OLD, Run)
    assert msgspec.convert(plain(run), Run) == run
    row = {"cpu": OLD, "accelerated": OLD}
    for document, kind in (
        ({"schema": "covp.compare/1", "rows": [row]}, Compare),
        ({"schema": "covp.survey/1", "rows": [{"run": OLD}, {"run": None}]}, Survey),
    ):
        found = msgspec.convert(document, kind)
        assert msgspec.convert(plain(found), kind) == found


def test_an_older_document_has_what_was_planned() -> None:
    run = msgspec.convert(OLD, Run)
    assert run.coverage == 0.75 and run.units == [] and run.core is None
    assert run.title == "kws on riscv32 with gemm (virtual:x)"
    reported = msgspec.convert(OLD | {"mac_coverage": None}, Run)
    assert reported.coverage is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "covp.run/2"),
        ("instructions", -1),
        ("layers", [{}]),
        ("memory", {}),
        ("model", 1),
    ],
)
def test_what_is_no_document_is_refused(key: str, value: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(OLD | {key: value}, Run)


def test_the_schema_of_a_run_names_its_keys() -> None:
    schema = msgspec.json.schema(Run)
    keys = schema["$defs"]["Run"]["properties"]
    today = plain(msgspec.convert(OLD | {"mac_coverage": None}, Run))
    assert list(keys) == [*today, "refusals", "alternatives"]
