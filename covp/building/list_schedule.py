"""`list_schedule`: when core and units compute the parts of a network, and what that takes.

List scheduling (R. L. Graham, Bounds on multiprocessing timing anomalies, 1969): whenever core or
unit is free it takes, of the parts whose operands are there, the one with the highest priority.
Equal units take their parts from one queue.
Starting a unit and learning that it is over are work of the core. The core leaves no part half
done, and a unit has one job at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Literal

from covp.codegen.overlap import Action
from covp.hardware.shared_port import SharedPort


@dataclass(frozen=True)
class PartCost:
    """Cycles of a part.

    Attributes:
        before: of the core, until the unit starts; of a part without a unit all.
        busy: of the unit.
        inside: of the core, from the start of the unit until it is free for something else.
        after: of the core, when the unit is over.
        memory: of ``busy``, in which the unit's port of the memory is in use.
        fixed: of ``busy``, in which neither that nor computing goes on.
    """

    before: float
    busy: float = 0
    inside: float = 0
    after: float = 0
    memory: float = 0
    fixed: float = 0

    @property
    def alone(self) -> float:
        """Cycles where the core waits for the unit."""
        return self.before + self.busy + self.after


@dataclass(frozen=True)
class PartTask:
    """A part to be scheduled.

    Attributes:
        layer, part: see `Action`.
        unit: name of the unit that the core need not wait for, or of the first of equal ones;
            empty: none.
        cost: its cycles.
        needs: positions of the tasks, earlier ones, that must be over.
    """

    layer: int
    part: int
    unit: str
    cost: PartCost
    needs: tuple[int, ...]


@dataclass(frozen=True)
class CallOrder:
    """The order of the core's calls, and the cycles of all."""

    actions: tuple[Action, ...]
    cycles: float


Priority = Callable[[Sequence[PartTask]], list[float]]


@dataclass(frozen=True)
class Units:
    """The units of a schedule, as far as they depend on each other.

    Attributes:
        equal: the first of equal units to the names of all; those that it does not name are alone.
        shared_port: they have one port of the memory together, else each has its own.
    """

    equal: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    shared_port: bool = False


_ALONE = Units()


def list_schedule(
    tasks: Sequence[PartTask], units: Units = _ALONE, fast: bool = False
) -> CallOrder:
    """Return the best schedule of a few rules; of equal ones the nearest to the layers' order.

    Args:
        tasks: in an order that can run.
        units: those that are equal, each of which takes any of the tasks of the first.
        fast: without the rule that is seldom the best.
    """
    rules: tuple[Priority, ...] = (
        (_in_order, _newest) if fast else (_in_order, _newest, _longest_path)
    )
    found = [simulate(tasks, rule(tasks), units) for rule in rules]
    return min(found, key=lambda schedule: round(schedule.cycles))


def simulate(
    tasks: Sequence[PartTask], priority: Sequence[float], units: Units = _ALONE
) -> CallOrder:
    """Return the schedule of ``tasks`` with a ``priority`` for each; the highest comes first.

    Args:
        tasks: in an order that can run.
        units: as of `list_schedule`.
    """
    return _Run(tasks, priority, units).schedule()


def _in_order(tasks: Sequence[PartTask]) -> list[float]:
    return [float(-position) for position in range(len(tasks))]


def _newest(tasks: Sequence[PartTask]) -> list[float]:
    """Return the last layer whose operands are there first: tensors die soon."""
    return [float(task.layer) - position / len(tasks) for position, task in enumerate(tasks)]


def _longest_path(tasks: Sequence[PartTask]) -> list[float]:
    """Return the cycles from the begin of a task to the end of the last one that needs it."""
    left = [0.0] * len(tasks)
    for position in reversed(range(len(tasks))):
        left[position] += tasks[position].cost.alone
        for need in tasks[position].needs:
            left[need] = max(left[need], left[position])
    return left


class _Run:
    """One run of the rule."""

    def __init__(self, tasks: Sequence[PartTask], priority: Sequence[float], units: Units) -> None:
        self.tasks, self.priority = tasks, priority
        self.missing = [len(task.needs) for task in tasks]
        self.users: list[list[int]] = [[] for _ in tasks]
        for position, task in enumerate(tasks):
            for need in task.needs:
                self.users[need].append(position)
        self.ready: dict[str, list[tuple[float, int]]] = {task.unit: [] for task in tasks}
        names = dict.fromkeys(task.unit for task in tasks if task.unit)
        self.order = {name: [*units.equal.get(name, (name,))] for name in names}
        self.port = SharedPort() if units.shared_port else None
        self.starts: dict[int, float] = {}
        self.free = {name: [*range(len(equal))] for name, equal in self.order.items()}
        self.running: list[tuple[float, int, int]] = []
        self.now = 0.0
        self.actions: list[Action] = []
        for position, count in enumerate(self.missing):
            if not count:
                self._is_ready(position)

    def schedule(self) -> CallOrder:
        """Simulate until nothing is left; return the schedule."""
        while True:
            if self.running and self.running[0][0] <= self.now:
                self._end()
            elif unit := self._startable():
                self._begin(heappop(self.ready[unit])[1])
            elif self.ready.get(""):
                position = heappop(self.ready[""])[1]
                self._act(position, "run")
                self.now += self.tasks[position].cost.alone
                self._over(position)
            elif self.running:
                self._end()
            else:
                return CallOrder(tuple(self.actions), self.now)

    def _startable(self) -> str:
        """Return the free unit whose next part is the most important; empty: none."""
        able = [
            (self.ready[unit][0], unit)
            for unit, free in self.free.items()
            if free and self.ready[unit]
        ]
        return min(able)[1] if able else ""

    def _begin(self, position: int) -> None:
        task = self.tasks[position]
        place = heappop(self.free[task.unit])
        self._act(position, "begin", place)
        start = self.now + task.cost.before
        self.now = start + task.cost.inside
        heappush(self.running, (start + task.cost.busy, position, place))
        if self.port is not None and task.cost.memory:
            self.starts[position] = start
            self.port.begin(position, start, task.cost.memory)
            self._move_ends(self.port.ends())

    def _move_ends(self, moved: Mapping[Hashable, float]) -> None:
        """Let what runs take as long as its data need on the port that all share."""
        for place, (_, position, own) in enumerate(self.running):
            if position in moved:
                cost = self.tasks[position].cost
                least = self.starts[position] + cost.busy
                finish = max(least, moved[position] + cost.fixed)
                self.running[place] = (finish, position, own)
        heapify(self.running)

    def _end(self) -> None:
        finish, position, place = heappop(self.running)
        task = self.tasks[position]
        self._act(position, "end", place)
        self.now = max(self.now, finish) + task.cost.after
        heappush(self.free[task.unit], place)
        self._over(position)

    def _over(self, position: int) -> None:
        for user in self.users[position]:
            self.missing[user] -= 1
            if not self.missing[user]:
                self._is_ready(user)

    def _is_ready(self, position: int) -> None:
        heappush(self.ready[self.tasks[position].unit], (-self.priority[position], position))

    def _act(
        self, position: int, what: Literal["run", "begin", "end"], place: int | None = None
    ) -> None:
        task = self.tasks[position]
        unit = "" if place is None else self.order[task.unit][place]
        self.actions.append(Action(task.layer, task.part, what, unit))
