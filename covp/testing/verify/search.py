"""`LayerSearch`: layers on an accelerator in turn, in a `Budget`; the smallest that goes wrong."""

from __future__ import annotations

import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from covp.errors import CapacityError, CovpError, DeviceFault
from covp.testing import Case
from covp.testing.verify.bench import VerifyBench
from covp.testing.verify.chain import ChainCase, form_of, refit
from covp.testing.verify.check import run_case
from covp.testing.verify.model_layers import ModelLayer
from covp.testing.verify.usual_forms import FORMS, usual_form

_SHRINKING = 4.0
"""Seconds of processor time in which a failing layer is made smaller."""
_SMALL = (3, 5, 20, 40)
"""Numbers of the accepted layers of a kind that are kept for other tries."""
_SEQUENCE = 40
"""Layers that run on a device one after another before it is a fresh one again."""
_FRUITLESS = 25
"""Rejected layers that are tried in every form, as long as none helps."""
_GAPS = 24


class LayerSearch:
    """A search that runs layers until one comes out wrong, then shrinks it.

    Args:
        bench: with the accelerator.
        budget: of the search, or None for one without an end.

    Attributes:
        tried: layers that ran or were rejected before the first failure, by operator.
        accepted: those of them that ran on the accelerator, by operator.
        sample: the latest of those, or None.
        small: some of the first of those, of all kinds.
        forms: the first one of each form, see `form_of`.
        rejected: the reasons for the others, and how often each was given.
        too_large: layers that do not fit the bench, by operator.
        helpful: by the number of a form: how often a rejected layer was accepted in it.
        dtypes: of the accepted layers, by operator.
        failing: the smallest failing layer, or None.
        before: the layers that have to run before it.
        error: its failure.
    """

    def __init__(self, bench: VerifyBench, budget: Budget | None = None) -> None:
        self.bench = bench
        self.budget = budget or Budget()
        self.tried: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.too_large: Counter[str] = Counter()
        self.sample: Case | None = None
        self.small: list[Case] = []
        self.forms: dict[object, Case] = {}
        self.helpful: Counter[int] = Counter()
        self.dtypes: defaultdict[str, set[str]] = defaultdict(set)
        self.failing: Case | None = None
        self.before: tuple[Case, ...] = ()
        self.error: CovpError | None = None
        self._fruitless = 0
        self._number = 0

    def run_all(self, cases: Iterable[Case], least: int = 0) -> bool:
        """Try layers one after another on one device; the first that fails is shrunk.

        Args:
            cases: the layers. Those without a gap get one, as buffers lie at other places then.
            least: how many of the first ones are tried whatever the budget.

        Returns:
            Whether none failed; those for which the budget was too small did not.
        """
        history: list[Case] = []
        for number, given in enumerate(cases):
            if number >= least and self.budget.is_spent:
                break
            case = self._with_gap(given)
            if len(history) % _SEQUENCE == 0:
                history = []
            try:
                ran = self.attempt(case, fresh=not history)
            except CovpError:
                self._isolate(history)
                self._shrink()
                return False
            if ran is not None:
                history.append(ran)
        return True

    def _with_gap(self, case: Any) -> Any:
        self._number += 1
        if getattr(case, "gap", 1) or not hasattr(case, "__dataclass_fields__"):
            return case
        # two layers in a row have the same one: what is placed first is at the same address
        return replace(case, gap=self._number // 2 % _GAPS)

    def _isolate(self, history: list[Case]) -> None:
        """Find what has to run before a layer that failed after others: nothing, one, or all."""
        case, self.before = self.failing, tuple(history)
        assert case is not None
        if _hangs(self.error):  # each try would take that long again
            return
        shrinking = Budget(_SHRINKING)
        one = [(earlier,) for earlier in reversed(history[-12:])]
        for before in [(), *one, tuple(history[-3:])]:
            if shrinking.is_spent or self._fails(case, before):
                return

    def _shrink(self) -> None:
        """Simplify the failing case field by field, as long as it fails."""
        shrinking = Budget(_SHRINKING)
        found = not _hangs(self.error)
        while found:
            assert self.failing is not None
            found = False
            for case in smaller(self.failing):
                if shrinking.is_spent:
                    return
                if self._fails(case, self.before):
                    found = True
                    break

    def _fails(self, case: Case, before: tuple[Case, ...]) -> bool:
        """Return whether a simpler case fails; the latest that does is `failing`."""
        try:
            run_case(self.bench, case, before)
        except CapacityError:
            return False
        except CovpError as error:
            self.failing, self.before, self.error = case, before, error
            return True
        except Exception:  # no such layer can be
            return False
        return False

    def attempt(self, case: Case, fresh: bool = True) -> Case | None:
        """Run one layer, in a more usual form where it is rejected, and count it.

        Args:
            case: the layer.
            fresh: on a device that has run nothing else.

        Returns:
            The form of it that ran on the accelerator, or None.

        Raises:
            CovpError: the layer fails; it is `failing`.
        """
        form: Case | None = case
        ran: Case | None = None
        reasons: tuple[str, ...] = ()
        try:
            for number in (None, *self._forms()):
                form = case if number is None else usual_form(case, number)
                if form is None:
                    continue
                outcome = run_case(self.bench, form, fresh=fresh)
                reasons = reasons or outcome.reasons
                if outcome.outputs is not None:
                    ran = form
                    if number is not None:
                        self.helpful[number] += 1
                    break
        except CapacityError:
            self.too_large[case.kind] += 1
            return None
        except CovpError as error:
            self.failing, self.before, self.error = form, (), error
            raise
        self.tried[case.kind] += 1
        if ran is None:
            self._fruitless += 1
            self.rejected.update(map(_without_value, reasons[:1]))
        else:
            self._count(ran)
        return ran

    def _forms(self) -> list[int]:
        """Return the forms that have helped, and all others while few layers were tried in them."""
        likely = [number for number, _ in self.helpful.most_common()]
        if self._fruitless > _FRUITLESS or self.helpful.total() > _FRUITLESS:
            return likely
        return likely + [n for n in range(len(FORMS)) if n not in likely]

    def _count(self, case: Case) -> None:
        self.accepted[case.kind] += 1
        self.forms.setdefault(form_of(case), case)
        if self.accepted[case.kind] in _SMALL:
            self.small.append(case)
        self.dtypes[case.kind].add(getattr(case, "dtype", ""))
        if isinstance(case, ModelLayer):
            self.sample = self.sample or case  # drawn ones are small
        else:
            self.sample = case


def _hangs(error: CovpError | None) -> bool:
    return isinstance(error, DeviceFault) and error.kind == "timeout"


def _without_value(reason: str) -> str:
    """Cut a reason to its limit; `Limit` prints "name value; bound", the value differs."""
    first, bound = reason.partition(", ")[0].partition("; ")[::2]
    return f"{first.rpartition(' ')[0]}: {bound}" if bound else first


_PLAIN = {
    "bias": False,
    "same": False,
    "activation": "none",
    "output_scale": 1.0,
    "content": "random",
    "levels": (),
    "nonzero": None,
    "padding": None,
    "ties": False,
    "other": None,
}
_FROM_ZERO = ("gap", "seed", "zero_point", "zero_points")
"""Fields of which 0 is simpler than 1; of others, as extents, it is not allowed."""


def smaller(case: Case) -> Iterator[Case]:
    """Yield cases with one field simpler, the boldest simplification first."""
    if isinstance(case, ChainCase):
        for i, part in enumerate(case.parts):
            for simpler in smaller(part):
                parts = [*case.parts[:i], simpler, *case.parts[i + 1 :]]
                fitting = refit(case, parts)  # type: ignore[arg-type]
                if fitting is not None and fitting != case:
                    yield fitting
    if not is_dataclass(case) or isinstance(case, type):
        return
    for field in fields(case):
        if field.name in ("parts", "wires"):
            continue
        value = getattr(case, field.name)
        if field.name in _PLAIN:
            values: Iterator[Any] = iter([_PLAIN[field.name]])
        else:
            values = _simpler(value, 0 if field.name in _FROM_ZERO else 1)
        for simpler in values:
            if simpler != value:
                yield replace(case, **{field.name: simpler})


def _simpler(value: Any, low: int) -> Iterator[Any]:
    if isinstance(value, bool):
        yield False
    elif isinstance(value, int):
        for part in (low, value // 2, value - value // 4, value - 1):
            if low <= part < value or value < part <= 0:
                yield part
    elif isinstance(value, tuple):
        for i, each in enumerate(value):
            for simpler in _simpler(each, low):
                yield (*value[:i], simpler, *value[i + 1 :])


class Budget:
    """Processor time of this process and the children that it has waited for, since it was made.

    The clock on the wall would give another search on a busy host.

    Args:
        seconds: that may be used.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = seconds
        self._began = _processor_time()

    def used(self) -> float:
        """Return the processor seconds used so far."""
        return _processor_time() - self._began

    @property
    def is_spent(self) -> bool:
        """True if the budget is spent."""
        return self.used() >= self.seconds


def _processor_time() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
