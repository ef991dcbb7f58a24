"""``covp cache``, and runs on a cache that is damaged or cannot be written."""

import json
import random
from pathlib import Path

import pytest

from .conftest import Call


def spoil(path: Path, rng: random.Random) -> None:
    """Damage a file in one of the ways that disks and users do."""
    data = bytearray(path.read_bytes())
    how = rng.randrange(4)
    if how == 0 or not data:
        path.unlink()
    elif how == 1:
        path.write_bytes(b"")
    elif how == 2:
        path.write_bytes(data[: rng.randrange(len(data))])
    else:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)


def entries(root: Path) -> list[Path]:
    """All files but zig's libraries and the native counter, which take a minute to make.

    Nor the marker: without it a folder is not covp's any more, and another one is used.
    """
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    kept = ("zig", "native", "CACHEDIR.TAG")
    return [p for p in found if p.relative_to(root).parts[0] not in kept]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with the native code of the session's."""
    import shutil

    from covp.base.cache import cache_root
    from covp.base.cache_folder import claim
    from covp.device.machine.native_counter import counter_library

    counter_library()
    claim(tmp_path / "cache")
    shutil.copytree(cache_root() / "native", tmp_path / "cache" / "native")
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def document(call: Call, small: Path) -> dict[str, object]:
    done = call("run", small, "-p", "riscv32", "--json")
    assert done.status == 0 and done.err == ""
    found = json.loads(done.out)
    return {key: found[key] for key in ("outputs", "instructions", "matches_reference", "memory")}


@pytest.mark.costly
@pytest.mark.parametrize("seed", range(2))
def test_damaged_caches_give_the_same_result(
    call: Call, small: Path, root: Path, seed: int
) -> None:
    damaged_caches(call, small, root, range(seed * 3, seed * 3 + 3))


@pytest.mark.slow
def test_a_hundred_damaged_caches(call: Call, small: Path, root: Path) -> None:
    damaged_caches(call, small, root, range(100))


def damaged_caches(call: Call, small: Path, root: Path, seeds: range) -> None:
    expected = document(call, small)
    for seed in seeds:
        rng = random.Random(seed)
        for path in entries(root):
            if rng.random() < 0.4:
                spoil(path, rng)
        assert document(call, small) == expected, seed


@pytest.mark.costly
def test_a_damaged_marker_is_written_again(call: Call, small: Path, root: Path) -> None:
    expected = document(call, small)
    marker = root / "CACHEDIR.TAG"
    whole = marker.read_bytes()
    marker.write_bytes(whole[:50] + b"?" + whole[51:])
    assert document(call, small) == expected
    assert marker.read_bytes() == whole


@pytest.mark.costly
def test_a_flipped_bit_in_a_linked_image(call: Call, small: Path, root: Path) -> None:
    """Each bit that is tried: the result is right, and the damage is counted."""
    expected = document(call, small)
    for image in sorted(root.glob("images/*.elf")):
        data = bytearray(image.read_bytes())
        data[len(data) // 2] ^= 4
        image.write_bytes(data)
    assert document(call, small) == expected
    state = json.loads(call("cache", "--json").out)
    assert state["repaired"] == len(list(root.glob("images/*.elf")))


@pytest.mark.costly
def test_the_cache_shows_its_size_and_is_cleared(call: Call, small: Path, root: Path) -> None:
    document(call, small)
    state = json.loads(call("cache", "--json").out)
    assert state["schema"] == "covp.cache/1" and state["path"] == str(root)
    assert state["bytes"] == sum(state["kinds"].values()) > 0
    assert state["entries"] == len(list(root.rglob("*.crc")))
    assert (state["repaired"], state["limit_bytes"]) == (0, None)
    assert str(root) in call("cache").out
    assert "freed" in call("cache", "clear").out
    assert json.loads(call("cache", "--json").out)["bytes"] == 0


def test_a_limit(call: Call, root: Path) -> None:
    assert "limit 2G" in call("cache", "limit", "2G").out
    assert json.loads(call("cache", "--json").out)["limit_bytes"] == 2 << 30
    assert call("cache", "limit", "none").status == 0
    assert json.loads(call("cache", "--json").out)["limit_bytes"] is None


@pytest.mark.parametrize("size", ["", "-1", "1T", "big", "1.5G", "9" * 40, "\u0661"])
def test_what_is_no_limit(call: Call, root: Path, size: str) -> None:
    done = call("cache", "limit", "--", size)
    assert done.status == 2 and "500M" in done.refusal
