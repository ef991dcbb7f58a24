"""`LayerSearch`: random layers on an accelerator, and the smallest that it gets wrong."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from covp.errors import CapacityError, CovpError, DeviceFault
from covp.testing import Case
from covp.verify.bench import Bench
from covp.verify.bench_device import Undecided
from covp.verify.check import run_case
from covp.verify.model_layers import ModelLayer
from covp.verify.shrink import smaller
from covp.verify.usual_forms import FORMS, usual_form

_SHRINKING = (1.0, 4.0)
"""Seconds that a failing layer may be made smaller: at least, and at most if they are left."""
_SMALL = (3, 20, 40)
"""Numbers of the accepted layers of a kind that are kept for other tries."""
_SEQUENCE = 40
"""Layers that run on a device one after another before it is a fresh one again."""


class LayerSearch:
    """Runs layers on a bench until one comes out wrong, then shrinks it.

    Args:
        bench: with the accelerator.
        examples: layers of each strategy.
        seed: the same one draws the same layers.
        stopwatch: of the whole search, or None for a new one.
        seconds: of the stopwatch, to which shrinking keeps.

    Attributes:
        tried: layers that ran or were rejected before the first failure, by operator.
        accepted: those of them that ran on the accelerator, by operator.
        sample: the latest of those, or None.
        small: some of the first of those, of all kinds.
        rejected: the reasons for the others, and how often each was given.
        too_large: layers that do not fit the bench, by operator.
        forms: numbers of the `FORMS` in which a rejected layer is tried again.
        helpful: how often each led to an accepted one.
        dtypes: of the accepted layers, by operator.
        stopwatch: started with the whole search.
        failing: the smallest failing layer, or None.
        before: the layers that have to run before it.
        error: its failure.
    """

    def __init__(
        self,
        bench: Bench,
        examples: int,
        seed: int,
        stopwatch: Stopwatch | None = None,
        seconds: float = math.inf,
    ) -> None:
        self.bench = bench
        self.tried: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.too_large: Counter[str] = Counter()
        self.sample: Case | None = None
        self.small: list[Case] = []
        self.forms = list(range(len(FORMS)))
        self.helpful: Counter[int] = Counter()
        self.dtypes: defaultdict[str, set[str]] = defaultdict(set)
        self.failing: Case | None = None
        self.before: tuple[Case, ...] = ()
        self.error: CovpError | None = None
        self.stopwatch = stopwatch or Stopwatch()
        self._seconds = seconds
        self._seed = seed
        self._until = math.inf
        self._shrink_until = math.inf
        self._examples = examples

    def run(
        self,
        strategy: st.SearchStrategy[Any],
        share: float = 1.0,
        until: float = math.inf,
        number: int = 0,
    ) -> bool:
        """Try layers of a strategy, each on a fresh device; whether all came out right.

        Args:
            strategy: of cases.
            share: of the number of examples.
            until: no further layer is tried after this time of the search.
            number: of the run; each draws other layers.
        """
        self._until = until
        before = st.one_of(st.none(), st.none(), strategy)
        how = settings(
            max_examples=max(1, round(self._examples * share)),
            deadline=None,
            database=None,
            print_blob=False,
            report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        attempts = with_seed(self._seed + number)(how(given(strategy, before)(self._timed)))
        try:
            attempts()
        except _Enough:
            return True
        except CovpError:  # Hypothesis runs the smallest one last, so `failing` is that
            return False
        except Unsatisfiable:  # all that was drawn does not fit together
            return True
        return True

    def run_all(self, cases: Iterable[Case], until: float = math.inf) -> bool:
        """Try layers one after another on one device; the first that fails is shrunk.

        Args:
            cases: the layers.
            until: time of the stopwatch, in seconds, from which no further one is tried.

        Returns:
            Whether none failed.
        """
        history: list[Case] = []
        for case in cases:
            if self.stopwatch.now() > until:
                return True
            if len(history) % _SEQUENCE == 0:
                history = []
            try:
                if self.attempt(case, fresh=not history):
                    history.append(case)
            except CovpError:
                self._isolate(case, history)
                self._shrink()
                return False
        return True

    def _isolate(self, case: Case, history: list[Case]) -> None:
        """Find what has to run before a layer that failed after others: nothing, one, or all."""
        if _hangs(self.error):  # each try would take that long again
            return
        one = [(earlier,) for earlier in reversed(history[-12:])]
        for before in [(), *one, tuple(history[-3:]), tuple(history)]:
            if self.stopwatch.now() > self._shrink_until:
                self.before = tuple(history)
                return
            try:
                self.attempt(case, before)
            except CovpError:
                return

    def _shrink(self) -> None:
        """Simplify the failing case field by field, as long as it fails."""
        found = not _hangs(self.error)
        while found:
            assert self.failing is not None
            found = False
            for case in smaller(self.failing):
                if self.stopwatch.now() > self._shrink_until:
                    return
                try:
                    self.attempt(case, self.before)
                except CovpError:
                    found = True
                    break
                except Exception:  # no such layer can be
                    continue

    def _timed(self, case: Case, before: Case | None) -> None:
        now = self.stopwatch.now()
        if self.error is None and now > self._until:
            raise _Enough
        earlier = () if before is None else (before,)
        if self.error is not None and now > self._shrink_until:
            # small enough: the smallest so far fails without being run, all others do not
            if (repr(case), repr(earlier)) == (repr(self.failing), repr(self.before)):
                raise self.error
            return
        self.attempt(case, earlier)

    def attempt(self, case: Case, before: tuple[Case, ...] = (), fresh: bool = True) -> bool:
        """Run one layer and count it.

        Args:
            case: the layer.
            before: layers that run first on the same device; their outcomes do not count.
            fresh: the device has run nothing else.

        Returns:
            Whether it ran on the accelerator.

        Raises:
            CovpError: the layer fails.
        """
        try:
            outcome = run_case(self.bench, case, before, fresh)
            for number in self.forms:
                if outcome.outputs is not None:
                    break
                other = usual_form(case, number)
                if other is not None:
                    rejected, case = case, other
                    outcome = run_case(self.bench, case, before, fresh)
                    self.helpful[number] += outcome.outputs is not None
                    case = rejected if outcome.outputs is None else case
        except CapacityError:
            if self.error is None:
                self.too_large[case.kind] += 1
            return False
        except Undecided:
            self.rejected["the host was too busy to tell"] += 1
            self.bench.begin()
            return False
        except CovpError as error:
            if self.error is None:
                now, (least, most) = self.stopwatch.now(), _SHRINKING
                self._shrink_until = now + min(max(self._seconds - now, least), most)
            self.failing, self.before, self.error = case, before, error
            raise
        if self.error is None:
            self.tried[case.kind] += 1
            if outcome.outputs is None:
                self.rejected.update(map(_without_value, outcome.reasons[:1]))
            else:
                self.accepted[case.kind] += 1
                if self.accepted[case.kind] in _SMALL:
                    self.small.append(case)
                self.dtypes[case.kind].add(getattr(case, "dtype", ""))
                if isinstance(case, ModelLayer):
                    self.sample = self.sample or case  # drawn ones are small
                else:
                    self.sample = case
        return outcome.outputs is not None


def _hangs(error: CovpError | None) -> bool:
    return isinstance(error, DeviceFault) and error.kind == "timeout"


class Stopwatch:
    """Seconds by the clock since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def now(self) -> float:
        """Since it was made."""
        return time.monotonic() - self._began


class _Enough(BaseException):
    """The time is up: no `Exception`, so that Hypothesis takes it for no failure."""


def _without_value(reason: str) -> str:
    """The limit in a reason; `Limit` prints "name value; bound", the value differs by layer."""
    first, bound = reason.partition(", ")[0].partition("; ")[::2]
    return f"{first.rpartition(' ')[0]}: {bound}" if bound else first
