"""Locks where a file system has none."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from covp.errors import CovpError
from covp.exploration.sweep.lock import Lock, is_held


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError(number, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(CovpError, match=r"its file system has no locks .* -o, or a PostgreSQL"):
        Lock(tmp_path / "sweep.sqlite")
    assert not is_held(tmp_path / "sweep.sqlite")
