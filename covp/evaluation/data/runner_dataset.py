"""`read_dataset`: a folder of samples in the layout of MLPerf Tiny's runner.

``y_labels.csv`` has no header; a line is ``file,classes,class``, of a spectrum
``file,classes,class,window,stride`` with both in bytes (mlcommons/tiny,
benchmark/evaluation/datasets/README.md; benchmark/runner/datasets.py and script.py).
"""

from __future__ import annotations

import csv
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from covp.base.arguments import demand_content, read_file
from covp.errors import UsageError
from covp.evaluation.data.tasks import Task

LABELS = "y_labels.csv"


@dataclass(frozen=True)
class Stimulus:
    """A file of a dataset.

    Attributes:
        path: of the file.
        label: its class.
        window: bytes of each sample in it.
        stride: bytes from one sample to the next.
        size: of the file, bytes.
    """

    path: Path
    label: int
    window: int
    stride: int
    size: int

    @property
    def inferences(self) -> int:
        """Number of samples; a trailing partial sample is ignored."""
        return (self.size - self.window) // self.stride + 1

    def samples(self) -> Iterator[bytes]:
        """Yield the bytes of each sample.

        Raises:
            UsageError: the file cannot be read, or has another size than before.
        """
        try:
            content = read_file(self.path)
        except OSError as error:
            raise UsageError(
                f"cannot be read: {error.strerror or error}", where=self.path
            ) from None
        if len(content) != self.size:
            raise UsageError("was changed while it was in use; start again", where=self.path)
        for index in range(self.inferences):
            yield content[index * self.stride :][: self.window]


@dataclass(frozen=True)
class Dataset:
    """Samples of a task with their classes.

    Attributes:
        folder: where they are.
        files: in the order of the labels.
    """

    folder: Path
    files: tuple[Stimulus, ...]

    @property
    def labels(self) -> list[int]:
        """Labels of the files."""
        return [file.label for file in self.files]


def find_folder(data: Path, task: Task) -> Path:
    """Return the folder of a task's samples: the given one if it has labels, else one in it.

    Args:
        data: a folder with labels, or the runner's folder of datasets.
        task: whose samples are wanted.

    Raises:
        UsageError: there is no such folder, or it has no labels.
    """
    if not data.is_dir():
        raise UsageError(f"{data}: is not a folder; it must have {LABELS}, or folders such as ic01")
    for folder in (data, data / task.folder):
        if (folder / LABELS).is_file():
            return folder
    raise UsageError(
        f"{data}: has neither {LABELS} nor {task.folder}/{LABELS}: there are no samples of "
        f"{task.name}"
    )


def read_dataset(folder: Path, task: Task) -> Dataset:
    """Return the samples of a task; their content is not read yet.

    Args:
        folder: that has the labels.
        task: what they are for.

    Raises:
        UsageError: labels or files do not fit the task; names the line.
    """
    path = folder / LABELS
    try:
        demand_content(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            found = [
                _stimulus(folder, [word.strip() for word in row], task, f"{path}:{reader.line_num}")
                for row in reader
                if any(word.strip() for word in row)
            ]
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=path) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"is not CSV text: {error}", where=path) from None
    labels = {stimulus.label for stimulus in found}
    if not found:
        raise UsageError("names no file", where=path)
    if task.metric == "AUC" and labels != {0, 1}:
        raise UsageError(
            f"all files are of class {labels.pop()}; {task.name} needs normal ones (0) and "
            "anomalous ones (1)",
            where=path,
        )
    return Dataset(folder, tuple(found))


def _stimulus(folder: Path, words: Sequence[str], task: Task, where: str) -> Stimulus:
    """Parse one line of the labels."""
    is_spectrum = task.kind == "spectrum"
    columns = f"file,classes,class{',window,stride' * is_spectrum}"
    if len(words) < (5 if is_spectrum else 3):
        raise UsageError(f"{where}: has {len(words)} columns; of {task.name} it is {columns}")
    name, *texts = words[: 5 if is_spectrum else 3]
    numbers = [int(text) if text.isascii() and text.isdecimal() else -1 for text in texts]
    if -1 in numbers:
        wrong = texts[numbers.index(-1)]
        raise UsageError(f"{where}: {wrong!r:.40} is not an integer; a line is {columns}")
    classes, label = numbers[:2]
    if classes != task.classes:
        raise UsageError(f"{where}: {task.name} has {task.classes} classes, not {classes}")
    if label >= classes:
        raise UsageError(f"{where}: class {label} of {classes}; they are 0 to {classes - 1}")
    window, stride = numbers[2:] if is_spectrum else [task.sample_bytes] * 2
    if window != task.sample_bytes:
        raise UsageError(f"{where}: a window of {task.name} has {task.sample_bytes} bytes")
    if stride < 1 or stride % (4 if is_spectrum else 1):
        raise UsageError(f"{where}: a stride of {stride} bytes; it is 4 or a multiple of it")
    size = _size(folder / name, where)
    if size < window or (size != window and not is_spectrum):
        least = "at least " * is_spectrum
        raise UsageError(f"{where}: {name} has {size} bytes; {task.name} takes {least}{window}")
    return Stimulus(folder / name, label, window, stride, size)


def _size(path: Path, where: str) -> int:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{where}: {path.name!r:.80} cannot be read: {reason}") from None
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{where}: {path.name!r:.80} is not a file")
    return status.st_size


def demand_finite(sample: bytes, stimulus: Stimulus) -> None:
    """Raise UsageError if a sample of float32 has an infinity or NaN."""
    if not np.isfinite(np.frombuffer(sample, np.dtype("<f4"))).all():
        raise UsageError(f"{stimulus.path}: has float32 values that are not finite")
