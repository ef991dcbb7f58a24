"""No false alarm: every correct twin with all checks on at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.laboratory.planted import test_property, test_sanitizer, test_undefined
from tests.laboratory.planted.bench import Call, Draw, first_fault, on_platforms
from tests.laboratory.planted.test_property import PROPERTIES, Property


def under_hypothesis(name: str, prop: Property) -> Call:
    """A call with some inputs of a property."""

    def call(kernel: Any, draw: Draw) -> None:
        @settings(
            max_examples=10,
            database=None,
            derandomize=True,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(prop.inputs)
        def run(inputs: tuple[Any, ...]) -> None:
            prop.run(kernel(name), *inputs)

        run()

    return call


CALLS: dict[str, tuple[str, Call]] = {
    **{n: (f, c) for f, table in test_sanitizer.TABLES.items() for n, c in table.items()},
    **{n: (test_undefined.FILE, c) for n, c in test_undefined.CALLS.items()},
    **{n: (test_property.FILE, under_hypothesis(n, p)) for n, p in PROPERTIES.items()},
}


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(CALLS))
def test_silence(bench, name, platform, toolchain):
    session = bench.session(platform, toolchain=toolchain, sanitize=True, ubsan=True)
    file, call = CALLS[name]
    assert first_fault(lambda name: bench.kernel(name, file, False, session), call) is None
