"""Which cases of a test with many run by default: always the same; ``--sample N`` runs others.

The cases of a test are cores, compilers, types and operators, and every core meets some of a
file's tests. A sample has one in `SAMPLES` of the cases of each test, at least one; of all cases of
tests that are marked ``costly`` it has one in `LONG_SAMPLES`, and of what Hypothesis draws one in
`EXAMPLES`. The same code runs the same tests: what fails, fails because of a change. ``--sample N``
runs another part: of `SAMPLES` numbers in a row all cases of a test, of `LONG_SAMPLES` the costly
ones as well. ``--all-cases`` runs them at once. Whoever names files, tests or a ``-k`` expression
gets all of their cases, unless ``--sample`` is given. Tests that are marked ``slow`` are sampled on
request, by ``--slow-sample``: one in `LONG_SAMPLES`. The number is Hypothesis's seed as well: what
failed with it fails again.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings

SAMPLES = 10
"""Numbers in a row whose samples have all cases together."""

LONG_SAMPLES = 40
"""One in so many costly tests runs, and of slow tests with ``--slow-sample``."""
EXAMPLES = 4
"""One in so many of a property's examples run; each number draws others."""
FEWEST_EXAMPLES = 5
"""Properties of fewer examples run them all."""

_RAN = pytest.StashKey[tuple[int, int]]()
"""Cases that run, of how many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sampling")
    group.addoption("--all-cases", action="store_true", help="run all cases and examples")
    group.addoption("--sample", type=int, metavar="N", help="number of the sample (default: 0)")
    group.addoption(
        "--changed",
        nargs="?",
        const="HEAD",
        metavar="REF",
        help="the tests of what differs from a commit (default: HEAD), by tests/README.md",
    )
    group.addoption(
        "--slow-sample", action="store_true", help=f"of slow tests, too, run one in {LONG_SAMPLES}"
    )


@pytest.hookimpl(tryfirst=True)  # before Hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("hypothesis_seed", None) is None:
        # a text, as Hypothesis takes the number 0 for no option
        config.option.hypothesis_seed = str(config.getoption("--sample") or 0)


@pytest.hookimpl(trylast=True)  # after cases are deselected by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _is_sampled(config):
        return
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        if is_slow and not config.getoption("--slow-sample"):
            continue
        is_costly = item.get_closest_marker("costly") is not None
        test = item.nodeid.partition("[")[0]
        groups["slow" if is_slow else "costly" if is_costly else test].append(item)
    number: int = config.getoption("--sample") or 0
    left_out: set[pytest.Item] = set()
    for kind, group in groups.items():
        one_in = LONG_SAMPLES if kind in ("slow", "costly") else SAMPLES
        kept = sample([item.nodeid for item in group], one_in, number)
        left_out |= {item for item in group if item.nodeid not in kept}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    config.stash[_RAN] = (len(items) - len(left_out), len(items))
    items[:] = [item for item in items if item not in left_out]
    for test in {item.function for item in items if isinstance(item, pytest.Function)}:
        _try_fewer_examples(test)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints, where tests run in workers."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["sample"] = session.config.stash.get(_RAN, None)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker tells: all of them collect the same."""
    told = getattr(node, "workeroutput", {}).get("sample")
    if told:
        node.config.stash[_RAN] = tuple(told)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what the sample left out."""
    ran, of = config.stash.get(_RAN, (0, 0))
    if ran < of:
        terminalreporter.write_line(
            f"sample: {ran:,} of {of:,} cases ran, and one in {EXAMPLES} of properties' examples; "
            "--all-cases runs all"
        )


def _is_sampled(config: pytest.Config) -> bool:
    """Return whether a part of the cases is wanted: of folders, not of what was named."""
    if config.getoption("--all-cases"):
        return False
    if config.getoption("--sample") is not None or config.getoption("--slow-sample"):
        return True
    named = any(".py" in argument for argument in config.args)
    return not (named or config.getoption("keyword"))


def _try_fewer_examples(test: Any) -> None:
    """Of a property's examples, one in `EXAMPLES`."""
    name = "_hypothesis_internal_use_settings"  # nothing public changes what a test states
    stated = getattr(test, name, None)
    if stated is not None:
        few = max(min(stated.max_examples, FEWEST_EXAMPLES), stated.max_examples // EXAMPLES)
        setattr(test, name, settings(stated, max_examples=few))


def sample(names: list[str], one_in: int, number: int) -> set[str]:
    """Return those of some cases that a sample has, at least one.

    Args:
        names: of all cases.
        one_in: one in so many of them.
        number: of the sample. Those of ``one_in`` numbers in a row have every case once, or more
            often where there are fewer cases than that.
    """
    one_in = max(1, min(one_in, len(names)))
    # an order that is the same everywhere, and has nothing to do with that of the parameters
    ordered = sorted(names, key=lambda name: (zlib.crc32(name.encode()), name))
    return set(ordered[number % one_in :: one_in])
