"""`life`: the same layers hundreds of times on one device, as firmware runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from covp.errors import CapacityError, CovpError
from covp.graph.equality import differences
from covp.graph.reference import run_reference
from covp.testing import Case
from covp.testing.verify.bench import Conditions
from covp.testing.verify.chain import sibling
from covp.testing.verify.driver_bench import DriverBench

CALLS = 300
"""More than a counter of eight bits holds."""


def life(bench: DriverBench, cases: Sequence[Case], calls: int = CALLS) -> str | None:
    """Run layers in turn on one device; what was wrong, or None.

    Each layer comes with two sets of constants, both at the same addresses in turn, unless the
    accelerator declares `caches_constants`: then they stay where they are and keep their contents.
    Twice in a row, with other inputs; again after another layer; once in two halves.

    Args:
        bench: a device for the accelerator.
        cases: small layers that it accepts, at least one.
        calls: how many layers run.
    """
    bench.begin()
    runs = [_Run(bench, variant) for case in cases for variant in (case, sibling(case))]
    for call, number in zip(range(calls), _order(len(runs)), strict=False):
        try:
            wrong = runs[number].again(call)
        except CapacityError:
            continue
        except CovpError as error:
            wrong = str(error)
        if wrong:
            return f"{wrong}; at call {call + 1} of one life, of {runs[number].case!r}"
    return None


def _order(count: int) -> Iterator[int]:
    """Yield each after itself, and after each of the others."""
    while True:
        for step in range(1, count + 1):
            for start in range(count):
                yield start
                yield start
                yield (start + step) % count


class _Run:
    """A layer, prepared once; its inputs are other ones each time."""

    def __init__(self, bench: DriverBench, case: Case) -> None:
        self.case = case
        self._bench, self._graph = bench, case.graph()
        given = case.inputs()
        self._inputs = [given, [np.flip(array).copy() for array in given]]
        self._right = [run_reference(self._graph, inputs) for inputs in self._inputs]

    def again(self, call: int) -> str:
        """Run again and say what was wrong, "" if nothing was."""
        which = call % 2
        conditions = Conditions(halves=call % 7 == 6)
        outcome = self._bench.run(self._graph, self._inputs[which], conditions)
        if outcome.outputs is None:
            return ""
        if outcome.wrong:
            return outcome.wrong
        if outcome.damage:
            return f"bytes outside the output were written, first at 0x{outcome.damage[0]:08x}"
        pairs = zip(outcome.outputs, self._right[which], strict=True)
        wrong = sum(differences(got, right).size for got, right in pairs)
        return f"{wrong} elements differ from the reference" if wrong else ""
