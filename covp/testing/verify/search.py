"""`LayerSearch`: layers on an accelerator one after another, and the smallest that goes wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from covp.errors import CapacityError, CovpError, DeviceFault
from covp.testing import Case
from covp.testing.verify.bench import Bench
from covp.testing.verify.budget import Budget
from covp.testing.verify.chain import form_of
from covp.testing.verify.check import run_case
from covp.testing.verify.model_layers import ModelLayer
from covp.testing.verify.shrink import smaller
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
    """Runs layers on a bench until one comes out wrong, then shrinks it.

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

    def __init__(self, bench: Bench, budget: Budget | None = None) -> None:
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
