"""Coverage, checks for undefined behaviour and other devices in the pytest plugin."""

import shutil
import xml.etree.ElementTree as ET

import pytest

from tests.device.rtl.conftest import need_rtl

from .project import DOT, Project

TESTS = """
@pytest.mark.parametrize("n", [0, 3, 50])
def test_dot(kernel, n):
    a = np.arange(n, dtype=np.int8)
    assert kernel("dot.c", "dot")(a, a, n) == (a.astype(int) ** 2).sum()
@settings(max_examples=5, derandomize=True)
@given(st.integers(0, 60))
def test_count(kernel, n):
    assert kernel("dot.c", "count")() == 1
"""


@pytest.fixture
def project(tmp_path):
    found = Project(tmp_path)
    found.test(TESTS)
    return found


@pytest.mark.costly
def test_coverage_is_that_of_all_examples_platforms_and_processes(project):
    platforms = ("--covp-platform", "riscv32", "--covp-platform", "cortex-m4")
    for name, options in {"c.info": (), "c.xml": ("-n", "2")}.items():
        run = project.run(*platforms, "--covp-coverage", name, *options)
        assert run.status == 0 and "coverage written" in run, run.out
    lcov = [line.partition(":") for line in (project.folder / "c.info").read_text().splitlines()]
    calls = dict(reversed(rest.split(",")) for key, _, rest in lcov if key == "FNDA")
    assert calls == {"dot": "6", "count": "10", "ramp": "0"}
    lines = ET.parse(project.folder / "c.xml").iterfind(".//class/lines/line")
    hits = {line.get("number"): line.get("hits") for line in lines}
    assert hits == dict(rest.split(",") for key, _, rest in lcov if key == "DA")
    assert hits[str(DOT.splitlines().index("int32_t count(void) { return ++calls; }") + 1)] == "10"


@pytest.mark.costly
def test_undefined_behaviour_is_found(project):
    project.test(
        """
def test_sum(kernel):
    add = kernel("int add(int a, int b) { return a + b; }", "add")
    assert add(2, 3) == 5
    add(2**31 - 1, 1)
"""
    )
    run = project.run("--covp-ubsan", "--covp-platform", "cortex-m4")
    assert run.status == 1
    assert "undefined behaviour" in run and "signed integer overflow: 2147483647 + 1" in run


@pytest.mark.costly
@pytest.mark.parametrize(
    "device", ["qemu-riscv32:gdb:qemu", pytest.param("picorv32:rtl", marks=pytest.mark.slow)]
)
def test_other_devices(project, device):
    if device.endswith("rtl"):
        need_rtl("picorv32")
    elif not shutil.which("qemu-system-riscv32"):
        pytest.skip("QEMU is not installed")
    run = project.run("--covp-platform", device)
    assert run.status == 0, run.out
    assert set(run.outcomes) == {
        f"{test}[{device}{rest}]"
        for test, rest in [("test_count", ""), *(("test_dot", f"-{n}") for n in (0, 3, 50))]
    }
