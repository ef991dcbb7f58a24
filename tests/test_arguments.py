"""Arguments of wrong types: UsageError or another CovpError in one line, from every public call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import covp
from covp.building.tune.tuner import Options, tune
from covp.testing.verify import check, verify

JUNK: list[Any] = [None, 5, 3.5, b"x", [], {}, object(), "", ["kws"], np.zeros(3), "\0"]
SOURCE = "int add(int a, int b) { return a + b; }"


@pytest.fixture(scope="module")
def session() -> Iterator[covp.Session]:
    with covp.Session("riscv32") as opened:
        yield opened


def is_rejected(call: Callable[[Any], object], *fine: Any) -> None:
    """Each kind of junk raises a CovpError of one line, but for what is ``fine``."""
    accepted = []
    for junk in JUNK:
        try:
            call(junk)
        except covp.CovpError as error:
            assert "\n" not in str(error) and len(str(error)) < 1000
        else:
            accepted.append(junk)
    assert [repr(junk) for junk in accepted] == [repr(junk) for junk in fine]


def test_platforms_models_and_sessions() -> None:
    is_rejected(covp.load_platform)
    is_rejected(covp.load_model)
    is_rejected(covp.Session)
    is_rejected(lambda junk: covp.Session("riscv32", device=junk))
    is_rejected(lambda junk: covp.Session("riscv32", toolchain=junk))
    is_rejected(lambda junk: covp.Session("riscv32", timeout=junk).close(), None, 5, 3.5)


@pytest.mark.process
def test_what_a_session_loads(session: covp.Session) -> None:
    is_rejected(session.load_c)
    is_rejected(lambda junk: session.load_c(SOURCE, include=junk), [], {}, ["kws"])
    is_rejected(lambda junk: session.load_sources(junk, "x"))
    is_rejected(session.load)
    module = session.load_c(SOURCE)
    is_rejected(lambda junk: module[junk])
    is_rejected(module.address)
    is_rejected(lambda junk: module["add"](junk, 1).result(), 5)
    with pytest.raises(covp.UsageError, match="flags"):
        session.load_c(SOURCE, flags="-g")


def test_memory_of_a_session(session: covp.Session) -> None:
    is_rejected(lambda junk: session.read(junk, 4))
    is_rejected(lambda junk: session.read(session.platform.ram.start, junk), 5)
    is_rejected(lambda junk: session.write(junk, b"x"))
    is_rejected(session.restore)


def test_compiling() -> None:
    is_rejected(lambda junk: covp.compile(junk, "riscv32"))
    is_rejected(lambda junk: covp.compile("toycar", junk))
    is_rejected(lambda junk: covp.compile("toycar", "riscv32", [junk]))
    wrong: list[Any] = [5, 3.5, b"x", object(), np.zeros(3), "qconv2d", None]
    for junk in wrong:
        with pytest.raises(covp.UsageError, match="accelerators"):
            covp.compile("toycar", "riscv32", junk)


def test_verifying() -> None:
    is_rejected(verify)
    is_rejected(lambda junk: verify("gemm", junk, 1))
    is_rejected(lambda junk: check("gemm", junk))
    for name in ("examples", "seed", "seconds", "toolchain"):
        for junk in ("1", None, [], object(), -1):
            wrong: dict[str, Any] = {name: junk}
            with pytest.raises(covp.UsageError):
                verify("gemm", **wrong)


def test_tuning() -> None:
    graph, platform = covp.load_model("toycar"), covp.load_platform("riscv32")
    is_rejected(lambda junk: tune(junk, platform))
    is_rejected(lambda junk: tune(graph, platform, junk))
    is_rejected(lambda junk: tune(graph, platform, options=junk))
    for seconds in (float("nan"), float("inf"), -1, "1"):
        with pytest.raises(covp.UsageError, match="finite"):
            tune(graph, platform, options=Options(seconds=seconds))  # type: ignore[arg-type]
    for name in ("trials", "jobs", "strategy", "build", "cost", "seed", "device"):
        for junk in (3.5, b"x", [], object()):
            wrong: dict[str, Any] = {name: junk}
            with pytest.raises(covp.UsageError):
                tune(graph, platform, options=Options(**wrong))
