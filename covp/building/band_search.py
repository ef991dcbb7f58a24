"""`BandSearch`: which layers to cut into how many rows, by simulated schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from covp.accelerator.backend import AcceleratorBackend
from covp.building.list_schedule import PartCost, PartTask, list_schedule
from covp.building.part_costs import MeasuredParts, part_sizes, tasks_of
from covp.codegen.aliases import first_names
from covp.codegen.bands import Band, can_be_cut, cut
from covp.codegen.parts import placed_band
from covp.codegen.program import LayerPart, Piece, ProgramLayer
from covp.errors import UsageError
from covp.graph.graph import Op, Tensor

Rows = Mapping[str, int]
_CALL = 100
"""Cycles of the core by which a band costs more than its share, before one was measured."""
_WINDOW = 1000
"""The same of a layer with windows, whose kernel prepares more."""
_COUNTS = (2, 3, 4, 6, 8, 12, 16, 32)
"""Numbers of bands that are tried."""
_END = 30
"""Cycles in which the core learns that a unit is over; what is more is work on each result."""
_MOST_PARTS = 600
"""Limit of parts of all layers together; simulations of more take too long."""


class BandSearch:
    """Choices of bands, their costs and their schedules; ``whole`` are the layers as they are."""

    def __init__(self, whole: MeasuredParts) -> None:
        self._whole, program = whole, whole.program
        assert program.lowered is not None
        self._names = first_names(program.lowered)
        self._backends = {each.name: each.backend for each in program.accelerators}
        ops = {op.name: op for op in program.lowered.ops}
        self._ops = {
            layer.name: ops[layer.name]
            for layer in program.layers
            if len(layer.operators) == 1 and layer.name in ops and can_be_cut(ops[layer.name])
        }
        self._parts: dict[tuple[str, int], tuple[LayerPart, ...]] = {}
        self._costs: dict[tuple[str, int], list[PartCost] | None] = {}
        self._measured: set[tuple[str, int]] = set()
        self._overhead: dict[str, float] = {}
        self._known: dict[frozenset[tuple[str, int]], float] = {}

    def learn(self, measured: MeasuredParts, rows: Rows) -> None:
        """Take over what a program with bands of ``rows`` cost: it was ``measured``."""
        for number, layer in enumerate(measured.program.layers):
            if layer.name not in rows:
                continue
            key, costs = (layer.name, rows[layer.name]), measured.costs[number]
            self._costs[key] = costs
            self._measured.add(key)
            whole = sum(cost.alone for cost in self._whole.costs[number])
            more = sum(cost.alone for cost in costs) - whole
            self._overhead[layer.name] = max(0.0, more / len(costs))
        self._known = {}
        self._costs = {key: own for key, own in self._costs.items() if key in self._measured}

    def best(self, starts: Sequence[Rows]) -> tuple[dict[str, int], float]:
        """Return the rows by layer that take the fewest cycles, and these.

        One or two layers at a time are cut otherwise, from each of ``starts``, as long as there
        is a way that is better; of many only from the two that are best.
        """
        first = sorted(starts, key=self.cycles)[:2]
        found = [self._descent(dict(start)) for start in first]
        return min(found, key=lambda each: each[1])

    def uniform(self, count: int) -> dict[str, int]:
        """Return the rows with ``count`` bands of every layer that can be cut."""
        return self._set_bands({}, dict.fromkeys(self._ops, count))

    def _set_bands(self, rows: Rows, counts: Mapping[str, int]) -> dict[str, int]:
        """Return rows with layers in ``count`` bands; whole for 1 and where they cannot be cut."""
        found = dict(rows)
        for name, count in counts.items():
            height = -(-self._ops[name].output.shape[1] // count)
            found.pop(name, None)
            if count > 1 and self._cost_of(name, height) is not None:
                found[name] = height
        return found

    def _moves(self) -> list[dict[str, int]]:
        """Return numbers of bands for a layer, and for two that follow each other."""
        names = list(self._ops)
        return [
            dict.fromkeys(group, count)
            for group in (*((name,) for name in names), *pairwise(names))
            for count in (1, *_COUNTS)
        ]

    def _descent(self, rows: dict[str, int]) -> tuple[dict[str, int], float]:
        least, improved, moves = self.cycles(rows), True, self._moves()
        while improved:
            improved = False
            for move in moves:
                other = self._set_bands(rows, move)
                cycles = self.cycles(other)
                if cycles < least - 1:
                    rows, least, improved = other, cycles, True
        return rows, least

    def cycles(self, rows: Rows) -> float:
        """Return the cycles of the best schedule with these bands."""
        key = frozenset(rows.items())
        if key not in self._known:
            tasks = self._tasks(rows)
            many = len(tasks) > _MOST_PARTS
            self._known[key] = float("inf") if many else self._schedule(tasks)
        return self._known[key]

    def _schedule(self, tasks: Sequence[PartTask]) -> float:
        return list_schedule(tasks, self._whole.units, fast=True).cycles

    def _tasks(self, rows: Rows) -> list[PartTask]:
        parts: list[Sequence[LayerPart]] = []
        costs: list[Sequence[PartCost]] = []
        layers = self._whole.program.layers
        for number, layer in enumerate(layers):
            count = rows.get(layer.name)
            own = self._cost_of(layer.name, count) if count is not None else None
            if count is None or own is None:
                parts.append(layer.parts)
                costs.append(self._whole.costs[number])
            else:
                parts.append(self._parts[layer.name, count])
                costs.append(own)
        return tasks_of(parts, self._whole.queues, costs)

    def _cost_of(self, name: str, rows: int) -> list[PartCost] | None:
        """Return the cost of each band of a layer; None where it cannot be cut so."""
        key = name, rows
        if key not in self._costs:
            bands = cut(self._ops[name], rows)
            layers = self._whole.program.layers
            number = next(n for n, layer in enumerate(layers) if layer.name == name)
            self._parts[key] = tuple(self._part(band, layers[number]) for band in bands)
            self._costs[key] = self._estimate(number, rows, bands) if len(bands) > 1 else None
        return self._costs[key]

    def _part(self, band: Band, layer: ProgramLayer) -> LayerPart:
        def piece(tensor: Tensor) -> Piece:
            whole, offset = band.slices[id(tensor)]
            name = self._names.get(id(whole), whole.name)
            return Piece(name, offset, offset + tensor.nbytes)

        inputs = [t for t in band.op.inputs if t is not None and not t.constant]
        reads = tuple(piece(tensor) for tensor in inputs)
        return LayerPart(layer.parts[0].functions, reads, (piece(band.op.output),))

    def _estimate(self, number: int, rows: int, bands: Sequence[Band]) -> list[PartCost] | None:
        layer, (whole,) = self._whole.program.layers[number], self._whole.costs[number]
        sizes = part_sizes(self._parts[layer.name, rows])
        if layer.target != "cpu" and layer.parts[0].is_asynchronous:
            shares = self._by_unit(self._backends[layer.target], self._ops[layer.name], bands)
            if shares is None:
                return None
            return self._of_jobs(number, whole, shares)
        more = self._overhead.get(layer.name, _CALL if _is_pointwise(bands) else _WINDOW)
        return [PartCost(whole.alone * size / sum(sizes) + more) for size in sizes]

    def _of_jobs(self, number: int, whole: PartCost, shares: Sequence[float]) -> list[PartCost]:
        """Return the costs of bands that are one job each."""
        jobs = self._whole.jobs[number]
        busy, memory, fixed = (
            sum(getattr(job.timing, name) for job in jobs)
            for name in ("cycles", "memory", "startup")
        )
        before = jobs[0].start if jobs else whole.before
        work = max(0.0, whole.after - _END)
        return [
            PartCost(
                before,
                busy * share,
                whole.inside,
                whole.after - work + work * share,
                memory * share,
                fixed * share,
            )
            for share in shares
        ]

    def _by_unit(
        self, backend: AcceleratorBackend, op: Op, bands: Sequence[Band]
    ) -> list[float] | None:
        """Return a unit's estimated share of the layer's cycles per band; None: no estimate."""
        core = self._whole.program.platform.core
        try:
            forms = {id(band.op): placed_band(backend, band.op, core).cycles for band in bands}
            all_of_it = placed_band(backend, op, core).cycles
        except UsageError:
            return None
        if not all_of_it:
            return [band.op.output.nbytes / op.output.nbytes for band in bands]
        return [(forms[id(band.op)] or 0) / all_of_it for band in bands]


def _is_pointwise(bands: Sequence[Band]) -> bool:
    """Return whether each input row is read by one band."""
    op = bands[0].op
    return op.input(0).shape[:3] == op.output.shape[:3]
