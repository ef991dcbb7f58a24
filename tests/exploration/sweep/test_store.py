"""The store: one row per key, one writer or shared work, and errors of one line."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sql

from covp.errors import CovpError, UsageError
from covp.exploration.sweep import database, tables
from covp.exploration.sweep.points import Row
from covp.exploration.sweep.status import read_status
from covp.exploration.sweep.store import Store, stored_rows
from tests.exploration.sweep import standins
from tests.exploration.sweep.postgres import Server

POINTS = standins.points(20)
KEYS = [point.key for point in POINTS]
ROWS = standins.arithmetic(POINTS)


def failed(number: int, reason: str) -> Row:
    return Row(key=KEYS[number], model="m", platform="p", status="failed", reason=reason)


def test_rows_come_back_as_they_were(url: str) -> None:
    full = Row(
        key="k" * 64, model="ü", platform="p", accelerators=("a:size=8", "b"), seed=2**40,
        vary={"a.size": 8, "platform.core": "cortex-m4", "a.share": 0.1, "a.on": True},
        how="run", instructions=2**60, cycles=1, seconds=1e-9, energy_j=0.1 + 0.2, area_um2=1e300,
        matches_reference=False, cycles_error=0, covp_version="1",
    )  # fmt: skip
    with Store(url) as store:
        store.put([full, *ROWS], 0)
        assert store.rows(["nothing", full.key, *KEYS[::-1]]) == [full, *ROWS[::-1]]
        assert {row.key for row in store.rows()} == {full.key, *KEYS}
    assert stored_rows(url, [full.key]) == [full]


def test_work_done_twice_is_one_row(url: str) -> None:
    with Store(url) as store:
        store.put([failed(0, "first"), ROWS[1], ROWS[1]], 0)
        store.put([failed(0, "second"), failed(1, "late")], 0)
        assert store.rows(KEYS) == [failed(0, "second"), ROWS[1]]
        store.put(ROWS[:2], 0)
        store.put([failed(0, "late")], 0)
        assert store.rows() == [ROWS[1], ROWS[0]]  # as they were found
        assert store.statuses(KEYS) == dict.fromkeys(KEYS[:2], "ok")
        store.put([failed(2, "once")], 0)
        store.forget_failures(KEYS)
        assert store.statuses(KEYS) == dict.fromkeys(KEYS[:2], "ok")


def test_coordinators_share_work(postgres_url: str) -> None:
    with Store(postgres_url) as first, Store(postgres_url) as second:
        first.join(20)
        second.join(20)
        assert first.claim(KEYS[:10]) == set(KEYS[:10])
        assert second.claim(KEYS[5:15]) == set(KEYS[10:15])
        assert first.claim(KEYS[:10]) == set(KEYS[:10])
        first.put(ROWS[:5], 15)
        assert second.claim(KEYS) == set(KEYS[10:])
        # it is silent for too long: others may go on with what it had
        with first._begin() as connection:
            late = tables.now(connection) - tables.LEASE - 1
            mine = tables.coordinators.c.id == first._me
            connection.execute(sql.update(tables.coordinators).where(mine).values(heartbeat=late))
        assert second.claim(KEYS[:10]) == set(KEYS[5:10])
        first.beat()
        assert first.claim(KEYS) == set()
        second.close()
        assert first.claim(KEYS) == set(KEYS[5:])


def test_status_while_it_runs_and_after(url: str) -> None:
    with Store(url) as store:
        store.join(20)
        store.put([*ROWS[:6], failed(7, "no")], 13)
        status = read_status(url)
        assert (status.done, status.failed, status.left) == (6, 1, 13)
        assert status.running[0].endswith(f":{os.getpid()}") and status.rate
    status = read_status(url)
    assert (status.done, status.left, status.running, status.rate) == (6, 13, (), None)
    assert str(status) == "6 done, 1 failed, 13 left; not running"


def test_a_column_of_a_later_version_is_added(url: str) -> None:
    with Store(url) as store:
        store.put(ROWS[:1], 0)
        with store._begin() as connection:
            connection.execute(sql.text("ALTER TABLE rows DROP COLUMN accuracy"))
    with Store(url) as store:
        assert store.rows() == ROWS[:1]


def test_one_writer_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "sweep.sqlite"
    with Store(path):
        with pytest.raises(UsageError, match=f"process {os.getpid()} is working on this sweep"):
            Store(path)
        assert stored_rows(path) == []
    Store(path).close()


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sweep.sqlite"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store(path) as store:
        store.put(ROWS[:10], 10)
        largest = (tmp_path / "sweep.sqlite-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
        try:
            many = [failed(number, "x" * 99_999) for number in range(10, 20)]
            with pytest.raises(CovpError, match=r"sweep\.sqlite: .*; make room .*stays") as error:
                store.put(many, 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert "\n" not in str(error.value)
        assert store.statuses(KEYS).keys() == set(KEYS[:10])
        store.put(ROWS, 0)
    assert stored_rows(path, KEYS) == ROWS


@pytest.mark.costly
def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sweep.sqlite"
    code = (
        "import os, sys; from covp.exploration.sweep.store import Store\n"
        "from tests.exploration.sweep import standins\n"
        "store, rows = Store(sys.argv[1]), standins.arithmetic(standins.points(20))\n"
        "store.join(20); store.put(rows[:10], 10); print('stored', flush=True)\n"
        "store.put(rows[10:], 0); os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (-9, "stored\n")
    assert read_status(path).running == ()
    assert stored_rows(path, KEYS) == ROWS
    with Store(path) as store:
        assert store.claim(KEYS) == set()


def test_a_server_that_comes_back(postgres_url: str, postgres_server: Server) -> None:
    with Store(postgres_url) as store:
        store.join(20)
        store.put(ROWS[:5], 15)
        postgres_server.stop()
        postgres_server.start()
        store.put(ROWS[5:], 0)
        assert store.rows(KEYS) == ROWS


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("mysql://host/x", "kept in SQLite"),
        ("postgresql:/me@x://y", "not a database URL"),
        ("postgresql://me:secret@127.0.0.1:1/x", r"127\.0\.0\.1:1/x: .*check that the server runs"),
    ],
)
def test_a_wrong_url_is_one_line(where: str, message: str) -> None:
    started = time.monotonic()
    with pytest.raises(CovpError, match=message) as error:
        Store(where)
    assert "\n" not in str(error.value) and "secret" not in str(error.value)
    assert time.monotonic() - started < 60


def test_a_wrong_file_is_one_line(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("no database" * 1000)
    damaged = tmp_path / "damaged.sqlite"
    with Store(damaged) as store:
        store.put(ROWS, 0)
    content = bytearray(damaged.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    damaged.write_bytes(content)
    for path, hint in ((text, "name another folder"), (damaged, "move it away")):
        with pytest.raises(CovpError, match=hint) as error, Store(path) as store:
            store.rows()
        assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="no sweep found"):
        stored_rows(tmp_path / "none.sqlite")
    (tmp_path / "file").write_text("")
    with pytest.raises(CovpError, match="cannot be written"):
        Store(tmp_path / "file" / "sweep.sqlite")
    plain = sqlite3.connect(tmp_path / "empty.sqlite")
    plain.close()
    with pytest.raises(CovpError, match="no such table"):
        stored_rows(tmp_path / "empty.sqlite")


@pytest.mark.costly
def test_what_was_altered_is_no_result(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Any column of a row that holds another value: the row counts as not there."""
    figures = {**msgspec.structs.asdict(ROWS[0]), "instructions": 7, "matches_reference": True}
    row = Row(**{**figures, "cycles_model": "rv32", "reason": None})
    for column in (each.name for each in tables.rows.c if each.name not in ("key", "finished")):
        with Store(url) as store:
            store.put([row], 0)
            assert store.rows() == [row]
            altered(store, column, "'0'" if getattr(row, column, None) is True else "'7.5e3'")
            assert stored_rows(url) == [] and read_status(url).done == 0, column
            assert "checksum is wrong: 1; left out" in caplog.messages[-1]
            assert store.statuses([row.key]) == {}, column
            assert "checksum is wrong: 1; removed" in caplog.messages[-1]
            with pytest.raises(CovpError, match="1 of 1 rows that were stored are not there"):
                store.results([row.key])


@pytest.mark.costly
def test_an_empty_column_is_its_default_or_no_result(url: str) -> None:
    for column in (each.name for each in tables.rows.c if each.name not in ("key", "finished")):
        with Store(url) as store:
            store.put(ROWS[:1], 0)
            altered(store, column, "NULL")
            found = stored_rows(url)
            assert found in ([], ROWS[:1]) and read_status(url).done == len(found), column
            assert store.rows() == found


def altered(store: Store, column: str, value: str) -> None:
    kind = tables.rows.c[column].type.compile(store._engine.dialect)
    if kind in ("BIGINT", "INTEGER"):
        value = value.replace("7.5e3", "7500")
    elif kind == "BOOLEAN":
        value = value.replace("7.5e3", "1")
    text = sql.text(f'UPDATE rows SET "{column}" = CAST({value} AS {kind})')
    with store._begin() as connection:
        connection.execute(text)


@pytest.mark.costly
@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_flipped_bits_show_no_wrong_figure(tmp_path: Path, count: int) -> None:
    """Of a file: what is read is what was stored, or not there, or one error of covp."""
    path = tmp_path / "sweep.sqlite"
    with Store(path) as store:
        store.put(ROWS, 0)
    whole, stored = path.read_bytes(), {row.key: row for row in ROWS}
    draw = random.Random()
    left_out = 0
    for _ in range(count):
        place = draw.randrange(8 * len(whole))
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = stored_rows(path)
        except CovpError as error:
            assert "\n" not in str(error)
            continue
        assert all(stored.get(row.key) == row for row in found), place
        left_out += len(found) < len(ROWS)
    assert left_out, "no bit of a row was hit"


@pytest.mark.parametrize("how", ["removed", "replaced", "cut", "cut to a page"])
def test_a_file_that_vanishes_is_said(how: str, tmp_path: Path) -> None:
    """While a sweep runs: an error, and never rows that are on no disk."""
    path = tmp_path / "sweep.sqlite"
    with pytest.raises(CovpError, match=r"sweep\.sqlite: "), Store(path) as store:
        store.put(ROWS[:10], 10)
        if how == "removed":
            path.unlink()
        elif how == "replaced":
            path.rename(tmp_path / "other")
            path.write_bytes((tmp_path / "other").read_bytes())
        elif how == "cut":
            for file in (path, tmp_path / "sweep.sqlite-wal"):
                os.truncate(file, 0)
        else:
            with store._engine.connect() as connection:  # all of it is in the file
                connection.execute(sql.text("PRAGMA wal_checkpoint(TRUNCATE)"))
            os.truncate(path, 4096)
        store.put(ROWS[10:], 0)
        store.results(KEYS)


def test_a_server_that_is_not_there_is_refused_at_once(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one that was there, or that answers that it starts, is waited for."""
    monkeypatch.setattr(database, "PATIENCE", 0.5)
    tries = []
    monkeypatch.setattr(database._log, "warning", lambda *text: tries.append(text))
    with pytest.raises(database.Unreachable):
        Store("postgresql://me@127.0.0.1:1/sweep")
    with pytest.raises(CovpError, match="does not exist"):
        Store(postgres_server.url.replace("/postgres?", "/nothing?"))
    assert not tries
    starting = database.Unreachable("FATAL: the database system is starting up", answered=True)

    def prepare(connection: sql.Connection) -> None:
        raise starting

    monkeypatch.setattr("covp.exploration.sweep.store.prepare", prepare)
    with pytest.raises(database.Unreachable):
        Store(postgres_server.url)
    assert tries, "it was not tried again"


def flipped(path: Path, old: bytes, new: bytes) -> None:
    """Alter the last place of some bytes: rows are at the end of pages, indices in others."""
    content = path.read_bytes()
    places = [n for n in range(len(content)) if content.startswith(old, n)]
    assert len(places) == 2, "a key is in its row and in the index"
    for place in places:
        other = content[:place] + new + content[place + len(old) :]
        path.write_bytes(other)
        with sqlite3.connect(path) as connection:
            (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            count = len(connection.execute("SELECT * FROM rows NOT INDEXED").fetchall())
        connection.close()
        seen = connection_keys(path)
        if state != "ok" and count == len(ROWS) and old.decode() in seen:
            return
    raise AssertionError("no bit of the index was found")


def connection_keys(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        return {key for (key,) in connection.execute("SELECT key FROM rows NOT INDEXED")}
    finally:
        connection.close()


def test_a_damaged_index_hides_no_row(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is read through it lacks rows that are there; a sweep that starts again mends it."""
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        store.put(ROWS, 0)
    key = KEYS[3].encode()
    flipped(path, key, bytes([key[0] ^ 1]) + key[1:])
    for read in (stored_rows, read_status):
        with pytest.raises(CovpError, match=r"malformed: .*; start the sweep again to fix"):
            read(path)
    with Store(path) as store:
        assert store.rows(KEYS) == ROWS
    assert "its indices are made anew" in caplog.messages[0]
    assert stored_rows(path, KEYS) == ROWS and read_status(path).done == len(ROWS)


def test_status_tells_of_damaged_rows(url: str) -> None:
    with Store(url) as store:
        store.put(ROWS, 0)
        with store._begin() as connection:
            where = f"WHERE key = '{KEYS[0]}'"
            connection.execute(sql.text(f"UPDATE rows SET instructions = 7 {where}"))
        status = read_status(url)
        assert (status.done, status.damaged, status.left) == (len(ROWS) - 1, 1, 1)
        assert "19 done, 0 failed, 1 left" in str(status)
        assert "rows whose checksum is wrong: 1" in str(status)
        assert status.record().damaged == 1


def test_a_value_of_many_brackets_is_a_damaged_row(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        store.put(ROWS, 0)
        with store._begin() as connection:
            deep = "[" * 100_000 + "]" * 100_000
            where = f"WHERE key = '{KEYS[0]}'"
            connection.execute(sql.text(f"UPDATE rows SET vary = '{deep}' {where}"))
        assert len(stored_rows(path)) == len(ROWS) - 1 and read_status(path).damaged == 1


def test_a_finished_sweep_is_read_from_a_read_only_mount(tmp_path: Path) -> None:
    """SQLite cannot make the index of a journal there, and needs none."""
    folder = tmp_path / "sweep"
    folder.mkdir()
    with Store(folder / "store.sqlite") as store:
        store.put([failed(0, "why")], 0)
    subprocess.run(["mount", "--bind", folder, folder], capture_output=True)
    mounted = ["mount", "-o", "remount,bind,ro", str(folder)]
    try:
        if subprocess.run(mounted, capture_output=True).returncode:
            pytest.skip("this user cannot mount a folder read-only")
        assert [row.reason for row in stored_rows(folder / "store.sqlite")] == ["why"]
    finally:
        subprocess.run(["umount", folder], capture_output=True)


def test_a_store_that_another_user_writes_is_no_fixed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite reads an immutable file without locks: its pages would change under the reader."""
    path = tmp_path / "store.sqlite"
    location = database.locate(path)
    with monkeypatch.context() as patched, Store(path) as store:
        patched.setattr(os, "access", lambda *_: False)  # as in another user's folder
        store.put(ROWS, 0)
        for _ in range(2):
            assert "immutable" not in database.open_engine(location, read_only=True).url.query
            assert stored_rows(path, KEYS) == ROWS
            with store._engine.connect() as connection:  # nothing waits to be put in
                connection.execute(sql.text("PRAGMA wal_checkpoint(TRUNCATE)"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "immutable" in database.open_engine(location, read_only=True).url.query


def test_results_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is away for a moment at the end of a sweep is not the end of its results."""
    answers: list[list[Row] | database.Unreachable] = [database.Unreachable("away"), ROWS]

    def read(*_: object) -> list[Row]:
        answer = answers.pop(0)
        if isinstance(answer, database.Unreachable):
            raise answer
        return answer

    monkeypatch.setattr("covp.exploration.sweep.store.stored_rows", read)
    with Store(tmp_path / "store.sqlite") as store:
        assert store.results(KEYS) == ROWS and not answers
