"""The pytest plugin: options, markers, and the hooks that run tests on emulated cores.

Installed with the package. Nothing heavier than this is imported before a test uses a fixture:
the emulator and numpy are loaded by `covp.laboratory.bench`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from covp.laboratory.examples import LastFailure, each_example, is_random
from covp.laboratory.figures import payload
from covp.laboratory.fixtures import (
    NAME,
    Benches,
    benches,
    covp_device,
    covp_session,
    kernel,
    one_line,
)
from covp.laboratory.options import add_options, device_name, missing_features, read_options
from covp.laboratory.review import COVERAGE, Review
from covp.laboratory.target import Target

__all__ = ["covp_device", "covp_session", "kernel"]

_EXAMPLE = "example"
_FAILURE = pytest.StashKey[LastFailure]()
_MARKERS = (
    'covp_feature(name, ...): skip on cores without these features ("fpu", "dsp", "riscv", ...)',
    "covp_random: the inputs differ from run to run; no instructions go into the baseline",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of covp on ``parser``."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options; what keeps state is a plugin of its own."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    options = read_options(config)
    config.pluginmanager.register(Benches(options), NAME)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Review(options), "covp-review")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the coverage of the sessions, from workers of pytest-xdist or the only process."""
    config = session.config
    covered = benches(config).coverage_json()
    review = config.pluginmanager.get_plugin("covp-review")
    if isinstance(review, Review):
        review.add_coverage(covered)
    else:
        config.workeroutput[COVERAGE] = covered  # type: ignore[attr-defined]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close what is open."""
    found = config.pluginmanager.get_plugin(NAME)
    if isinstance(found, Benches):
        found.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on each platform, unless it has a choice of its own."""
    if "covp_device" in metafunc.fixturenames and not _chooses_itself(metafunc):
        targets = benches(metafunc.config).options.targets
        names = [device_name(target) for target in targets]
        metafunc.parametrize("covp_device", targets, indirect=True, ids=names, scope="session")


def _chooses_itself(metafunc: pytest.Metafunc) -> bool:
    """Return whether the test is parametrized with devices, by ``covp_device``."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",")]
        if "covp_device" in names:
            return True
    return False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the core cannot do, before anything is opened."""
    marks = list(item.iter_markers("covp_feature"))
    if not marks:
        return
    wanted = tuple(str(name) for mark in marks for name in mark.args or ("",))
    from covp.chip.platform_file import load_platform

    target = _target(item)
    with one_line():
        platform = load_platform(target.platform)
        missing = missing_features(platform, wanted)
    if missing:
        pytest.skip(f"{device_name(target)} ({platform.core.name}) has no {', '.join(missing)}")


def _target(item: pytest.Item) -> Target:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    chosen = parameters.get("covp_device", benches(item.config).options.targets[0])
    with one_line():
        return chosen if isinstance(chosen, Target) else Target.parse(chosen)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> None:
    """Keep what a fixture does to the device as long as the fixture."""
    benches(request.config).enter(request.node)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run the body of the test; examples of Hypothesis begin with the same state each."""
    found = benches(item.config)
    found.enter(item)
    test = getattr(item, "obj", None)
    uses = "covp_device" in getattr(item, "fixturenames", ())
    fixed = item.get_closest_marker("covp_random") is None
    found.recorder.begin(fixed)
    if not (uses and is_random(test)):
        yield
        return
    found.mark(_EXAMPLE)

    def before(explicit: bool) -> None:
        found.back(_EXAMPLE)
        found.recorder.fixed = explicit and fixed

    failure = item.stash[_FAILURE] = LastFailure(test)
    with each_example(test, item.nodeid, before, failure):
        yield
    found.forget(_EXAMPLE)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Send what the kernels of a test that passed needed with its report."""
    outcome: Any = yield
    if call.when != "call":
        return
    recorder = benches(item.config).recorder
    used = recorder.end()
    report = outcome.get_result()
    failure = item.stash.get(_FAILURE, None)
    if report.failed and failure is not None and failure.text:
        report.sections.append((f"{item.name} as a test of its own", failure.text))
    if used and report.passed and not hasattr(report, "wasxfail"):
        report.covp = payload(recorder.toolchain, used)
        for key, figures in sorted(used.items()):
            where = f"covp.{key.platform}.{key.kernel}"
            for name, value in figures.stable_figures().items():
                item.user_properties.append((f"{where}.{name}", value))
