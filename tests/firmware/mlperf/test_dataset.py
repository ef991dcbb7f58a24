"""Folders of samples: what is wrong is one line that names the place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from covp.errors import UsageError
from covp.evaluation.data.runner_dataset import demand_finite, find_folder, read_dataset
from covp.evaluation.data.tasks import TASKS

from .samples import LABELS, STRIDE, WINDOW, write_classes, write_spectra


def lines(change: Callable[[list[str]], list[str]]) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        path = folder / LABELS
        path.write_text("\n".join(change(path.read_text().splitlines())))

    return apply


def second(line: str) -> Callable[[Path], object]:
    return lines(lambda all_lines: [all_lines[0], line, *all_lines[2:]])


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "a class too large": (second("001.bin,12,12"), "class 12 of 12; they are 0 to 11"),
    "a negative class": (second("001.bin,12,-1"), "'-1' is not an integer"),
    "no number": (second("001.bin,12,yes"), "'yes' is not an integer"),
    "other digits": (second("001.bin,12,\u0663"), "is not an integer"),
    "other classes": (second("001.bin,10,3"), "kws01 has 12 classes, not 10"),
    "two columns": (second("001.bin,12"), "has 2 columns; of kws01 it is file,classes,class"),
    "no such file": (second("nine.bin,12,1"), "'nine.bin' cannot be read: No such file"),
    "a folder": (second(".,12,1"), "is not a file"),
    "a NUL": (second("a\0b,12,1"), f"{LABELS}"),
    "a quote": (second('"001.bin,12,1'), "is not CSV text"),
    "a long file": (lambda f: (f / "001.bin").write_bytes(bytes(491)), "001.bin has 491 bytes"),
    "an empty file": (lambda f: (f / "001.bin").write_bytes(b""), "has 0 bytes; kws01 takes 490"),
    "no lines": (lines(lambda all_lines: []), "names no file"),
    "no text": (lambda f: (f / LABELS).write_bytes(b"\xff\xfe"), "is not CSV text"),
    "no labels": (lambda f: (f / LABELS).unlink(), f"neither {LABELS} nor kws01/{LABELS}"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_folder_is_one_line(kind: str, tmp_path: Path) -> None:
    change, text = WRONG[kind]
    folder, task = tmp_path / "kws01", TASKS["kws01"]
    write_classes(folder, "kws01", [1, 2, 3])
    change(folder)
    with pytest.raises(UsageError) as refused:
        read_dataset(find_folder(tmp_path, task), task)
    message = str(refused.value)
    assert text in message and "\n" not in message
    assert str(tmp_path) in message
    if "second" in change.__qualname__ or "bytes" in text:
        assert kind == "a quote" or f"{LABELS}:2: " in message


SPECTRA = {
    "three columns": ("001.bin,2,1", "file,classes,class,window,stride"),
    "another window": ("001.bin,2,1,2048,512", "a window of ad01 has 2560 bytes"),
    "no stride": ("001.bin,2,1,2560,0", "a stride of 0 bytes"),
    "a part of a number": ("001.bin,2,1,2560,510", "a stride of 510 bytes"),
    "a window too short": ("short.bin,2,1,2560,512", "short.bin has 2559 bytes; ad01 takes at le"),
    "one class alone": ("001.bin,2,0,2560,512", "all files are of class 0; ad01 needs normal"),
}


@pytest.mark.parametrize("kind", SPECTRA)
def test_wrong_windows_are_one_line(kind: str, tmp_path: Path) -> None:
    line, text = SPECTRA[kind]
    write_spectra(tmp_path / "ad01", [0, 1])
    (tmp_path / "ad01" / "short.bin").write_bytes(bytes(2559))
    second(line)(tmp_path / "ad01")
    with pytest.raises(UsageError) as refused:
        read_dataset(tmp_path / "ad01", TASKS["ad01"])
    assert text in str(refused.value)


def test_windows_are_the_runners(tmp_path: Path) -> None:
    """Its rule: from 0 on by the stride, as long as a whole window is left."""
    values = write_spectra(tmp_path / "ad01", [0, 1], windows=5)
    files = read_dataset(tmp_path / "ad01", TASKS["ad01"]).files
    for file, content in zip(files, [v.tobytes() for v in values], strict=True):
        wanted, start = [], 0
        while start + WINDOW <= len(content):
            wanted.append(content[start : start + WINDOW])
            start += STRIDE
        assert list(file.samples()) == wanted and file.inferences == len(wanted) == 5


def test_what_official_files_have(tmp_path: Path) -> None:
    """Spaces after commas, empty lines, more columns, a mark of UTF-8."""
    write_classes(tmp_path / "kws01", "kws01", [0, 1])
    text = "\ufeff000.bin, 12, 7\r\n\r\n001.bin,12,11,490,490\r\n"
    (tmp_path / "kws01" / LABELS).write_text(text, newline="", encoding="utf-8")
    assert read_dataset(tmp_path / "kws01", TASKS["kws01"]).labels == [7, 11]


def test_files_that_change_and_values_that_are_no_numbers(tmp_path: Path) -> None:
    values = write_spectra(tmp_path / "ad01", [0, 1])
    dataset = read_dataset(tmp_path / "ad01", TASKS["ad01"])
    first, other = dataset.files
    first.path.write_bytes(bytes(4000))
    with pytest.raises(UsageError, match="was changed"):
        list(first.samples())
    values[1][5] = float("nan")
    other.path.write_bytes(values[1].tobytes())
    with pytest.raises(UsageError, match=r"001\.bin: has float32 values that are not finite"):
        demand_finite(next(other.samples()), other)
