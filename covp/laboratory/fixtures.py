"""The fixtures of the pytest plugin; `Benches` keeps the sessions behind them open.

They are not function-scoped, so that Hypothesis' tests may use them: Hypothesis rejects those.
What is put back between tests and examples is the state of the device, not the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from covp.errors import CovpError
from covp.laboratory.figures import Recorder
from covp.laboratory.options import LaboratoryOptions
from covp.laboratory.target import Target

if TYPE_CHECKING:
    from covp.laboratory.bench import Bench
    from covp.laboratory.kernel_loader import KernelLoader
    from covp.runtime.session import Session

NAME = "covp-benches"
"""The name under which `Benches` is a plugin of pytest."""


class Benches:
    """The open sessions of this process, one for each target, and what ran on them."""

    def __init__(self, options: LaboratoryOptions) -> None:
        self.options = options
        self.recorder = Recorder()
        self._open: dict[Target, Bench] = {}
        self._entered: set[object] = set()

    def bench(self, target: Target) -> Bench:
        """Return the session on a target, opened when it is first used. Raises CovpError."""
        from covp.laboratory.bench import Bench

        if target not in self._open:
            chosen = self.options
            covered = chosen.coverage is not None
            checks = {"sanitize": chosen.sanitize, "ubsan": chosen.ubsan}
            self._open[target] = Bench(target, covered, **checks)
        return self._open[target]

    def enter(self, node: pytest.Item | pytest.Collector) -> None:
        """Undo what happens from now on when the fixtures of this node are gone.

        Called before the first fixture of a test, class or file, and before a test's body.
        """
        if self._open and node not in self._entered and not isinstance(node, pytest.Session):
            self._entered.add(node)
            self.mark(node)
            node.addfinalizer(lambda: self._leave(node))  # the first one runs last

    def _leave(self, node: pytest.Item | pytest.Collector) -> None:
        self._entered.discard(node)
        self.back(node)
        self.forget(node)

    def mark(self, level: object) -> None:
        """Save the present state of all benches for `back` to this level."""
        for bench in self._open.values():
            bench.mark(level)

    def back(self, level: object) -> None:
        """Return all benches to the state that `mark` saved for this level."""
        with one_line():
            for bench in self._open.values():
                bench.back(level)

    def forget(self, level: object) -> None:
        """Drop the states that `mark` saved for this level."""
        for bench in self._open.values():
            bench.forget(level)

    def coverage_json(self) -> str:
        """Return the coverage of all sessions as JSON for `CoverageData.from_json`, or ""."""
        counted = [bench.coverage for bench in self._open.values() if bench.coverage is not None]
        if not counted:
            return ""
        total = counted[0].data
        for other in counted[1:]:
            total.add(other.data)
        return total.to_json()

    def close(self) -> None:
        """Close all sessions."""
        while self._open:
            self._open.popitem()[1].close()


def benches(config: pytest.Config) -> Benches:
    """Return the benches of this run."""
    found = config.pluginmanager.get_plugin(NAME)
    assert isinstance(found, Benches)
    return found


@contextmanager
def one_line() -> Iterator[None]:
    """Report an error of covp as the test's error, without covp's own frames."""
    __tracebackhide__ = True
    try:
        yield
    except CovpError as error:
        line = f"{type(error).__name__}: {error}"
        raise pytest.fail.Exception(line, pytrace=False) from None


@pytest.fixture(scope="session")
def covp_device(request: pytest.FixtureRequest) -> Target:
    """Return the target of the test (`platform`, `device`); each of `--covp-platform` in turn."""
    chosen = getattr(request, "param", benches(request.config).options.targets[0])
    with one_line():
        return chosen if isinstance(chosen, Target) else Target.parse(chosen)


@pytest.fixture(scope="session")
def covp_session(request: pytest.FixtureRequest, covp_device: Target) -> Session:
    """Return a `covp.Session` on `covp_device`, open for all tests and put back between them."""
    with one_line():
        return benches(request.config).bench(covp_device).session


@pytest.fixture(scope="module")
def kernel(
    request: pytest.FixtureRequest, covp_device: Target, covp_session: Session
) -> Iterator[Callable[..., Any]]:
    """Load a C function that takes arrays: `kernel("file.c", "function", flags=(), include=())`."""
    from covp.laboratory.kernel_loader import KernelLoader

    mine = benches(request.config)
    loader: KernelLoader = KernelLoader(
        mine.bench(covp_device), mine.recorder, request.path, request.config.rootpath
    )
    yield loader
    loader.close()
