"""The tables of docs/json.md, and JSON schemas, of the structures that commands print.

    python benchmarks/json_page.py              # write the tables into docs/json.md
    python benchmarks/json_page.py --check      # 1 where they are not what the structures say
    python benchmarks/json_page.py --schema covp.run/1

A key's type and unit are its annotation, its meaning stands in the docstring of its structure.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import inspect as types

from covp.cli.failures import Failure
from covp.cli.lists import CacheState, Lists
from covp.evaluation import documents, further_documents, show
from covp.evaluation.calibration.document import Calibrated
from covp.evaluation.reproduce import Reproduced
from covp.exploration.sweep.points import SweepDocument
from covp.exploration.sweep.status import StatusDocument
from covp.firmware.document import BoardServed, Exported, StationServed
from covp.firmware.multicore.document import Multicore
from covp.testing.bisect import Verdict
from covp.testing.core_check import CoreChecked

PAGE = Path(__file__).resolve().parents[1] / "docs" / "json.md"
DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "covp.run/1": documents.Run,
    "covp.compare/1": documents.Compare,
    "covp.survey/1": documents.Survey,
    "covp.check/1": documents.Checked,
    "covp.fits/1": further_documents.Fitting,
    "covp.tune/1": further_documents.Tuned,
    "covp.verify/1": further_documents.Verified,
    "covp.bisect/1": Verdict,
    "covp.calibrate/1": Calibrated,
    "covp.calibrate-unit/1": further_documents.CalibratedUnit,
    "covp.core-check/1": CoreChecked,
    "covp.multicore/1": Multicore,
    "covp.reproduce/1": Reproduced,
    "covp.export/1": Exported,
    "covp.board/1": BoardServed,
    "covp.station/1": StationServed,
    "covp.mlperf/1": further_documents.Mlperf,
    "covp.show/1": show.Shown,
    "covp.sweep/1": SweepDocument,
    "covp.sweep-status/1": StatusDocument,
    "covp.cache/1": CacheState,
    "Lists": Lists,
    "covp.error/1": Failure,
}
"""Structures by the name of their schema."""
_HEAD = "| key | type | unit | meaning |\n|---|---|---|---|\n"
_PLAIN = {
    types.StrType: "string", types.IntType: "integer", types.FloatType: "number",
    types.BoolType: "boolean", types.NoneType: "null", types.AnyType: "any",
    types.LiteralType: "string",
}  # fmt: skip


def main() -> int:
    """Write the page, or say what is not as it would be written."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--schema", choices=DOCUMENTS, help="print its JSON schema instead")
    given = parser.parse_args()
    if given.schema:
        print(json.dumps(msgspec.json.schema(DOCUMENTS[given.schema]), indent=1))
        return 0
    old = PAGE.read_text(encoding="utf-8")
    new = page(old)
    if given.check:
        return int(old != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


def page(text: str) -> str:
    """Return the page with its first table under each heading of `DOCUMENTS` written anew."""
    for schema, kind in DOCUMENTS.items():
        start = text.index(f"\n## {schema}\n")
        first = text.index(_HEAD, start)
        end = re.compile(r"^(?!\|)", re.M).search(text, first)
        assert end is not None
        rows = [f"| `schema` | string | | `{schema}` |\n", *_rows(kind)]
        if kind is Lists:  # each is printed by itself
            rows = [row for row in rows if "[]" in row]
        text = text[:first] + _HEAD + "".join(rows) + text[end.start() :]
    return text


def _rows(kind: type, prefix: str = "") -> Iterator[str]:
    """Yield a row for each key of a structure, and of those within it."""
    said = meanings(kind)
    info = types.type_info(kind)
    assert isinstance(info, types.StructType | types.DataclassType)
    for field in info.fields:
        key = f"{prefix}{field.encode_name}"
        unit, inner = _unit(field.type)
        cells = (f"`{key}`", _text(inner), unit or _usual(field.name), said.get(field.name, ""))
        yield "| " + " | ".join(cells).replace("  ", " ").rstrip() + " |\n"
        yield from _inside(inner, key)


def _usual(name: str) -> str:
    """Return the unit that a name says, of structures that are no documents by themselves."""
    if re.search(r"^bytes_|_bytes$|^bytes$", name):
        return "bytes"
    return "core cycles" if name.endswith("cycles") else ""


def _inside(kind: types.Type, key: str) -> Iterator[str]:
    """Yield the rows of what a key holds: of structures, lists and dicts of them."""
    for one in _members(kind):
        _, inner = _unit(one)
        if isinstance(inner, types.StructType | types.DataclassType):
            if _schema(inner) is None:
                yield from _rows(inner.cls, f"{key}.")
        elif isinstance(inner, types.ListType | types.VarTupleType):
            yield from _inside(inner.item_type, f"{key}[]")
        elif isinstance(inner, types.DictType):
            unit, value = _unit(inner.value_type)
            cells = (f"`{key}.<name>`", _text(value), unit, "")
            yield "| " + " | ".join(cells).replace("  ", " ").rstrip() + " |\n"
            yield from _inside(value, f"{key}.<name>")


def _members(kind: types.Type) -> tuple[types.Type, ...]:
    return kind.types if isinstance(kind, types.UnionType) else (kind,)


def _unit(kind: types.Type) -> tuple[str, types.Type]:
    """Return the unit of a type, and the type without it."""
    unit = ""
    while isinstance(kind, types.Metadata):
        unit = (kind.extra or {}).get("unit", unit)
        kind = kind.type
    for one in _members(kind):
        if isinstance(one, types.Metadata):
            unit = unit or _unit(one)[0]
    return unit, kind


def _text(kind: types.Type) -> str:
    """Return a type in words, null last."""
    found = dict.fromkeys(_word(_unit(one)[1]) for one in _members(kind))
    if "number" in found:
        found.pop("integer", None)
    ends = ("string", "null")  # and lists, whose elements may be of several types
    order = sorted(found, key=lambda word: (word.startswith("list"), word in ends, word == "null"))
    return " or ".join(order)


def _word(kind: types.Type) -> str:
    if isinstance(kind, types.ListType | types.VarTupleType):
        return f"list of {_text(_unit(kind.item_type)[1])}"
    if isinstance(kind, types.StructType | types.DataclassType):
        return _schema(kind) or "object"
    return _PLAIN.get(type(kind), "object")


def _schema(kind: types.Type) -> str | None:
    """Return the name of a document of its own."""
    cls = getattr(kind, "cls", None)
    return next((name for name, one in DOCUMENTS.items() if one is cls), None)


def meanings(kind: type) -> dict[str, str]:
    """Return what a structure's docstring says of each attribute, on one line."""
    inherited = kind.__base__ if issubclass(kind.__base__ or object, msgspec.Struct) else None
    found = {} if inherited in (None, msgspec.Struct) else meanings(inherited)
    _, _, listed = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    for names, said in re.findall(r"^    ([\w, ]+): (.*(?:\n      .*)*)", listed, re.M):
        line = " ".join(said.split()).removesuffix(".").replace("; None: ", "; null: ")
        line = re.sub(r"\bNone where\b", "null where", line)
        line = re.sub(r"(`[^`]+`|[^\s(]+) \(`([\w-]+\.md[^`]*)`\)", r"[\1](\2)", line)
        for name in names.split(", "):
            found[name] = line
    return found


if __name__ == "__main__":
    sys.exit(main())
