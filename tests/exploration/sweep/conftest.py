"""Databases of sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exploration.sweep import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """A PostgreSQL server; tests that ask for it are skipped where there is none."""
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed (apt install postgresql)")
    with postgres.server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: postgres.Server) -> str:
    """The URL of an empty database."""
    import sqlalchemy as sql

    from covp.exploration.sweep.database import locate

    engine = sql.create_engine(locate(postgres_server.url).url)
    with engine.begin() as connection:
        connection.execute(sql.text("DROP SCHEMA public CASCADE"))
        connection.execute(sql.text("CREATE SCHEMA public"))
    engine.dispose()
    return postgres_server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is: each kind of database in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "sweep.sqlite")
    found: str = request.getfixturevalue("postgres_url")
    return found
