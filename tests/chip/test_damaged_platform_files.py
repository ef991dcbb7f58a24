"""Damaged platform files: a platform, or a PlatformError of one line that names the file."""

import random
from pathlib import Path

import pytest

from covp.chip.platform_file import load_platform, platforms_dir
from covp.errors import PlatformError

ODD = [
    "[" * 5000, "{a: " * 3000, "- " * 5000, "&a [*a]", "!!float x", "!!int x", "!!binary x",
    "!!timestamp x", "!!python/object:os.system x", "!!set {a}", "!!bool x", "!!null x",
    "9" * 4301, "0x" + "f" * 5000, "1" * 4299, "1e999", ".nan", "-.inf", "0o8", "1:60:60:60",
    "2020-13-45", "~", "''", "[]", "{}", "*nothing", "<<: 1", "? [a]", "\t", "\0", "\ufeff",
    "'" + "a" * 100_000 + "'", "|\n  text", "%YAML 9.9", "--- ---", "2001-02-30T25:61:61Z", "=",
]  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:12]))
@pytest.mark.parametrize("key", ["", "clock_hz", "memory", "stack", "name", "core", "openocd"])
def test_odd_values(text: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    lines = (platforms_dir() / "nucleo-l4r5zi.yaml").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(key)] if key else []
    path.write_text("\n".join([*kept, f"{key}: {text}" if key else text]))
    reads(path)


def reads(path: Path) -> None:
    try:
        load_platform(path)
    except PlatformError as error:
        assert str(path) in str(error) and "\n" not in str(error)


GOOD = (platforms_dir() / "nucleo-l4r5zi.yaml").read_text(encoding="utf-8")
LEVELS = range(1, 30)
BOMBS = {
    "lists": "\n".join(["a0: &a0 x", *(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]" for i in LEVELS)]),
    "merges": "\n".join(
        ["a0: &a0 {x: 1}", *(f"a{i}: &a{i} {{<<: [{f'*a{i - 1}, ' * 9}]}}" for i in LEVELS)]
    ),
    "itself": "a: &a [*a]",
    "keys": "\n".join(f"k{i}: 1" for i in range(200_000)),
    "values": f"a: [{'1, ' * 300_000}]",
    "brackets": "[" * 60_000,
    "dashes": "- " * 30_000,
    "twice": "name: other",
    "long": f"{'k' * 5000}: 1",
}
LINES = {
    "size: 2M": ["size: 1e308", "size: 1.0e+308", f"size: 1{'0' * 308}", f"size: {'9' * 4000}K",
                   "size: .inf", "size: \u0663\u0662K"],
    "clock_hz: 120_000_000": ["clock_hz: 1.0e+308", "clock_hz: .nan", f"clock_hz: 1{'0' * 308}"],
    "name: flash": [f"name: {text}" for text in (
        '"a\\nb"', '"\\0"', '"\\ud800"', '"\\u202e"', "''", "a" * 5000)],
    "name: nucleo-l4r5zi": ["name: \u202estm32", "name: \u0441tm32"],
}  # fmt: skip


def refuses(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlatformError) as found:
        load_platform(path)
    said = str(found.value)
    assert str(path) in said and said.isprintable() and len(said) < 500 + len(str(path))


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_is_endless_or_ambiguous(bomb: str, tmp_path: Path) -> None:
    refuses(tmp_path / "bomb.yaml", f"{GOOD}\n{BOMBS[bomb]}\n")


@pytest.mark.parametrize("line", LINES)
def test_numbers_and_names_of_no_platform(line: str, tmp_path: Path) -> None:
    for other in LINES[line]:
        text = GOOD.replace(line, other, 1)
        assert text != GOOD, line
        refuses(tmp_path / "odd.yaml", text)


def damaged(rng: random.Random, text: str) -> str:
    """A platform file with some of its lines, words or characters changed."""
    for _ in range(rng.randrange(1, 6)):
        lines = text.splitlines() or [""]
        at = rng.randrange(len(lines))
        how = rng.randrange(6)
        if how == 0:
            del lines[at]
        elif how == 1:
            lines.insert(at, rng.choice(lines))
        elif how == 2:
            lines[at] = "  " * rng.randrange(4) + lines[at].strip()
        elif how == 3:
            lines[at] = lines[at].partition(":")[0] + ": " + rng.choice(ODD)[:6000]
        elif how == 4:
            spot = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:spot] + chr(rng.randrange(1, 300)) + lines[at][spot + 1 :]
        else:
            lines = lines[:at]
        text = "\n".join(lines)
    return text


def attack(seeds: range, path: Path) -> None:
    files = sorted(platforms_dir().glob("*.yaml"))
    for seed in seeds:
        rng = random.Random(seed)
        text = damaged(rng, rng.choice(files).read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        reads(path)


@pytest.mark.costly
def test_damaged_platform_files(tmp_path: Path) -> None:
    attack(range(300), tmp_path / "damaged.yaml")


@pytest.mark.slow
def test_three_thousand_damaged_platform_files(tmp_path: Path) -> None:
    attack(range(1000, 4000), tmp_path / "damaged.yaml")
