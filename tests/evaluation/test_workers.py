"""Worker processes: results in any order, errors as results, a death is one line."""

from __future__ import annotations

import os

import pytest

from covp.errors import CapacityError, DeviceError
from covp.evaluation.workers import Failed, Workers


def halved(value: int) -> int:
    if value % 2:
        raise CapacityError(f"{value} is\nodd", value, 0)
    return value // 2


def die(value: int) -> int:
    os._exit(value)


def test_results_and_failures() -> None:
    with Workers(2) as workers:
        found = dict(workers.call(halved, range(6)))
    assert [found[i] for i in (0, 2, 4)] == [0, 1, 2]
    assert [found[i] for i in (1, 3, 5)] == [Failed(f"{i} is odd") for i in (1, 3, 5)]


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(DeviceError, match="a worker process died"), Workers(2) as workers:
        list(workers.call(die, [1, 2, 3]))
