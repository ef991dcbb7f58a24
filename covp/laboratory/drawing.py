"""Hypothesis outside of a test: examples of a strategy, and a search with its targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from covp.errors import UsageError

_SHRINK = (Phase.generate, Phase.shrink)
_TARGET = (Phase.generate, Phase.target)


def explore(
    strategy: st.SearchStrategy[Any],
    look: Callable[[Any], None],
    examples: int,
    number: int,
    *,
    shrink: bool = False,
    target: bool = False,
) -> None:
    """Call a function with examples of a strategy.

    Args:
        strategy: of the examples.
        look: what is called; with ``target`` it may call `hypothesis.target`.
        examples: how many at most.
        number: the seed.
        shrink: an exception of ``look`` is raised for the simplest example that raises it.
        target: examples are also mutated towards what it targets.
    """
    phases = _SHRINK if shrink else _TARGET if target else (Phase.generate,)

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=phases,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(example: Any) -> None:
        look(example)

    run()


def as_arguments(inputs: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    """Make a strategy of the arguments of calls, from what users give as ``inputs``.

    Raises:
        UsageError: neither a strategy nor a tuple of strategies and values.
    """
    if isinstance(inputs, st.SearchStrategy):
        return inputs.map(_tuple)
    if isinstance(inputs, tuple):
        each = (one if isinstance(one, st.SearchStrategy) else st.just(one) for one in inputs)
        return st.tuples(*each)
    raise UsageError(
        "inputs must be a Hypothesis strategy of the kernel's arguments, or a tuple with a "
        f"strategy or a value for each; not a {type(inputs).__name__}"
    )


def _tuple(drawn: Any) -> tuple[Any, ...]:
    return tuple(drawn) if isinstance(drawn, (tuple, list)) else (drawn,)
