"""A verdict of `covp verify` does not depend on the host: budget, floor, hangs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from covp.accelerator import Limit
from covp.errors import CovpError
from covp.graph.attributes import Pool2D
from covp.graph.graph import Graph
from covp.graph.pattern import Match
from covp.graph.reference import run_reference
from covp.testing.verify import bench_device, verify
from covp.testing.verify.bench import LayerOutcome
from covp.testing.verify.search import LayerSearch
from covp.testing.verify.stages import Stages, strategies_of
from tests.testing.verify.planted.fused import Fused
from tests.testing.verify.test_search import FakeBench
from tests.testing.verify.test_verify import Fc


class Hangs(Fc):
    """Its driver does not end."""

    def driver(self, base: int) -> Mapping[str, str]:
        """With an endless loop."""
        files = dict(super().driver(base))
        wait = "    covp_job_wait(&FC_CTRL, COVP_POLL);\n"
        loop = "    for (volatile int i = 0;; i++) { }\n"
        return files | {"fc.c": files["fc.c"].replace(wait, loop)}


class KeepsConstants(Fc):
    """Its driver does not load again what it loaded last."""

    compared = "(uintptr_t)image"

    def driver(self, base: int) -> Mapping[str, str]:
        """The unit's registers keep what the image had in them."""
        files = dict(super().driver(base))
        load = "    FC_DESCRIPTOR = (uint32_t)(uintptr_t)image;\n"
        kept = (
            f"    static uintptr_t last;\n    if (last != {self.compared})\n    {load}"
            f"    last = {self.compared};\n"
        )
        return files | {"fc.c": files["fc.c"].replace(load, kept, 1)}


class SaysSo(KeepsConstants):
    """And declares it."""

    caches_constants = True


class ComparesHalf(SaysSo):
    """And takes addresses of equal lower halves for one."""

    compared = "((uintptr_t)image & 0xffff)"


@pytest.fixture
def _busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is so busy that a minute passes whenever anybody looks at the clock."""
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 60.0 * next(ticks))


@pytest.mark.slow
@pytest.mark.usefixtures("_busy")
def test_a_busy_host_tries_the_same_layers() -> None:
    verdict = verify(Fc(), examples=10, models=(), seconds=300)
    assert verdict.failure is None and verdict.finished
    assert verdict.accepted["FULLY_CONNECTED"] > 200


@pytest.mark.usefixtures("_busy")
def test_a_hang_is_called_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_device, "MOST_INSTRUCTIONS", 20_000_000)
    verdict = verify(Hangs(), examples=10, models=())
    assert "the driver hangs: it did not end within 20000000 instructions" in str(verdict.failure)
    assert "check(" in verdict.test


class Adds(Fc):
    """Accepts ADD as well, which it would draw first."""

    operators = ("ADD", "FULLY_CONNECTED")  # type: ignore[assignment]

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """None of them."""
        return "none" if match.op.kind == "ADD" else super().supports(match)


@pytest.mark.costly
def test_a_search_without_time_tries_the_floor_of_every_kind() -> None:
    verdict = verify(Adds(), models=(), seconds=1e-3)
    assert verdict.failure is None and not verdict.finished
    assert verdict.tried == {"ADD": 20, "FULLY_CONNECTED": 24}  # four of them of one element
    assert verdict.abuses > 0
    late = verify(AtTheHundredthCall(), models=(), seconds=1e-3)
    assert "at call 100 of one life" in str(late.failure)


@pytest.mark.costly
@pytest.mark.usefixtures("counted_time")
def test_two_searches_try_the_same_layers() -> None:
    first, second = (verify(Fc(), examples=8, models=(), seconds=1) for _ in range(2))
    assert first.tried["FULLY_CONNECTED"] > 20
    assert (first.tried, first.accepted, first.rejected) == (
        second.tried,
        second.accepted,
        second.rejected,
    )


@pytest.mark.costly
@pytest.mark.parametrize(
    ("kept", "is_right"), [(KeepsConstants, False), (SaysSo, True), (ComparesHalf, False)]
)
def test_who_keeps_constants_declares_it(kept: type[Fc], is_right: bool) -> None:
    verdict = verify(kept(), examples=10, models=(), seconds=300)
    assert (verdict.failure is None) == is_right, verdict.failure
    if not is_right:
        assert "differ from the reference" in str(verdict.failure)


class AtTheHundredthCall(Fc):
    """Wrong once in a life."""

    def driver(self, base: int) -> Mapping[str, str]:
        """With a counter."""
        files = dict(super().driver(base))
        load = "    FC_DESCRIPTOR = (uint32_t)(uintptr_t)image;\n"
        late = (
            "    static int n;\n    if (++n == 100) output_address = (char *)output_address + 1;\n"
        )
        return files | {"fc.c": files["fc.c"].replace(load, late + load, 1)}


@pytest.mark.costly
def test_a_printed_test_of_many_calls_fails_as_the_search_did() -> None:
    verdict = verify(AtTheHundredthCall(), examples=10, models=(), seconds=300)
    assert "at call 100 of one life" in str(verdict.failure) and "calls=300" in verdict.test
    space: dict[str, Any] = {}
    exec(compile(verdict.test, "smallest", "exec"), space)
    with pytest.raises(CovpError, match="at call 100 of one life"):
        space["test_the_smallest_failing_layer"]()


@pytest.mark.slow
def test_each_operator_of_a_chain_gets_corner_cases() -> None:
    """Behind a convolution: steps beyond windows, long ones, 4 x 4 windows, padding, a clamp."""
    seen: set[str] = set()

    class Looks(FakeBench):
        def run(self, graph: Graph, *arguments: Any) -> LayerOutcome:
            pool = graph.ops[-1].attributes
            assert isinstance(pool, Pool2D) and len(graph.ops) == 2
            (window, step), pads = (pool.filter, pool.stride), pool.padding
            seen.update(["step beyond window"] if step[0] > window[0] > 1 else [])
            seen.update(["long step"] if max(step) >= 5 else [])
            seen.update([f"{graph.ops[-1].kind} of 4 x 4"] if window == (4, 4) else [])
            seen.update(["padding"] if pads.left and not pads.top else [])
            seen.update(["clamp"] if pool.activation == "relu_n1_to_1" else [])
            return LayerOutcome(run_reference(graph, arguments[0]), [], [])

    bench = Looks()
    bench.backend = Fused()
    search = LayerSearch(bench)
    stages = Stages(search, strategies_of(bench.backend), 20, 0, (), {}, {})
    assert stages.small() and stages.special()
    assert seen >= {
        "step beyond window",
        "long step",
        "AVERAGE_POOL_2D of 4 x 4",
        "MAX_POOL_2D of 4 x 4",
        "padding",
        "clamp",
    }
