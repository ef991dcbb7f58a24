"""A clock for searches that have to try the same layers on every machine."""

from __future__ import annotations

import itertools

import pytest

from covp.testing.verify import search


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each layer takes 20 ms of a search's budget, whatever the machine needs for it."""
    looks = itertools.count()
    monkeypatch.setattr(search, "_processor_time", lambda: 0.02 * next(looks))
