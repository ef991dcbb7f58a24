"""A failing example is printed as a test that can be pasted; placements of buffers."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import covp
from covp.errors import UsageError
from covp.laboratory.reproduction import reproduction
from covp.testing import Buffer, Kernel, placements

from .project import Project

TESTS = """
from covp.testing import arrays, problems, reproduce
LIMIT = 3
@pytest.mark.parametrize("scale", [1])
@given(arrays.arrays("int8", st.integers(0, 40)))
def test_short(kernel, scale, a):
    '''The dot product is wrong for long arrays.'''
    if len(a) >= LIMIT:
        a = np.append(a, np.int8(1))
    dot = kernel("dot.c", "dot")
    assert dot(a, a, len(a)) * scale == a[:LIMIT].astype(int) @ a[:LIMIT]
@given(problem=problems.fully_connected())
@reproduce
def test_host(problem):
    assert problem.input.shape[0] < 2
"""


@pytest.mark.costly
def test_the_printed_test_fails_in_the_same_way(tmp_path):
    project = Project(tmp_path)
    project.test(TESTS)
    run = project.run("--covp-platform", "riscv32")
    assert "FullyConnectedProblem(\n" in run and "    input=np.zeros(" not in run
    lines = r"((?:import .*\n|from .*\n|\n|def .*\n|    .*\n)+)"
    text = re.search(rf"test_short\S* as a test of its own -+\n{lines}", run.out)
    assert text, run.out
    assert (
        "def test_short_again(kernel):\n    a = np.array([0, 0, 0], np.int8)\n    scale = 1\n"
        in text[1]
    )
    assert "'''" not in text[1] and "from covp" not in text[1]
    plain = re.sub(r"^E {1,7}", "", run.out, flags=re.M)
    on_host = re.search(rf"As a test:\n{lines}", plain)
    assert on_host, run.out
    project.write("test_it.py", (tmp_path / "test_it.py").read_text() + text[1] + on_host[1])
    again = project.run("--covp-platform", "riscv32", "-k", "again")
    assert again.outcomes == {"test_short_again[riscv32]": "FAILED", "test_host_again": "FAILED"}
    assert "IndexError" not in again and "NameError" not in again


def test_a_function_without_source_is_called():
    names: dict[str, Any] = {}
    exec("def test_it(kernel, a): pass", names)
    text = reproduction(
        names["test_it"], {"a": np.array([1.5, np.nan], np.float32)}, {"kernel": 0.5j}
    )
    assert "a = np.array([1.5, np.nan], np.float32)\n" in text
    assert "test_it.hypothesis.inner_test(kernel=kernel, a=a)" in text
    compile(text, "pasted", "exec")


def test_placements_reach_every_address_that_the_alignment_has():
    seen: dict[tuple[str, int | None], set[int]] = {}
    with covp.Session("cortex-m0plus") as session:
        source = "#include <stdint.h>\nuint32_t where(const void *a) { return (uint32_t)a % 16; }"
        where = Kernel(session.load_c(source)["where"])
        for dtype, alignment, step in (("int8", None, 1), ("int8", 4, 4), ("int32", None, 4)):

            @settings(max_examples=60, database=None, deadline=None, derandomize=True)
            @given(placements(np.zeros(5, dtype), alignment=alignment))
            def called(buffer: Buffer) -> None:
                assert where(buffer) == buffer.offset
                seen.setdefault((dtype, alignment), set()).add(buffer.offset)  # noqa: B023

            called()
            assert seen[dtype, alignment] == set(range(0, 16, step))
    with pytest.raises(UsageError, match="alignment 3"):
        placements(np.zeros(1), alignment=3)
