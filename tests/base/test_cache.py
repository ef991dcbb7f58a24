"""The cache folder: damage, places that cannot be written, limits, what killed processes leave."""

import contextlib
import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from covp.base import cache, cache_upkeep, temporary
from covp.base.temporary import owner, sweep, temporary_folder
from covp.errors import CovpError


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def damages(data: bytes) -> dict[str, bytes]:
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    return {
        "bit": flipped,
        "cut": data[:-1],
        "empty": b"",
        "longer": data + b"\0",
        "zeros": bytes(len(data)),
    }


def test_an_entry_is_what_was_stored() -> None:
    path = cache.store("objects", "a.o", b"content", mode=0o700)
    assert cache.load("objects", "a.o") == b"content" == path.read_bytes()
    assert cache.find("objects", "a.o") == path and path.stat().st_mode & 0o777 == 0o700
    assert cache.load("objects", "b.o") is None


@pytest.mark.parametrize("how", damages(b"content"))
def test_a_damaged_entry_is_not_there_and_counted(
    how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = cache.store("objects", "a.o", b"content")
    path.write_bytes(damages(b"content")[how])
    assert cache.load("objects", "a.o") is None
    assert cache_upkeep.state().repaired == 1
    cache.store("objects", "a.o", b"content")
    assert cache.load("objects", "a.o") == b"content"
    assert cache_upkeep.state().repaired == 1
    assert capsys.readouterr() == ("", "")


def test_an_entry_without_checksum_is_made_anew() -> None:
    path = cache.store("objects", "a.o", b"content")
    Path(f"{path}{cache.SUM}").unlink()
    assert cache.find("objects", "a.o") is None


def test_a_folder_in_an_entrys_place() -> None:
    path = cache.store("objects", "a.o", b"content")
    path.unlink()
    (path / "inside").mkdir(parents=True)
    assert cache.load("objects", "a.o") is None
    cache.store("objects", "a.o", b"content")
    assert cache.load("objects", "a.o") == b"content"


@pytest.mark.parametrize(
    "number", [errno.ESTALE, errno.EXDEV, errno.EBUSY, errno.ENOLCK, errno.ENOSPC, errno.EIO]
)
def test_a_file_system_that_cannot_rename(
    number: int, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Network file systems: one line, and work goes on."""
    rename = os.replace

    def fail(source: str, target: str | Path) -> None:
        if root in Path(target).parents:
            raise OSError(number, os.strerror(number), source, None, str(target))
        rename(source, target)

    monkeypatch.setattr(os, "replace", fail)
    cache.store("objects", "a.o", b"content")
    assert cache.load("objects", "a.o") == b"content"
    assert f"cannot be used: {os.strerror(number)}; a temporary" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["/proc/covp", "/dev/null/covp", "/dev/full"])
def test_a_place_that_cannot_be_written(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and work goes on."""
    monkeypatch.setenv("COVP_CACHE_DIR", place)
    for name in ("a.o", "b.o"):
        cache.store("objects", name, name.encode())
        assert cache.load("objects", name) == name.encode()
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith(f"covp: the cache folder {place} cannot be used: ")


def opened_up(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o002)


def given_away(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 12345, -1)


@pytest.mark.parametrize("how", [opened_up, given_away])
@pytest.mark.parametrize("what", ["", "native", "native/a.so"])
def test_what_others_own_or_may_write_is_not_there(
    how: Callable[[Path], None], what: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Native code of the cache is executed, and its checksum is no secret."""
    cache.store("native", "a.so", b"ours")
    assert cache.load("native", "a.so") == b"ours"
    how(root / what)
    assert cache.load("native", "a.so") is None
    path = cache.store("native", "a.so", b"made anew")
    assert cache.load("native", "a.so") == b"made anew" == path.read_bytes()
    # a file is replaced by one of ours; a folder is not used
    assert (root in path.parents) == (what == "native/a.so")
    lines = capsys.readouterr().err.splitlines()
    if what == "native/a.so":
        assert lines[0].startswith(f"covp: {root / what} of the cache is not used: ")
    else:
        assert f"the cache folder {root} cannot be used: " in lines[0]
    assert len(lines) == 1


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


REMOVING: dict[str, Callable[[], object]] = {
    "clear": lambda: cache_upkeep.clear(everything=True),
    "limit": lambda: cache_upkeep.set_limit(1),
    "evict": cache_upkeep.evict,
}


@pytest.mark.parametrize("names", [["images/a.png", "notes"], ["images/a.png", "sources/a.c"]])
@pytest.mark.parametrize("removing", REMOVING)
def test_a_project_named_as_the_cache_keeps_its_files(
    removing: str, names: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """COVP_CACHE_DIR=. in a project whose folders have the names of the cache's."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"the user's")
    (root / "images" / "limit").write_text("1")
    before = files(root)
    assert root not in cache.store("objects", "a.o", b"content").parents
    assert cache.load("objects", "a.o") == b"content"
    assert "it holds other files" in capsys.readouterr().err
    if removing == "evict":
        (root / "limit").write_text("1")
        before = files(root)
    with pytest.raises(CovpError, match=r"nothing in .* is removed: it holds other files"):
        REMOVING[removing]()
    assert files(root) == before


@pytest.mark.parametrize("how", [opened_up, given_away])
@pytest.mark.parametrize("removing", ["clear", "limit"])
def test_nothing_is_removed_from_the_cache_of_another_user(
    how: Callable[[Path], None], removing: str, root: Path
) -> None:
    cache.store("objects", "a.o", b"content")
    how(root)
    before = files(root)
    with pytest.raises(CovpError, match=r"nothing in .* is removed: (it belongs|other users)"):
        REMOVING[removing]()
    assert files(root) == before


@pytest.mark.parametrize("kind", ["images", "records", "zig", "partial"])
def test_links_to_folders_are_not_followed(kind: str, root: Path, tmp_path: Path) -> None:
    cache.store("objects", "a.o", b"content")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_bytes(b"the victim's")
    (victim / "file.crc").write_text(cache._checksum(b"the victim's"))
    for leftover in (root / kind).parent.glob(kind):
        leftover.rmdir()
    (root / kind).symlink_to(victim)
    before = files(victim)
    if kind != "partial":
        assert cache.load(kind, "file") is None
        assert root not in cache.store(kind, "file", b"content").parents
    cache_upkeep.state()
    cache_upkeep.set_limit(1)
    cache_upkeep.clear(everything=True)
    assert files(victim) == before


@pytest.mark.parametrize("name", ["in-use", "repaired", "limit", "CACHEDIR.TAG"])
def test_no_file_is_made_behind_a_link(name: str, root: Path, tmp_path: Path) -> None:
    root.mkdir(mode=0o700)
    (root / name).symlink_to(tmp_path / "made")
    cache.store("objects", "a.o", b"content").write_bytes(b"damaged")
    cache.load("objects", "a.o")
    with contextlib.suppress(CovpError):
        cache_upkeep.set_limit(1)
        cache_upkeep.clear()
    assert not (tmp_path / "made").exists()


def test_a_cache_of_before_the_marker_is_taken_over(root: Path) -> None:
    cache.store("objects", "a.o", b"content")
    (root / "CACHEDIR.TAG").unlink()
    assert cache_upkeep.clear() > 0
    assert cache.load("objects", "a.o") is None
    assert root in cache.store("objects", "a.o", b"content").parents


def test_all_kinds_are_cleared() -> None:
    """A kind that is not declared would never be counted or removed."""
    with pytest.raises(ValueError, match="mine is not declared"):
        cache.cache_dir("mine")


def test_the_cache_is_ours_whatever_the_umask(root: Path) -> None:
    before = os.umask(0)
    try:
        cache.store("native", "a.so", b"ours")
    finally:
        os.umask(before)
    assert cache.load("native", "a.so") == b"ours"
    assert not any(path.stat().st_mode & 0o022 for path in (root, *root.rglob("*")))


def test_what_has_to_last_is_not_kept_in_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache.require_persistent("records")
    monkeypatch.setenv("COVP_CACHE_DIR", "/proc/covp")
    with pytest.raises(CovpError, match=r"/proc/covp cannot be used: .*COVP_CACHE_DIR"):
        cache.require_persistent("records")


def full(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """What is there is still read, the rest goes to a temporary folder."""
    cache.store("objects", "a.o", b"before")
    replace = os.replace

    def full_here(source: str, target: Path) -> None:
        if root in Path(target).parents:
            full()
        replace(source, target)

    monkeypatch.setattr(os, "replace", full_here)
    path = cache.store("objects", "b.o", b"after")
    assert root not in path.parents
    assert (cache.load("objects", "a.o"), cache.load("objects", "b.o")) == (b"before", b"after")
    assert not list((root / "partial").iterdir())


def test_no_room_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CovpError, match=r"neither the cache folder .* nor a temporary one"):
        cache.store("objects", "a.o", b"content")


def test_writers_and_readers_at_once() -> None:
    """Nobody ever reads anything but what one of the writers stored."""
    contents = [bytes([value]) * 4096 for value in range(4)]
    wrong: list[bytes] = []
    end = time.monotonic() + 0.5

    def write(content: bytes) -> None:
        while time.monotonic() < end:
            cache.store("objects", "a.o", content)
            found = cache.load("objects", "a.o")
            if found is not None and found not in contents:
                wrong.append(found)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    cache.store("objects", "a.o", contents[0])
    assert cache.load("objects", "a.o") == contents[0]


def test_the_least_recently_used_is_evicted() -> None:
    for index in range(10):
        path = cache.store("objects", f"{index}.o", bytes(1000))
        os.utime(path, (index, index))
    assert cache.load("objects", "0.o") is not None  # used now: the last to go
    freed = cache_upkeep.set_limit(5000)
    assert freed > 0 and cache_upkeep.state().bytes <= 5000
    left = {name for name in map(str, range(10)) if cache.load("objects", f"{name}.o")}
    assert left == {"0", "7", "8", "9"}
    assert cache_upkeep.limit() == 5000
    cache_upkeep.set_limit(None)
    assert cache_upkeep.limit() is None


def test_a_lookup_touches_what_was_long_not_used() -> None:
    """Often enough for what another process needs now to be spared."""
    path = cache.store("objects", "a.o", b"content")
    now = time.time()
    for age, is_touched in ((cache.TOUCH_SECONDS - 10, False), (cache.TOUCH_SECONDS + 10, True)):
        os.utime(path, (now - age, now - age))
        assert cache.load("objects", "a.o") == b"content"
        assert (path.stat().st_mtime > now - 5) is is_touched


def test_a_store_evicts_what_is_old() -> None:
    os.utime(cache.store("objects", "old.o", bytes(3000)), (1, 1))
    cache.store("objects", "young.o", bytes(3000))
    cache_upkeep.set_limit(10_000)
    (cache.cache_root() / "limit").write_text("4000")
    cache_upkeep.Evictor()(1)
    assert cache.load("objects", "old.o") is None
    assert cache.load("objects", "young.o") is not None


def test_what_another_process_uses_stays() -> None:
    code = (
        "import sys; from covp.base import cache; cache.store('objects', 'b.o', b'b');"
        "print(flush=True); sys.stdin.read()"
    )
    os.utime(cache.store("objects", "old.o", b"old"), (1, 1))
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdin is not None and other.stdout is not None
    with other:
        other.stdout.readline()
        cache_upkeep.clear()
        assert cache.load("objects", "old.o") is None
        assert cache.load("objects", "b.o") == b"b"
        other.stdin.close()
        other.wait()
    cache_upkeep.clear()
    assert cache.load("objects", "b.o") is None


def test_records_and_fetched_models_outlive_clearing(root: Path) -> None:
    (cache.cache_dir("records") / "trials.jsonl").write_text("{}")
    (cache.cache_dir("models") / "kws.tflite").write_text("fetched")
    cache.store("models", "made.tflite", b"made here")
    cache_upkeep.clear()
    kept = {path.name for path in root.rglob("*") if path.is_file()}
    assert {"trials.jsonl", "kws.tflite"} <= kept and "made.tflite" not in kept
    cache_upkeep.clear(everything=True)
    assert "trials.jsonl" not in {path.name for path in root.rglob("*")}


def gone() -> int:
    """The id of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_folders_of_killed_processes_are_swept(tmp_path: Path) -> None:
    name = owner("link")
    stale = tmp_path / f"covp-{name.replace(str(os.getpid()), str(gone()))}-abc"
    foreign = tmp_path / f"covp-link-1-{gone()}-abc"
    unknown = tmp_path / "covp-notes"
    for folder in (stale, foreign, unknown):
        (folder / "inside").mkdir(parents=True)
    with temporary_folder("link", tmp_path) as mine:
        assert not stale.exists()
        assert foreign.exists() and unknown.exists() and Path(mine).exists()
        assert sweep(tmp_path, again=True) == 0
        os.utime(foreign, (1, 1))
        assert sweep(tmp_path, again=True) == 1 and not foreign.exists()


def test_what_another_host_makes_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts that share a folder have the same process namespace, and none of each other's ids."""
    here = owner("link")

    def one_that_ended() -> Path:
        temporary._process_space.cache_clear()
        folder = tmp_path / f"covp-{owner('link').replace(str(os.getpid()), str(gone()))}-abc"
        folder.mkdir()
        return folder

    with monkeypatch.context() as other_boot:
        other_boot.setattr(Path, "read_text", lambda *_, **__: "another boot")
        folders = [one_that_ended()]
    with monkeypatch.context() as other_name:
        other_name.setattr(os, "uname", lambda: SimpleNamespace(nodename="another-host"))
        folders += [one_that_ended()]
    ours = one_that_ended()
    assert owner("link") == here
    sweep(tmp_path, again=True)
    assert [folder.exists() for folder in (*folders, ours)] == [True, True, False]


def test_a_killed_process_leaves_a_folder_that_the_next_one_removes(tmp_path: Path) -> None:
    code = (
        "import os; from covp.base.temporary import temporary_folder; "
        "folder = temporary_folder('cc'); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert len(list(tmp_path.glob("covp-cc-*"))) == 1
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_fetched_model_that_is_damaged_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not silently replaced by a synthetic one."""
    from covp.graph import zoo

    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    path = cache.cache_dir("models") / zoo.entry("toycar").file
    path.write_bytes(b"damaged")
    assert zoo.find("toycar").source == "synthetic"
    assert capsys.readouterr().err == f"covp: {path} is damaged: run `covp models fetch toycar`\n"
