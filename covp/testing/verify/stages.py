"""`Stages`: the layers that a search tries, in the order in which it does.

The list depends on the accelerator and the seed alone. The budget only ends it early, and never
before `_FLOOR` layers of each kind, so a search that comes to its end has the same verdict on every
host.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.limits import Limit
from covp.base.plugins import call_hook
from covp.base.request import Shapes
from covp.errors import AcceleratorError, CovpError, UsageError
from covp.graph.passes import run_passes
from covp.testing import Case, Layer
from covp.testing.verify.averages import AVERAGE, averages, averages_in
from covp.testing.verify.borders import borders
from covp.testing.verify.chain import ChainCase, fit_part
from covp.testing.verify.corners import corners
from covp.testing.verify.designs import designs
from covp.testing.verify.extents import single_elements, sweep
from covp.testing.verify.model_layers import model_layers
from covp.testing.verify.pattern_layers import drawn, pattern_layers
from covp.testing.verify.search import LayerSearch

_FLOOR = 20
"""Small layers of a kind that are tried on the slowest host: with fewer a search says nothing."""
_ROUNDS = 3
"""How often small layers are drawn as long as none is accepted."""
_SINGLE = 4
"""Layers of a single element of each form, tried as those."""
_COMPILED = 15
"""Layers of a kind in each stage where each has to be compiled as a program of its own."""

Strategies = Mapping[str, st.SearchStrategy[Any]]


@dataclass(eq=False)
class Stages:
    """The stages of a search: which layers one accelerator is tried with, in order.

    Args:
        search: that runs them.
        strategies: see `strategies_of`.
        examples: layers of each strategy.
        seed: of those that are drawn.
        models: whose layers are tried.
        shapes: of inputs that the models leave open.
        ran: set to the layers of models that ran on the accelerator, by model.
    """

    search: LayerSearch
    strategies: Strategies
    examples: int
    seed: int
    models: Sequence[str]
    shapes: Shapes
    ran: dict[str, int]

    def small(self) -> bool:
        """Run small layers until one is accepted; return whether all were right.

        The first ones of each kind are tried whatever the budget.
        """
        least = _FLOOR * len(self.strategies)
        for number in range(_ROUNDS):
            streams = [self._drawn(s, number) for s in self.strategies.values()]
            if not self._run(streams, least):
                return False
            if self.search.sample is not None:
                break
        singles = [single_elements(case) for case in self.search.forms.values()]
        return self._run(singles, _SINGLE * len(singles))

    def averages(self) -> bool:
        """Run average pools at ties, alone and in chains; return whether all were right."""
        streams: list[Iterator[Case]] = []
        if AVERAGE in self._alone:
            streams.append(map(self._of_its_type, averages(self._limits)))
        places = [place for place in self._places() if place[2] == AVERAGE]
        return self._run(streams + [averages_in(sample, number) for sample, number, _ in places])

    def special(self) -> bool:
        """Run each operator's corner cases, borders and more; return whether all were right."""
        streams = [
            stream
            for layers in (designs, lambda kind: corners(kind, self._limits))
            for stream in self._of_each_operator(layers)
        ]
        streams += [self._drawn(edge, 1, 2) for edge in self._borders.values()]
        streams += [self._drawn(each, 5, 2) for each in self.strategies.values()]
        return self._run(streams)

    def extents(self) -> bool:
        """Return all small extents, for tiles whose size is the driver's business."""
        return self._run(self._of_each_operator(sweep))

    def of_models(self) -> bool:
        """Return layers of the models, one of each in turn."""
        backend = self.search.bench.backend
        for name, case in _named_in_turn(
            {name: model_layers(name, backend, shapes=self.shapes) for name in self.models}
        ):
            before = self.search.accepted.total()
            if not self.search.run_all([case]):
                return False
            self.ran[name] = self.ran.get(name, 0) + self.search.accepted.total() - before
            if self.search.budget.is_spent:
                break
        return True

    def _run(self, streams: Iterable[Iterator[Any]], least: int = 0) -> bool:
        return self.search.run_all(_in_turn(map(self._affordable, streams)), least)

    def _affordable(self, stream: Iterator[Any]) -> Iterator[Any]:
        for number, case in enumerate(stream):
            if number >= _COMPILED and case.kind in self.search.bench.compiled:
                return
            yield case

    def _drawn(self, strategy: st.SearchStrategy[Any], number: int, part: int = 1) -> Iterator[Any]:
        yield from drawn_cases(strategy, max(1, self.examples // (2 * part)), self.seed + number)

    def _of_each_operator(self, layers: Callable[[str], Iterable[Case]]) -> list[Iterator[Case]]:
        """Return layers alone, and at each place of the chains that were accepted."""
        streams: list[Iterator[Case]] = [
            map(self._of_its_type, layers(kind)) for kind in sorted(self._alone)
        ]
        for sample, number, kind in self._places():
            streams.append(_at(sample, number, layers(kind)))
        return streams

    @property
    def _alone(self) -> set[str]:
        backend = self.search.bench.backend
        return set(self.strategies) if backend.cases() else kinds_alone(backend)

    def _places(self) -> Iterator[tuple[ChainCase, int, str]]:
        """Yield places of the chains that were accepted, and the kind of their operator."""
        for sample in self.search.forms.values():
            if isinstance(sample, ChainCase):
                for number, part in enumerate(sample.parts):
                    yield sample, number, part.kind

    @cached_property
    def _borders(self) -> Strategies:
        backend = self.search.bench.backend
        return _by_kind([pattern_layers(each, self._border) for each in backend.patterns])

    def _border(self, kind: str) -> st.SearchStrategy[Any]:
        """Return layers of a kind at the borders of the accelerator."""
        edge = borders(kind, self.search.bench.backend, self._limits)
        return drawn(kind) if edge is None else edge.map(self._of_its_type)

    def _of_its_type(self, case: Any) -> Any:
        """Return the same of float32 for a unit that accepts nothing else."""
        if self.search.dtypes[case.kind] == {"float32"}:
            return replace(case, dtype="float32")
        return case

    @cached_property
    def _limits(self) -> list[int]:
        return stated_limits(self.search.bench.backend, self.search.small)


def _at(sample: ChainCase, number: int, layers: Iterable[Case]) -> Iterator[Case]:
    """Yield a chain with each of the layers in one of its places."""
    made = (fit_part(sample, number, layer) for layer in layers if isinstance(layer, Layer))
    yield from (chain for chain in made if chain is not None)


def _in_turn(streams: Iterable[Iterator[Any]]) -> Iterator[Any]:
    """Yield one of each stream after another, until all have ended."""
    left = list(streams)
    while left:
        for stream in list(left):
            try:
                yield next(stream)
            except StopIteration:
                left.remove(stream)


def _named_in_turn(streams: Mapping[str, Iterator[Case]]) -> Iterator[tuple[str, Case]]:
    return _in_turn([_with_name(name, stream) for name, stream in streams.items()])


def _with_name(name: str, stream: Iterator[Case]) -> Iterator[tuple[str, Case]]:
    for case in stream:
        yield name, case


def kinds_alone(backend: AcceleratorBackend) -> set[str]:
    """Return the kinds of operators that a pattern matches on their own."""
    options = [option for pattern in backend.patterns for option in pattern.node.options()]
    return {
        kind
        for option in options
        for kind in option.kinds()
        if option.all_kinds() == option.kinds() and not _reads_others(option)
    }


def _reads_others(option: Any) -> bool:
    return any(node.kinds() for node in getattr(option, "inputs", ()))


def strategies_of(backend: AcceleratorBackend) -> Strategies:
    """Return the strategy of each operator kind: the backend's own, or those of its patterns.

    Raises:
        AcceleratorError: `cases` of the backend gave something else.
        UsageError: nothing draws layers of its operators.
    """
    where = f"accelerator {backend.name}"
    own = call_hook(where, "cases", lambda: dict(backend.cases()))
    for kind, strategy in own.items():
        if not isinstance(strategy, st.SearchStrategy):
            raise AcceleratorError(
                f"{where}: cases() gave {strategy!r:.80} for {kind}, no strategy"
            )
    if own:
        return own
    found = _by_kind([pattern_layers(pattern) for pattern in backend.patterns])
    if not found:
        kinds = sorted(set().union(*(pattern.node.all_kinds() for pattern in backend.patterns)))
        raise UsageError(
            f"accelerator {backend.name}: nothing draws layers of {', '.join(kinds)}; give "
            "it a method cases() that returns operator names with Hypothesis strategies"
        )
    return found


def _by_kind(drawn: Iterable[Strategies]) -> Strategies:
    """Return the strategies of several patterns, joined by the kind of the last operator."""
    joined: defaultdict[str, list[st.SearchStrategy[Any]]] = defaultdict(list)
    for strategies in drawn:
        for kind, strategy in strategies.items():
            joined[kind].append(strategy)
    return {kind: st.one_of(joined[kind]) for kind in sorted(joined)}


def drawn_cases(strategy: st.SearchStrategy[Any], count: int, seed: int) -> list[Case]:
    """Draw up to ``count`` cases, fewer where few fit together, the same for the same ``seed``.

    They do not run here, where Hypothesis would decide how long a search takes.
    """
    found: list[Case] = []
    how = settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )

    def keep(case: Case) -> None:
        found.append(case)

    with contextlib.suppress(Unsatisfiable):
        with_seed(seed)(how(given(strategy)(keep)))()
    return found


_MOST = 1 << 17


def stated_limits(backend: AcceleratorBackend, accepted: Iterable[Case] = ()) -> list[int]:
    """Return the largest values of sizes, from 2 to 2**17, in ascending order.

    They are the maxima of the declared job's numbers, the upper limits that `supports` states
    for layers, and the unit's parameters from 16: buffers, mostly.

    Args:
        backend: of the accelerator.
        accepted: layers that it accepts.
    """
    numbers = getattr(getattr(backend, "job", None), "numbers", ())
    found = {int(number.maximum) for number in numbers if not number.real}
    found |= {value for value in backend.values.values() if type(value) is int and value >= 16}
    for case in accepted:
        found |= {int(limit.at_most) for limit in _limits(backend, case) if limit.at_most}
    return sorted(n for n in found if 2 <= n <= _MOST)


def _limits(backend: AcceleratorBackend, case: Case) -> list[Limit]:
    graph = run_passes(case.graph())
    found: list[Limit] = []
    for pattern in backend.patterns:
        match = pattern.match(graph, graph.ops[-1])
        if match is None:
            continue
        try:
            stated = backend.supports(match)
        except CovpError:
            continue
        if isinstance(stated, (list, tuple)):
            found += [limit for limit in stated if isinstance(limit, Limit)]
    return [limit for limit in found if isinstance(limit.at_most, (int, float))]
