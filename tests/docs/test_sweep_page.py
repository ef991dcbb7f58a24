"""docs/sweep.md: its file is a sweep, its schema is the code's, its tables name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import yaml

from covp.exploration.sweep.reader import make_spec
from covp.exploration.sweep.space import Space, expand
from covp.exploration.sweep.spec import Kind, Spec, schema

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sweep.md").read_text(encoding="utf-8")


def test_the_schema_file_is_the_one_of_the_code() -> None:
    assert json.loads((DOCS / "assets" / "sweep.schema.json").read_text()) == schema()


def test_the_file_has_the_designs_that_the_page_says() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)
    spec = make_spec(yaml.safe_load(text))
    sizes = {each.accelerators: each.size for each in Space(spec).combinations}
    assert sizes == {(): 2, ("qconv2d",): 6, ("gemm:size=16",): 2}
    assert len(expand(spec)) == 2 * 2 * 10


def test_keys_and_kinds_are_described() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M))
    assert {field.name for field in msgspec.structs.fields(Spec)} <= named
    assert set(get_args(Kind)) <= named
