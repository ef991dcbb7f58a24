"""The fixtures and markers of the pytest plugin, in projects of a user."""

import pytest

from covp.chip.cores import find_core
from covp.chip.platform_file import load_platform

from .project import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.mark.costly
def test_a_kernel_is_called_with_arrays_on_each_platform(project):
    project.test(
        """
import covp
def test_dot(kernel, covp_device, covp_session):
    dot = kernel("dot.c", "dot")
    a = np.array([1, 2, 3], np.int8)
    assert dot(a, a, 3) == 14
    assert kernel("dot.c", "dot") is dot
    assert covp_session is dot.session and isinstance(covp_session, covp.Session)
    assert covp_session.platform.name == covp_device.platform
    print("ran on", covp_device)
class TestOfText:
    def test_text(self, kernel):
        ramp = kernel('#include "lib.h"\\nint twice(int n) { return FACTOR * n; }', "twice",
                      flags=["-DFACTOR=2"], include=["lib"])
        assert ramp(21) == 42
@pytest.mark.parametrize("covp_device", ["cortex-m0plus"], indirect=True)
def test_own_choice(covp_session):
    assert covp_session.platform.core.name == "cortex-m0plus"
"""
    )
    project.write("lib/lib.h", "int twice(int n);\n")
    run = project.run("--covp-platform", "riscv32", "--covp-platform", "cortex-m4")
    assert run.status == 0, run.out
    assert sorted(run.outcomes) == [
        "TestOfText::test_text[cortex-m4]",
        "TestOfText::test_text[riscv32]",
        "test_dot[cortex-m4]",
        "test_dot[riscv32]",
        "test_own_choice[cortex-m0plus]",
    ]
    assert "ran on riscv32" in run and "ran on cortex-m4" in run
    assert "warning" not in run.out.lower()


STATE = """
loaded = []
@pytest.mark.parametrize("again", range(3))
def test_count(kernel, again):
    count = kernel("dot.c", "count")
    assert [count(), count()] == [1, 2]
def test_what_a_test_loads(covp_session):
    own = covp_session.load_c("int one(void) { return 1; }")
    loaded.append((own, covp_session.memory().flash_bytes))
    assert own["one"]().result() == 1
def test_is_unloaded(covp_session):
    for own, flash in loaded:
        assert not own.is_loaded and covp_session.memory().flash_bytes < flash
class TestOfClass:
    @settings(max_examples=20)
    @given(st.integers(0, 9))
    def test_drawn(self, kernel, n):
        assert kernel("dot.c", "ramp")(np.zeros(3, np.int8), 3) is None
        assert kernel("dot.c", "count")() == 1
        assert kernel("static int n; int once(void) { return ++n; }", "once")() == 1
"""
FIXTURES = """
@pytest.fixture(scope="module", autouse=True)
def primed(kernel):
    count = kernel("dot.c", "count")
    count(), count()
    return count
@pytest.fixture
def third(primed):
    assert primed() == 3
    yield primed
    assert primed() == 5
def test_of_file(primed):
    assert primed() == 3
def test_of_function(third):
    assert third() == 4
def test_of_file_again(primed):
    assert primed() == 3
@settings(max_examples=20)
@example(0)
@given(st.integers(0, 9))
def test_each_example(primed, kernel, n):
    assert primed() == 3
    assert kernel("int next(int n) { static int sum; return sum += n; }", "next")(n) == n
@given(st.integers(0, 9))
def test_not_of_a_function(third, n): ...
"""


@pytest.mark.costly
@pytest.mark.parametrize("device", [pytest.param("cortex-m4", marks=pytest.mark.slow), "riscv32"])
def test_the_device_is_put_back_between_tests_examples_and_files(project, device):
    """In any order: pytest-xdist distributes the tests as it likes."""
    project.test(STATE, "test_a.py")
    project.test(FIXTURES, "test_b.py")
    project.test(STATE, "test_c.py")
    for options in [("-n", "2"), ("--covp-sanitize",)]:
        run = project.run("--covp-platform", device, *options)
        wrong = {name for name, word in run.outcomes.items() if word != "PASSED"}
        # a function-scoped fixture under @given is rejected by Hypothesis, as it should be
        assert wrong == {f"test_not_of_a_function[{device}]"}, run.out
        assert "uses a function-scoped fixture" in run


@pytest.mark.costly
def test_features_that_a_core_has_not_got_are_skipped(project):
    project.test(
        """
@pytest.mark.covp_feature("fpu", "dsp")
def test_arm(covp_session): ...
@pytest.mark.covp_feature("riscv")
def test_riscv(covp_session): ...
@pytest.mark.covp_feature("fpuu")
def test_typing_error(covp_session): ...
"""
    )
    names = ("cortex-m4", "cortex-m0plus", "riscv32")
    run = project.run(*(word for name in names for word in ("--covp-platform", name)))
    passed = {name for name, word in run.outcomes.items() if word == "PASSED"}
    cores = {name: find_core(load_platform(name).core.name) for name in names}
    assert passed == {
        *(f"test_arm[{n}]" for n, core in cores.items() if core.features >= {"fpu", "dsp"}),
        *(f"test_riscv[{n}]" for n, core in cores.items() if core.architecture == "riscv"),
    }
    assert "cortex-m0plus (cortex-m0plus) has no fpu, dsp" in run
    assert run.out.count("covp_feature: unknown 'fpuu': did you mean fpu?") >= 3


@pytest.mark.costly
def test_mistakes_are_one_line(project):
    project.test(
        """
def test_no_file(kernel): kernel("dott.c", "dot")
def test_no_function(kernel): kernel("dot.c", "dott")
def test_not_c(kernel): kernel("int one(void) { return x; }", "one")
def test_flags(kernel): kernel("dot.c", "dot", flags="-O3")
def test_include(kernel): kernel("dot.c", "dot", include=3)
@pytest.mark.parametrize("covp_device", ["riscv32:rlt"], indirect=True)
def test_device(kernel): ...
def test_close(covp_session): covp_session.close()
def test_dtype(kernel): kernel("dot.c", "dot")(np.zeros(3, np.int16), np.zeros(3, np.int8), 3)
def test_read_only(kernel):
    a = np.zeros(3, np.int8)
    a.flags.writeable = False
    kernel("dot.c", "ramp")(a, 3)
def test_fault(kernel):
    kernel("int at(const int *p) { return *p; }", "at")(0xf0000000)
"""
    )
    run = project.run()
    lines = {
        "test_no_file": f"dott.c: there is no such C file in {project.folder}: did you mean dot.c?",
        "test_no_function": "dot.c has no function 'dott': did you mean dot?",
        "test_not_c": "module.c:1: use of undeclared identifier 'x'",
        "test_flags": "flags must",
        "test_include": "include must be a list, each the path of a folder, not 3",
        "test_device": "UsageError: unknown device 'rlt': did you mean rtl?",
        "test_close": "covp_session is closed by pytest; open a covp.Session(...) of your own",
        "test_dtype": "dot: argument a: const int8_t * does not fit a tensor of int16",
        "test_read_only": "ramp: argument a is not const in C, and its array is read-only",
        "test_fault": "unmapped read at address 0xf0000000 (4 bytes)",
    }
    expected = {f"{name}[riscv32]": "FAILED" for name in lines if name != "test_device"}
    assert run.outcomes == {**expected, "test_device[riscv32:rlt]": "ERROR"}
    assert "During handling" not in run
    for line in lines.values():
        assert line in run, run.out
    assert "covp/runtime" not in run


@pytest.mark.costly
def test_a_project_without_covp_pays_nothing(project):
    heavy = ["numpy", "unicorn", "elftools", "yaml", "rich", "click", "hypothesis", "covp.codegen"]
    project.write(
        "test_it.py",
        f"import sys\ndef test_mine(tmp_path):\n    assert not set(sys.modules) & set({heavy})\n",
    )
    run = project.run("-p", "no:hypothesispytest")
    assert run.status == 0 and run.outcomes == {"test_mine": "PASSED"}
    assert "covp:" not in run and "warning" not in run.out.lower()
