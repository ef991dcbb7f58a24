"""With the compiler's undefined-behaviour checks coverage counts the branches of the source."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import covp
from covp.laboratory.coverage import Coverage
from covp.testing import Kernel
from tests.laboratory.coverage.test_lines import PLATFORMS, toolchains

ONE = """#include <stdint.h>
int f(const int *x, int n, int a)
{
    int s = n;
    if (a > 3)
        s += x[a & 1] << (a & 3);
    return s + a;
}
"""
MANY = """#include <stdint.h>
static int table[4] = {3, 1, 4, 1};
int f(const int *x, int n, int a)
{
    int s = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] > 0 && x[i] * a < 100)
            s += x[i] / (a + 1);
        else
            s -= table[i & 3] << (a & 7);
    }
    while (s > 1000)
        s -= a * a;
    return -s;
}
"""
CASES = [(platform, each) for platform in PLATFORMS for each in toolchains(platform)]


def lines_of(
    text: str, platform: str, toolchain: str, level: str, checks: bool
) -> Counter[tuple[int, ...]]:
    """(line, outcomes) of the branches, outcomes in no order: a check may turn a branch around."""
    with covp.Session(platform, toolchain=toolchain, ubsan=checks) as session:
        kernel = Kernel(session.load_c(text, flags=(level,))["f"])
        with Coverage(session) as c:
            kernel(np.array([5, 3, 70, 0], np.int32), 4, 5)
        name = next(iter(c.data.files))
        branches = c.branches(name)
    return Counter((b.line, *sorted((b.taken or 0, b.untaken or 0))) for b in branches)


@pytest.mark.parametrize(("platform", "toolchain"), CASES)
@pytest.mark.parametrize("level", ["-Og", "-O1", "-O2"])
def test_one_branch_is_one(platform: str, toolchain: str, level: str) -> None:
    if (level, toolchain) == ("-Og", "gcc"):
        pytest.skip("GCC computes some conditions of checks elsewhere at -Og")
    (branch,) = lines_of(ONE, platform, toolchain, level, checks=True)
    assert branch == (5, 0, 1)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_same_branches_as_without_checks(platform: str) -> None:
    """Without optimization, which makes other branches of other code."""
    with_checks, without = (lines_of(MANY, platform, "zig", "-O0", has) for has in (True, False))
    assert with_checks == without


@pytest.mark.parametrize(("platform", "toolchain"), CASES)
def test_a_branch_to_what_is_always_undefined_is_the_source_s(
    platform: str, toolchain: str
) -> None:
    text = "int f(const int *x, int n, int a)\n{\n int s = 2147483647;\n if (a == 6)\n  s += n;\n"
    found = lines_of(f"{text} return x[0] != s;\n}}\n", platform, toolchain, "-O1", checks=True)
    assert any(line[0] == 4 for line in found)
