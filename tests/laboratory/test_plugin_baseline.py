"""Kernels against stored figures: what became slower or larger fails the run."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from covp import Session
from covp.testing import Kernel

from .project import DOT, Project

TESTS = """
@pytest.mark.parametrize("n", [0, 3, 50])
def test_dot(kernel, n):
    a = np.arange(n, dtype=np.int8)
    assert kernel("dot.c", "dot")(a, a, n) == (a.astype(int) ** 2).sum()
@settings(max_examples=30)
@example(4)
@given(st.integers(0, 60))
def test_ramp(kernel, n):
    a = np.zeros(n, np.int8)
    kernel("dot.c", "ramp")(a, n)
    assert np.array_equal(a, np.arange(n))
@pytest.mark.covp_random
def test_count(kernel):
    for _ in range(np.random.default_rng().integers(1, 9)):
        kernel("dot.c", "count")()
def test_fails(kernel):
    kernel("dot.c", "count")()
    assert False
@pytest.mark.xfail
def test_expected(kernel):
    kernel("dot.c", "count")()
    assert False
"""
SLOWER = DOT.replace("sum += a[i] * b[i];", '{ sum += a[i] * b[i]; __asm__ volatile("nop"); }')
TWO = ("--covp-platform", "riscv32", "--covp-platform", "cortex-m0plus")


@pytest.fixture
def project(tmp_path):
    found = Project(tmp_path)
    found.test(TESTS)
    return found


def content(project, name="kernels.json"):
    return json.loads((project.folder / name).read_text())["kernels"]


@pytest.mark.costly
def test_figures_are_those_of_the_calls_in_any_order_and_process(project):
    options = (*TWO, "--covp-update", "--covp-baseline")
    project.run(*options, "kernels.json", "--hypothesis-seed=1")
    project.run(*options, "two.json", "--hypothesis-seed=2", "-n", "2")
    first, second = content(project), content(project, "two.json")
    assert first == second
    assert sorted(first) == ["dot.c::count", "dot.c::dot", "dot.c::ramp"]
    with Session("riscv32") as session:
        module = session.load_c(project.folder / "dot.c")
        dot, ramp = Kernel(module["dot"]), Kernel(module["ramp"])
        a = session.tensor(range_of(50))
        dot(a, a, 50)
        at = {"calls": 1, "code_bytes": dot.code_bytes, "cycles": dot.latest.cycles}
        at["instructions"] = dot.latest.instructions
        assert first["dot.c::dot"]["riscv32"]["test_it.py::test_dot[riscv32-50]"] == at
        ramp(a, 4)
        drawn = first["dot.c::ramp"]["riscv32"]["test_it.py::test_ramp[riscv32]"]
        assert drawn["calls"] == 1 and drawn["instructions"] == ramp.latest.instructions
    by_test = first["dot.c::count"]["riscv32"]
    assert by_test.keys() == {"test_it.py::test_count[riscv32]"}
    assert by_test["test_it.py::test_count[riscv32]"].keys() == {"code_bytes"}


@pytest.mark.costly
def test_cycles_that_depend_on_addresses_are_not_compared(project):
    with_caches = ("--covp-platform", "nucleo-l4r5zi", "-k", "test_dot")
    run = project.run(*with_caches, "--covp-baseline", "b.json", "--covp-update")
    stored = content(project, "b.json")["dot.c::dot"]["nucleo-l4r5zi"]
    assert len(stored) == 3
    assert all(test.keys() == {"calls", "code_bytes", "instructions"} for test in stored.values())
    assert re.search(r"nucleo-l4r5zi +3 +\d+ +\d+ +\d+\n", run.out)


def range_of(n):
    import numpy as np

    return np.arange(n, dtype=np.int8)


@pytest.mark.costly
def test_a_slower_kernel_fails_the_run_with_one_line(project):
    passing = TESTS[: TESTS.index("def test_fails")]
    project.test(passing)
    assert project.run(*TWO, "--covp-baseline", "b.json", "--covp-update").status == 0
    stored = (project.folder / "b.json").read_text()
    project.write("dot.c", SLOWER)
    files = ("--covp-summary", "s.md", "--junitxml", "j.xml")
    run = project.run(*TWO, "--covp-baseline", "b.json", *files)
    assert run.status == 1 and set(run.outcomes.values()) == {"PASSED"}
    assert (project.folder / "b.json").read_text() == stored
    worse = run.out.partition("worse than the baseline")[2].splitlines()[1:3]
    for line, platform in zip(worse, ("cortex-m0plus", "riscv32"), strict=True):
        found = re.match(
            rf"dot\.c::dot on {platform}: instructions (\d+) -> (\d+) \(\+(\d+\.\d) %\)", line
        )
        assert found, run.out
        old, new, percent = int(found[1]), int(found[2]), float(found[3])
        assert new > old and percent == pytest.approx(100 * (new - old) / old, abs=0.06)
    summary = (project.folder / "s.md").read_text()
    assert "**2 worse than the baseline**" in summary
    assert summary.count("\n| ") == 1 + 6 and summary.count("| none |") == 4
    properties = {
        (case.get("name"), each.get("name")): each.get("value")
        for case in ET.parse(project.folder / "j.xml").iter("testcase")
        for each in case.iter("property")
    }
    name = "test_it.py::test_dot[riscv32-50]"
    before = json.loads(stored)["kernels"]["dot.c::dot"]["riscv32"][name]["instructions"]
    now = properties["test_dot[riscv32-50]", "covp.riscv32.dot.c::dot.instructions"]
    assert now == str(before + 50)
    new = json.loads(stored)
    new["kernels"]["dot.c::dot"]["riscv32"][name]["instructions"] = int(now) - 1
    del new["kernels"]["dot.c::dot"]["cortex-m0plus"]
    project.write("c.json", json.dumps(new))
    options = ("-k", "test_dot and riscv32-50", "--covp-baseline", "c.json")
    assert project.run(*options, "--covp-threshold", "0").status == 1
    assert project.run(*options, "--covp-threshold", "50").status == 0


@pytest.mark.costly
def test_what_did_not_run_stays_and_what_is_new_or_changed_passes(project):
    project.test("def test_dot(kernel): kernel('dot.c', 'dot')(None, None, 0)\n", "test_more.py")
    project.run("-k", "test_dot", "--covp-baseline", "b.json", "--covp-update")
    project.run("-k", "test_ramp", "--covp-baseline", "b.json", "--covp-update")
    stored = content(project, "b.json")
    tests = stored["dot.c::dot"]["riscv32"]
    assert len(tests) == 4 and "test_more.py::test_dot[riscv32]" in tests
    assert stored.keys() == {"dot.c::dot", "dot.c::ramp"}
    # other work, another number of calls: not comparable; and a kernel that was not there
    twice = "kernel('dot.c', 'dot')(None, None, 0), kernel('dot.c', 'dot')(None, None, 0)"
    new = "def test_new(kernel): kernel('int one(void) { return 1; }', 'one')()\n"
    project.test(f"def test_dot(kernel): {twice}\n{new}", "test_more.py")
    run = project.run("test_more.py", "--covp-baseline", "b.json")
    assert run.status == 0
    assert re.search(r"dot\.c::dot +riscv32 +2 .* other calls in 1 test: not compared", run.out)
    assert re.search(r"test_more\.py::one +riscv32 +1 .* new", run.out)


@pytest.mark.costly
def test_mistakes_in_options_are_one_line(project):
    project.write("list.json", "[]")
    project.write("cut.json", '{"schema": "covp.kernels/1", "kern')
    project.write("old.json", '{"schema": "covp.kernels/1", "kernels": {"f": {"riscv32": 3}}}')
    text = '{"schema": "covp.kernels/1", "kernels": {"f": {"p": {"t": {"cycles": "1"}}}}}'
    project.write("text.json", text)
    cases = {
        ("--covp-platform", "riscv23"): "did you mean riscv32?",
        ("--covp-platform", "riscv32:rlt"): "unknown device 'rlt': did you mean rtl?",
        ("--covp-platform", ":rtl"): "is not of the form NAME[:DEVICE]",
        ("--covp-baseline", "no.json"): "no.json: there is no such baseline; --covp-update",
        ("--covp-baseline", "list.json"): "list.json: not a baseline of kernels",
        ("--covp-baseline", "cut.json"): "cut.json: cannot be read as a baseline",
        ("--covp-baseline", "old.json"): "old.json: f, riscv32: must be a JSON object",
        ("--covp-baseline", "text.json"): "text.json: t: 'cycles' is not a figure of a kernel",
        ("--covp-baseline", "no/b.json", "--covp-update"): "a folder that exists",
        ("--covp-update",): "name the file to write with --covp-baseline FILE",
        ("--covp-threshold", "nan"): "--covp-threshold nan: must be a number",
        ("--covp-coverage", "c.txt"): "must end in .info (lcov) or .xml (Cobertura)",
        ("--covp-baseline", "b.json", "--covp-update", "--covp-ubsan"): "--covp-ubsan are",
    }
    for status, out, line in zip(*project.starts(cases), cases.values(), strict=True):
        assert status == 4, out
        assert out.startswith("ERROR: ") and line in out and out.count("\n") == 1, out
