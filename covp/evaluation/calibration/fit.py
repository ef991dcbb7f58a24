"""The search for the numbers of a model.

Hazards teach one class of instructions after the other: a program that has one unknown class
determines the numbers of that class. Structures that the first programs cannot tell apart, such as
ways to fetch, are kept side by side until others do. At last random programs are added, and
every number is looked at again. How the core fetches ahead and waits for data shows with wait
states alone: that is found last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec

from covp.device.timing.instructions import load_instructions
from covp.device.timing.model import DataWait, Fetch, OperandCycles, TimingFile
from covp.device.timing.native import RegionWaits
from covp.evaluation.calibration.costs import Classes, Costs, PreparedProgram, Timed, classifier
from covp.evaluation.calibration.descent import LEAST_GAIN, descend, revert_needless
from covp.evaluation.calibration.knobs import EVERYWHERE, Knob, all_knobs
from covp.evaluation.calibration.measure import TARGETS, Measured, with_targets

_KEPT = 3
"""Structures that are kept side by side."""
_EXACT = 1e-4
"""Loss of a model beside which no other start can find a better one worth its time."""
_MOST_REQUESTS = 8
"""Cycles before its time in which a core without a fetch ahead may request a word."""
_LATER = ("misaligned", "after_store")
"""Numbers of the whole model that the first programs do not show."""
_FLAGS = ("pipelined_accesses", "overwrites_wait")
_OPERANDS = {
    "division": (
        OperandCycles(),
        OperandCycles(divisor_zeros=1),
        OperandCycles(divisor_zeros=-1),
        OperandCycles(dividend_bits=1),
        OperandCycles(quotient_bits=1),
        OperandCycles(quotient=1, quotient_step=2),
        OperandCycles(quotient=1, quotient_step=4),
    ),
    "shift": (OperandCycles(), OperandCycles(amount=1), OperandCycles(constant=-1, amount=1)),
}
Report = Callable[[str], None]


@dataclass(frozen=True)
class Fit:
    """A model that was fitted.

    Attributes:
        model: the content of its file.
        start: the model that the search for it began with.
        known: classes of instructions that the programs executed.
    """

    model: TimingFile
    start: TimingFile
    known: Classes


def fit(
    programs: Sequence[Measured],
    starts: Sequence[TimingFile],
    waits: Sequence[RegionWaits] = (),
    others: Sequence[tuple[Sequence[RegionWaits], Sequence[Measured]]] = (),
    report: Report = lambda text: None,
) -> Fit:
    """Return the model that comes nearest to what was measured.

    Args:
        programs: as measured.
        starts: models of one instruction set; figures of instructions that no program executes
            stay as they are in that which the best one began with.
        waits: wait states of the memory.
        others: wait states of other memories, and the programs as measured with them.
        report: is called with a line for each step.
    """
    name_of = classifier(starts[0])
    prepared = [PreparedProgram(one, name_of, waits) for one in programs]
    more = [PreparedProgram(one, name_of, there) for there, found in others for one in found]
    divisions = {
        kind.name
        for kind in load_instructions(starts[0].instructions or "").classes
        if kind.operands == "division"
    }
    more = [one for one in more if not divisions & one.classes]  # see `without_divisions`
    known = frozenset[str]().union(*(one.classes for one in prepared))
    found = []
    for number, start in enumerate(starts):
        if len(starts) > 1:
            report(f"start {number + 1} of {len(starts)}")
        found.append((start, _Search(prepared, known, start, report).run()))
        if found[-1][1].loss < _EXACT:
            break
    found.sort(key=lambda pair: pair[1].loss)
    if more:
        report("fitting wait states")
        costs = Costs([*prepared, *more])
        found = [
            (start, _Search(costs.programs, known, start, report).adapt(timed.model, costs))
            for start, timed in found[:_KEPT]
        ]
    start, best = min(found, key=lambda pair: pair[1].loss)
    return Fit(best.model, start, known)


class _Search:
    def __init__(
        self,
        programs: Sequence[PreparedProgram],
        known: Classes,
        start: TimingFile,
        report: Report,
    ) -> None:
        self._programs, self._start, self._report = programs, start, report
        self.known = known
        self._set = load_instructions(start.instructions or "")
        self._knobs = all_knobs(self._set, self.known)
        self._jumps = sorted(
            knob.name
            for knob in self._knobs
            if knob.key == "cycles" and self._cause(knob.name) == "branch"
        )

    def _cause(self, name: str) -> str:
        return next(kind.cause for kind in self._set.classes if kind.name == name)

    def run(self) -> Timed:
        """Return the best model."""
        models = list(self._structures())
        for learned, added in self._stages():
            self._report(f"fitting {', '.join(sorted(added))}")
            models = self._learn(models, learned, added)
        self._report("fitting random programs")
        costs = Costs(self._programs)
        expecting = [model for model in models if model.targets]
        others = [model for model in models if not model.targets]
        chosen = (*others[:2], *expecting[:1])
        found = [descend(costs, costs.time(model), self._knobs) for model in chosen]
        polished = self._polish(costs, min(found, key=lambda timed: timed.loss))
        return revert_needless(costs, self._start, polished, self._knobs)

    def adapt(self, model: TimingFile, costs: Costs) -> Timed:
        """Return the best model that is like one of ideal memory but for what wait states show.

        Args:
            model: without wait states.
            costs: of programs with them.
        """
        best = costs.time(model)
        while best.loss > _EXACT:
            found = min(map(costs.time, self._with_memory(best.model)), key=lambda one: one.loss)
            found = self._polish(costs, descend(costs, found, self._knobs))
            if found.loss >= best.loss - LEAST_GAIN:
                break
            best = found
        return best

    def _with_memory(self, model: TimingFile) -> Iterator[TimingFile]:
        """Yield the model with each way to fetch, to wait for data, and to decode jumps."""
        flags = ("keeps", "commits", "pairs", "lingers")
        ways: list[tuple[Fetch | None, int]] = [(model.fetch, model.requests)]
        ways += [(None, requests) for requests in range(_MOST_REQUESTS)]
        for kind in (*(Fetch(4, ahead) for ahead in (2, 3, 4, 5)), Fetch(8, 2), Fetch(16, 2)):
            for chosen in itertools.product((False, True), repeat=len(flags)):
                choice = dict(zip(flags, chosen, strict=True))
                ways.append((msgspec.structs.replace(kind, **choice), 0))
        counted = [
            (fetch, 0) for fetch, _ in ways if fetch and (fetch.bytes, fetch.ahead) == (4, 2)
        ]
        ways += [(msgspec.structs.replace(fetch, counts=True), 0) for fetch, _ in counted]
        for fetch, requests in dict.fromkeys(ways):
            yield from (
                msgspec.structs.replace(model, fetch=fetch, requests=requests, data_wait=wait)
                for wait in get_args(DataWait)
            )
        for names in ((), tuple(self._always), tuple(self._jumps)):
            yield msgspec.structs.replace(model, decoded=names)

    def _polish(self, costs: Costs, best: Timed) -> Timed:
        """Return the model with the properties that improve it now that all programs are known."""
        while True:
            others = (costs.time(one) for one in self._variants(best.model, self.known))
            found = min(others, key=lambda timed: timed.loss)
            if found.loss >= best.loss - LEAST_GAIN:
                return best
            best = descend(costs, found, self._knobs)

    def _stages(self) -> Iterator[tuple[Classes, Classes]]:
        """Yield classes that are known after each stage, and those that it adds."""
        hazards = [one.classes for one in self._programs if not one.is_random] or [self.known]
        learned = min(hazards, key=_order)
        yield learned, learned
        while missing := [one - learned for one in hazards if one - learned]:
            added = min(missing, key=_order)
            learned |= added
            yield learned, added

    def _learn(
        self, models: Sequence[TimingFile], learned: Classes, added: Classes
    ) -> list[TimingFile]:
        """Return the best models with the numbers of some more classes."""
        chosen = [one for one in self._programs if not one.is_random and one.classes <= learned]
        costs = Costs(chosen)
        knobs = [one for one in self._knobs if one.name in added]
        knobs += [one for one in EVERYWHERE if added == learned or one.key in _LATER]
        found: list[Timed] = []
        for model in models:
            variants = self._variants(model, added)
            found += (self._fit(costs, one, knobs) for one in variants)
        return _best(found)

    @staticmethod
    def _fit(costs: Costs, model: TimingFile, knobs: Sequence[Knob]) -> Timed:
        """Return the model with the best numbers; plain ones are fitted before operands' ones."""
        plain = [knob for knob in knobs if knob.key in ("cycles", "taken", "mispredicted")]
        return descend(costs, descend(costs, costs.time(model), plain), knobs)

    def _structures(self) -> list[TimingFile]:
        """Return ways to fetch and to execute; what fits them is found by the stages."""
        start, replace = self._start, msgspec.structs.replace
        ways = [start]
        if start.width == 1:
            other = () if start.executes_later else tuple(self._always)
            ways += [replace(start, executes_later=not start.executes_later, decoded=other)]
        if not start.predicts:
            wrong = {knob.name: 2 for knob in self._knobs if knob.key == "mispredicted"}
            ways += [replace(start, predicts="backward", mispredicted=wrong)]
            ways += [with_targets(start, TARGETS[1])]
        # the start comes first: of models that are equally good, the first is taken
        fetches = dict.fromkeys([start.fetch, *_FETCHES])
        return [replace(model, fetch=fetch) for model in ways for fetch in fetches]

    @property
    def _always(self) -> list[str]:
        """Jumps that are not conditional."""
        conditional = {knob.name for knob in self._knobs if knob.key == "taken"}
        return [name for name in self._jumps if name not in conditional]

    def _variants(self, model: TimingFile, added: Classes) -> Iterator[TimingFile]:
        """Yield the model, and those that differ in a property that the classes may tell."""
        yield model
        kinds = [kind for kind in self._set.classes if kind.name in added]
        for targets in TARGETS[1:] if model.targets else ():
            yield with_targets(model, targets)
        if any(kind.access for kind in kinds):
            for flag in _FLAGS:
                yield msgspec.structs.replace(model, **{flag: not getattr(model, flag)})
        if any(kind.cause == "branch" for kind in kinds) and model.fetch:
            for key in ("keeps", "commits", "pairs"):
                fetch = msgspec.structs.replace(model.fetch, **{key: not getattr(model.fetch, key)})
                yield msgspec.structs.replace(model, fetch=fetch)
        for name in added & {*self._jumps} - {*self._always} if model.executes_later else ():
            yield msgspec.structs.replace(model, passes=tuple(sorted({name} ^ {*model.passes})))
        for name in added & set(self._always) if model.executes_later else ():
            yield msgspec.structs.replace(model, decoded=tuple(sorted({name} ^ {*model.decoded})))
        for name in {kind.name for kind in kinds if kind.by_places}:
            places = tuple(sorted({name} ^ {*model.by_places}))
            yield msgspec.structs.replace(model, by_places=places)
        for name, kind in {kind.name: kind.operands for kind in kinds}.items():
            others = {key: value for key, value in model.operands.items() if key != name}
            for one in _OPERANDS.get(kind, ()):
                added_one = {} if one == OperandCycles() else {name: one}
                yield msgspec.structs.replace(model, operands={**others, **added_one})


def _order(classes: Classes) -> tuple[int, list[str]]:
    return len(classes), sorted(classes)


def _way(model: TimingFile) -> tuple[bool, str, bool]:
    return model.executes_later, model.predicts, model.targets > 0


def _best(found: list[Timed]) -> list[TimingFile]:
    """Return the best ones of each way to execute, each once."""
    found.sort(key=lambda timed: timed.loss)
    kept: list[TimingFile] = []
    for way in dict.fromkeys(_way(timed.model) for timed in found):
        alike = (timed.model for timed in found if _way(timed.model) == way)
        unique = {msgspec.json.encode(model): model for model in alike}
        kept += list(unique.values())[:_KEPT]
    losses = {id(timed.model): timed.loss for timed in found}
    return sorted(kept, key=lambda model: losses[id(model)])


_FETCHES: tuple[Fetch | None, ...] = (
    None,
    *(Fetch(4, ahead) for ahead in (2, 3, 4)),
    Fetch(8, 2),
    Fetch(16, 2),
)
"""An instruction may lie in two fetches, so there are two at least."""
