"""`stated_limits`: the numbers at which an accelerator says that it ends."""

from __future__ import annotations

from collections.abc import Iterable

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.limits import Limit
from covp.errors import CovpError
from covp.graph.passes import run_passes
from covp.testing import Case

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
