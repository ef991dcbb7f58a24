"""Sessions for the planted bugs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.laboratory.planted.bench import Bench


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    """One for all tests of a process."""
    opened = Bench()
    yield opened
    opened.close()
