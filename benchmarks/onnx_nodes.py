"""The onnx package's own tests of single operators, executed on emulated cores.

    python benchmarks/onnx_nodes.py [--match REGEX] [--platform NAME ...] [--json FILE]
    python benchmarks/onnx_nodes.py --models [--json FILE]
    python benchmarks/onnx_nodes.py --page [--check]

Each test goes through `covp.testing.onnx_backend.Backend`: read, compiled, executed; the outputs
are compared as onnx's own runner compares them. A test that covp rejects counts as failed. Without
--match all of them run (minutes); --models runs the package's models of several operators instead;
--page writes docs/onnx-operators.md from the JSON files in benchmarks/results, --check only says
whether it is what they give.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).with_name("results") / "onnx_nodes.json"
MODELS = DATA.with_name("onnx_models.json")
PAGE = ROOT / "docs" / "onnx-operators.md"
PLATFORMS = {"riscv32": "RV32IMC", "mps2-an386": "Cortex-M4"}
OTHERS = {"emx-onnx-cgen 1.4.0, C on the host": 460, "onnxruntime 1.31.1, on the host": 430}
"""Tests that others pass of the same 480 (onnx 1.23.2)."""
_LISTED = """
Conv ConvInteger QLinearConv QLinearMatMul MatMulInteger QuantizeLinear DequantizeLinear
DynamicQuantizeLinear Gemm MatMul BatchNormalization LayerNormalization AveragePool MaxPool
GlobalAveragePool Relu LeakyRelu PRelu Clip HardSigmoid HardSwish Sigmoid Tanh Softmax Gelu Erf
Add Sub Mul Div Pow Sqrt ReduceMean ReduceSum ReduceMax Transpose Reshape Flatten Squeeze
Unsqueeze Concat Split Slice Gather Pad Resize ConvTranspose LSTM GRU RNN ArgMax Where Expand
Tile DepthToSpace SpaceToDepth Attention RotaryEmbedding
"""
OPERATORS = frozenset(_LISTED.split())
SUITES = {
    "simple": "single operators and small graphs, most of them of sequences or strings",
    "pytorch-converted": "layers of PyTorch's own tests",
    "pytorch-operator": "functions of PyTorch's own tests",
}
"""The package's tests that are files, with what they are."""
TYPES = frozenset(("FLOAT", "INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL"))
"""Of the tensors that go in and come out: what microcontrollers compute with."""
Row = dict[str, Any]


@cache
def node_tests() -> dict[str, Any]:
    """The tests by name: one node of `OPERATORS`, tensors of `TYPES` only."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package computes what it expects while it loads
        return {test.name: test for test in load_model_tests(kind="node") if _counts(test)}


@cache
def model_tests() -> dict[str, Any]:
    """The tests that are files, by suite and name."""
    from onnx.backend.test.loader import load_model_tests

    return {f"{s}/{test.name}": test for s in SUITES for test in load_model_tests(kind=s)}


def operator_of(test: Any) -> str:
    """The operator that a test is for."""
    return str(test.model.graph.node[0].op_type)


def _counts(test: Any) -> bool:
    import onnx

    graph = test.model.graph
    if len(graph.node) != 1 or graph.node[0].op_type not in OPERATORS:
        return False
    allowed = {onnx.TensorProto.DataType.Value(name) for name in TYPES}
    return all(
        value.type.WhichOneof("value") == "tensor_type"
        and value.type.tensor_type.elem_type in allowed
        for value in (*graph.input, *graph.output)
    )


def run_test(name: str, platform: str) -> Row:
    """One test on one core: whether it passed, its instructions, or why it failed."""
    from onnx.backend.test.runner import Runner

    from covp.compilers.toolchain import get_toolchain
    from covp.testing.onnx_backend import Backend

    suite, _, short = name.rpartition("/")
    test = model_tests()[name] if suite else node_tests()[name]
    row: Row = {"test": short, "operator": suite or operator_of(test), "platform": platform}
    try:
        model, data_sets = (test.model, test.data_sets) if not suite else _files(test)
        prepared = Backend.prepare(model, platform)
        row["compiler"] = get_toolchain("zig", prepared.program.platform.core).version
        for inputs, expected in data_sets:
            found = prepared.run([_array(value) for value in inputs])
            wanted = [_array(value) for value in expected]
            Runner.assert_similar_outputs(wanted, found, test.rtol, test.atol)
    except Exception as error:  # whatever goes wrong, the test failed
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return {**row, "passed": False, "instructions": None, "reason": text[:300]}
    assert prepared.profile is not None
    return {**row, "passed": True, "instructions": prepared.profile.instructions}


def _array(value: Any) -> Any:
    import onnx

    is_proto = isinstance(value, onnx.TensorProto)
    return onnx.numpy_helper.to_array(value) if is_proto else value


def _files(test: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """The model of a folder, with its inputs and outputs."""
    import onnx

    folder = Path(test.model_dir)
    data_sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        values = [
            [
                onnx.TensorProto.FromString((data / f"{kind}_{number}.pb").read_bytes())
                for number in range(len(list(data.glob(f"{kind}_*.pb"))))
            ]
            for kind in ("input", "output")
        ]
        data_sets.append((values[0], values[1]))
    return onnx.load(folder / "model.onnx"), data_sets


def run_all(names: Sequence[str], platforms: Sequence[str], jobs: int) -> list[Row]:
    """The rows of all tests, in the order of their names."""
    rows: list[Row] = []
    _ = node_tests(), model_tests()  # once, before the processes start
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for platform in platforms:
            rows += pool.map(partial(run_test, platform=platform), names, chunksize=4)
    return sorted(rows, key=lambda row: (row["operator"], row["test"], row["platform"]))


def score(rows: Sequence[Row], others: Mapping[str, int]) -> str:
    """Passed of all on each core, beside what others pass."""
    lines = []
    for platform in dict.fromkeys(row["platform"] for row in rows):
        mine = [row["passed"] for row in rows if row["platform"] == platform]
        lines.append(f"{platform}: {sum(mine)} of {len(mine)}")
    return "; ".join([*lines, *(f"{who}: {number} of 480" for who, number in others.items())])


def page(rows: Sequence[Row], models: Sequence[Row]) -> str:
    """docs/onnx-operators.md."""
    operators = sorted({row["operator"] for row in rows}, key=str.lower)
    by_name: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault((row["operator"], row["test"]), {})[row["platform"]] = row
    lines = [_HEAD, f"| operator | {' | '.join(PLATFORMS.values())} |", "|---|---:|---:|"]
    for operator in operators:
        mine = [cells for (kind, _), cells in by_name.items() if kind == operator]
        passed = [sum(cells[p]["passed"] for cells in mine) for p in PLATFORMS]
        lines.append(f"| {operator} | " + " | ".join(f"{n}/{len(mine)}" for n in passed) + " |")
    totals = [sum(cells[p]["passed"] for cells in by_name.values()) for p in PLATFORMS]
    lines.append("| **all** | " + " | ".join(f"**{n}/{len(by_name)}**" for n in totals) + " |")
    lines += [f"| {who} | {n}/480 | |" for who, n in OTHERS.items()]
    lines += ["", "## Files", "", _FILES, "", f"| tests | {' | '.join(PLATFORMS.values())} |"]
    lines.append("|---|---:|---:|")
    for suite, what in SUITES.items():
        rows_of = [row for row in models if row["operator"] == suite]
        counts = [[row["passed"] for row in rows_of if row["platform"] == p] for p in PLATFORMS]
        shown = " | ".join(f"{sum(passed)}/{len(passed)}" for passed in counts)
        lines.append(f"| {suite}: {what} | {shown} |")
    lines += ["", "## Instructions of each test", ""]
    lines += [f"| operator | test | {' | '.join(PLATFORMS.values())} |", "|---|---|---:|---:|"]
    for (operator, name), cells in sorted(by_name.items(), key=lambda item: item[0][0].lower()):
        figures = " | ".join(_figure(cells[platform]) for platform in PLATFORMS)
        lines.append(f"| {operator} | {name.removeprefix('test_')} | {figures} |")
    lines += ["", "## Tests that fail", ""]
    failed = {(r["test"], r["reason"]) for r in (*rows, *models) if not r["passed"]}
    lines += [f"- `{name}`: {reason.replace('|', '/')}" for name, reason in sorted(failed)]
    return "\n".join([*lines, *([] if failed else ["None."])]) + "\n"


def _figure(row: Row) -> str:
    return f"{row['instructions']:,}" if row["passed"] else "fails"


_HEAD = f"""# ONNX operators

The onnx package's own tests of single operators, all whose tensors are float32, int8, uint8, int16,
int32, int64 or bool, of the {len(OPERATORS)} operators that networks for microcontrollers have.
Each is read, compiled and executed on the emulated core; what comes out is compared as onnx's own
runner does (relative tolerance 1e-3). A test that covp rejects counts as failed. Written by
`python benchmarks/onnx_nodes.py --json benchmarks/results/onnx_nodes.json`, then `--page`.

## Tests passed
"""
_FILES = """The package's models that are files, counted likewise (`--models`): of all types,
sequences and strings included. What needs more memory than the platform has fails as well."""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--match", default="", help="only tests whose operator/name matches")
    parser.add_argument("--platform", action="append", help="default: both")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--models", action="store_true", help="the tests that are files")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.page or options.check:
        found = [json.loads(file.read_text(encoding="utf-8"))["rows"] for file in (DATA, MODELS)]
        text = page(*found)
        if options.page and not options.check:
            PAGE.write_text(text, encoding="utf-8")
        elif PAGE.read_text(encoding="utf-8") != text:
            print(f"{PAGE.name} is not what {DATA.name} gives; run --page")
            return 1
        return 0
    tests = model_tests() if options.models else node_tests()
    paths = {n: n if options.models else f"{operator_of(t)}/{n}" for n, t in tests.items()}
    print(f"{len(tests)} tests of {len({p.split('/')[0] for p in paths.values()})} kinds")
    names = [name for name, path in paths.items() if re.search(options.match, path)]
    rows = run_all(sorted(names), options.platform or list(PLATFORMS), options.jobs)
    for row in rows:
        if not row["passed"]:
            print(f"FAILED {row['operator']}/{row['test']} on {row['platform']}: {row['reason']}")
    print(score(rows, {} if options.models else OTHERS))
    if options.json:
        from document import write_document

        write_document(options.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
