"""Hypothesis' examples: each begins with the device as the test found it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_EXPLICIT = "hypothesis_explicit_examples"
_SETTINGS = "_hypothesis_internal_use_settings"


def is_random(test: object) -> bool:
    """Return whether the test function is one of Hypothesis' (``@given``)."""
    return hasattr(test, "hypothesis") and "hypothesis" in sys.modules


def _explicit(function: Any) -> int:
    """Count the examples of a test from ``@example``; they run before those that are drawn."""
    settings = getattr(function, _SETTINGS, None)
    phases = [phase.name for phase in settings.phases] if settings is not None else []
    return len(getattr(function, _EXPLICIT, ())) if "explicit" in phases else 0


class LastFailure:
    """The failing example that ran last, which is the simplest one, as a test of its own."""

    def __init__(self, test: Any) -> None:
        self._fixtures = set(inspect.signature(test).parameters)
        self._failed: tuple[Callable[..., Any], dict[str, Any]] | None = None

    def keep(self, function: Callable[..., Any], named: dict[str, Any]) -> None:
        """Keep the failed ``function`` (without ``@given``) and its arguments ``named``."""
        self._failed = function, named

    @property
    def text(self) -> str:
        """Python text; "" if nothing failed."""
        if self._failed is None:
            return ""
        from covp.laboratory.reproduction import reproduction  # which imports Hypothesis

        function, named = self._failed
        fixed = {name: value for name, value in named.items() if name in self._fixtures}
        drawn = {name: value for name, value in named.items() if name not in self._fixtures}
        return reproduction(function, drawn, fixed)


@contextmanager
def each_example(
    test: Any, node_id: str, before: Callable[[bool], None], failure: LastFailure
) -> Iterator[None]:
    """Call ``before`` at the start of each example, in this context.

    `hypothesis.inner_test` is what Hypothesis' documentation gives plugins for that ("Custom
    function execution").

    Args:
        test: a function decorated with ``@given``, or a bound method.
        node_id: of the test: examples are stored for each device apart.
        before: called with True for the examples that are written in the test (``@example``).
        failure: called for examples that fail.
    """
    function = getattr(test, "__func__", test)
    handle, settings = function.hypothesis, getattr(function, _SETTINGS, None)
    inner = handle.inner_test
    explicit = iter([True] * _explicit(function))

    @functools.wraps(inner)
    def example(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        before(next(explicit, False))
        try:
            return inner(*arguments, **named)
        except Exception:
            failure.keep(inner, named)
            raise

    example._hypothesis_internal_add_digest = node_id.encode()  # type: ignore[attr-defined]
    handle.inner_test = example
    if settings is not None:
        setattr(function, _SETTINGS, _with_time_to_compile(settings))
    try:
        yield
    finally:
        handle.inner_test = inner
        if settings is not None:
            setattr(function, _SETTINGS, settings)


def _with_time_to_compile(settings: Any) -> Any:
    """Remove the deadline, unless the test or the profile has one of its own.

    The first example that needs a kernel compiles it, which takes seconds; the same example is
    fast when it is repeated, and Hypothesis would take that for an unreliable test. A method runs
    on several devices with a ``self`` for each, as under ``parametrize``.
    """
    from hypothesis import HealthCheck
    from hypothesis import settings as Settings

    deadline = settings.deadline
    if deadline == Settings.get_profile("default").deadline:
        deadline = None
    suppressed = {*settings.suppress_health_check, HealthCheck.differing_executors}
    return Settings(parent=settings, deadline=deadline, suppress_health_check=suppressed)
