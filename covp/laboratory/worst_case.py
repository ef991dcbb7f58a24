"""`worst_case`: a search for the input that costs a kernel the most."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import target

from covp.base.arguments import demand_count
from covp.base.array_text import text
from covp.errors import UsageError
from covp.laboratory.drawing import Arguments, array_of, as_arguments, explore, mutate_arguments
from covp.laboratory.inside import copies
from covp.laboratory.kernel import Kernel
from covp.laboratory.meter import Figure, Meter

_KEPT = 24
"""Inputs that the search goes on from."""
_DRAWN = 300
"""Drawn inputs whose elements it may take."""
_MOVES = (1, 1, 1, 2, 3)
"""Changes at a time."""
_AGAIN = 8
"""Changes that lead to what was tried already."""


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The most expensive input that was found.

    Attributes:
        arguments: of the call.
        count: what it costs.
        of: the figure: "instructions" or "cycles".
        median: of inputs as the strategy draws them.
        calls: of the kernel, in the search.
        test: a pytest file's text that calls the kernel with this input and has its cost as a
            limit.
    """

    arguments: Arguments
    count: int
    of: Figure
    median: float
    calls: int
    test: str = field(repr=False)

    def __str__(self) -> str:
        more = f", {self.count / self.median:.2f} times the median {self.median:g}"
        return (
            f"{self.count} {self.of} for {text(_plain(self.arguments))}"
            f"{more if self.median else ''} ({self.calls} calls)"
        )


def worst_case(
    kernel: Kernel,
    inputs: Any,
    of: Figure = "cycles",
    *,
    examples: int = 2000,
    seed: int = 0,
    mutate: bool = True,
) -> WorstCase:
    """Search for the input with the most cycles.

    A quarter of the examples are drawn at random; for a quarter Hypothesis aims at the cost
    (`hypothesis.target`); for the rest the most expensive inputs are changed, again and again:
    elements moved about, taken from other inputs and from other arguments. What is found is a lower
    bound of the worst case, not a proof.

    Args:
        kernel: to be called; each call starts with the module's variables as they are now.
        inputs: a Hypothesis strategy of tuples of arguments; or a tuple with a strategy, or a
            value, for each argument.
        of: "cycles" of the core's timing model, or "instructions".
        examples: how many inputs are tried.
        seed: of the search. What is found costs as much as it says whatever the seed.
        mutate: False where a strategy promises more than a range of elements, such as sorted ones:
            Hypothesis alone searches.

    Raises:
        UsageError: the inputs are no strategy, or the device does not count.
        DeviceFault: the kernel faulted.
    """
    demand_count("examples", examples)
    demand_count("seed", seed)
    if examples < 4:
        raise UsageError(f"examples={examples}: a search needs 4 or more")
    search = _Search(Meter(kernel, of), seed)
    strategy = as_arguments(inputs)
    explore(strategy, search.draw, examples // 4, seed)
    median = statistics.median(search.counts)
    share = 4 if mutate else 2
    explore(strategy, search.aim, examples // share, seed + 1, target=True)
    while mutate and search.meter.calls < examples:
        search.change()
    count, worst = search.kept[0]
    test = _test(kernel, worst, count, of)
    return WorstCase(worst, count, of, median, search.meter.calls, test)


class _Search:
    """The most expensive inputs so far, the first one the worst."""

    def __init__(self, meter: Meter, seed: int) -> None:
        self.meter = meter
        self.counts: list[int] = []
        self.kept: list[tuple[int, Arguments]] = []
        self._drawn: list[Arguments] = []
        self._tried: set[int] = set()
        self._chance = random.Random(seed)

    def draw(self, arguments: Arguments) -> None:
        """Try an input that was drawn."""
        self.counts.append(self._try(arguments))
        if len(self._drawn) < _DRAWN:
            self._drawn.append(copies(arguments))

    def aim(self, arguments: Arguments) -> None:
        """Try one, and tell Hypothesis its cost."""
        target(float(self._try(arguments)))

    def change(self) -> None:
        """Try one of the most expensive inputs, changed into one that was not tried yet."""
        for _ in range(_AGAIN):
            made = self._mutate()
            if _key(made) not in self._tried:
                break
        self._try(made)

    def _mutate(self) -> Arguments:
        chance = self._chance
        made = self.kept[int(len(self.kept) * chance.random() ** 2)][1]  # better ones more often
        other = chance.choice(self.kept)[1] if chance.random() < 0.5 else chance.choice(self._drawn)
        for _ in range(chance.choice(_MOVES)):
            made = mutate_arguments(made, other, chance)
        return made

    def _try(self, arguments: Arguments) -> int:
        count, key = self.meter(arguments), _key(arguments)
        if key not in self._tried and (len(self.kept) < _KEPT or count >= self.kept[-1][0]):
            # the first of equals: the search walks along them
            self.kept.insert(0, (count, copies(arguments)))
            self.kept.sort(key=lambda one: -one[0])
            del self.kept[_KEPT:]
        self._tried.add(key)
        return count


def _key(arguments: Arguments) -> int:
    """Return a number that is equal for equal arguments."""
    plain = _plain(arguments)
    return hash(tuple(one.tobytes() if isinstance(one, np.ndarray) else one for one in plain))


def _plain(arguments: Arguments) -> Arguments:
    """Return the arguments with arrays in the place of buffers."""
    arrays = [array_of(argument) for argument in arguments]
    return tuple(
        argument if array is None else array
        for argument, array in zip(arguments, arrays, strict=True)
    )


def _test(kernel: Kernel, arguments: Arguments, count: int, of: Figure) -> str:
    """Write a pytest file that shows the worst case."""
    session, given = kernel.session, dict(kernel.function.module.given)
    source = given.pop("source", kernel.function.module.name)
    is_text = isinstance(source, str) and "\n" in source
    constant = f"SOURCE = {_literal(source)}\n\n\n" if is_text else ""
    loading = [
        "SOURCE" if is_text else repr(str(source)),
        *(f"{name}={value!r}" for name, value in given.items() if value),
    ]
    opening = repr(session.platform.name)
    if session.toolchain.name != "zig":
        opening += f", toolchain={session.toolchain.name!r}"
    values = "".join(f"            {text(one)},\n" for one in _plain(arguments))
    return (
        "import numpy as np\n\n"
        "import covp\n"
        "from covp.testing import Kernel\n\n"
        f"{constant or chr(10)}"
        f"def test_the_worst_case_of_{kernel.name}() -> None:\n"
        f"    with covp.Session({opening}) as session:\n"
        f"        module = session.load_c({', '.join(loading)})\n"
        f"        kernel = Kernel(module[{kernel.name!r}])\n"
        f"        kernel(\n{values}        )\n"
        f"        assert kernel.latest.{of} <= {count}\n"
    )


def _literal(source: str) -> str:
    """Write C text between triple quotes, where that is possible."""
    if "\\" in source or '"""' in source or source.endswith('"'):
        return repr(source)
    return f'"""{source}"""'
