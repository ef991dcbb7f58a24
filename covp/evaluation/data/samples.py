"""`SampleSource`: inputs of many inferences in a file or a folder; read when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.errors import UsageError, near_misses
from covp.evaluation.data.files import RAW, read_array, read_arrays, read_raw
from covp.evaluation.data.layout import Inputs, Layout
from covp.evaluation.data.runner_dataset import (
    LABELS,
    Stimulus,
    demand_finite,
    find_folder,
    read_dataset,
)
from covp.evaluation.data.stored import real
from covp.evaluation.data.tasks import Task, find_task
from covp.graph.graph import Graph

Array = NDArray[Any]

_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".wav")


@dataclass(frozen=True)
class SampleSource:
    """Location of a model's samples. Pickles without their content.

    Attributes:
        path: a .npy or .npz file, or a folder.
        files: of a folder, one for each sample, in the order of their names; else empty.
        count: samples.
        steps: inferences of each, one after the other from the states after a reset; 1 of a model
            that keeps no states.
        stimuli: of a folder in the layout of MLPerf Tiny's runner, with their labels; else empty.
        task: that they are for.
    """

    path: Path
    files: tuple[Path, ...]
    count: int
    steps: int = 1
    stimuli: tuple[Stimulus, ...] = ()
    task: Task | None = None

    @staticmethod
    def find(path: Path, graph: Graph) -> SampleSource:
        """Return the samples of a file or folder, their headers checked against the model's inputs.

        Args:
            path: of the file or folder.
            graph: the model.

        Raises:
            UsageError: there are none, or they are of another shape or type.
        """
        layouts = Layout.of(graph)
        if path.is_dir():
            return _of_runner(path, graph) or _of_folder(path, layouts)
        counts = {}
        for layout, array in zip(layouts, _arrays(path, graph), strict=True):
            where = f"{path}: {layout.tensor.name}" if len(layouts) > 1 else str(path)
            counts[layout.tensor.name] = layout.count(array.shape, where)
            layout.check_type(array.dtype, where)
        found = set(counts.values())
        if len(found) > 1:
            raise UsageError(f"has different numbers of samples or steps: {counts}", where=path)
        ((count, steps),) = found
        if not count or not steps:
            raise UsageError("has no samples", where=path)
        return SampleSource(path, (), count, steps)

    def first(self, limit: int) -> SampleSource:
        """Return the first of them, at most ``limit``."""
        count = min(self.count, limit)
        return replace(self, files=self.files[:limit], count=count, stimuli=self.stimuli[:limit])

    @property
    def labels(self) -> Array | None:
        """The classes that stand with the samples; None: there are none."""
        return np.array([each.label for each in self.stimuli], np.int64) if self.stimuli else None

    def windows(self, start: int, stop: int) -> list[int]:
        """Return how many inferences each of these samples has; its score is their mean."""
        stimuli = self.stimuli[start:stop]
        return [each.inferences for each in stimuli] if stimuli else [1] * (stop - start)

    def batch(self, graph: Graph, start: int, stop: int) -> list[Inputs]:
        """Return some of the samples for each input of the model.

        Args:
            graph: the model.
            start, stop: of the samples' numbers.

        Raises:
            UsageError: a file cannot be read, or has other values than the model takes.
        """
        if self.task is not None:
            return [_of_stimuli(self.stimuli[start:stop], self.task, graph)]
        layouts = Layout.of(graph)
        if self.files:
            files = self.files[start:stop]
            return [Inputs.together([_of_file(file, layouts[0], self.steps) for file in files])]
        found = []
        for layout, array in zip(layouts, _arrays(self.path, graph), strict=True):
            whole = array[None] if array.shape == layout.tensor.shape else array
            where = f"{self.path}: samples {start} to {stop - 1}"
            found.append(layout.inputs(np.asarray(whole[start:stop]), self.steps, where))
        return found


def _of_runner(folder: Path, graph: Graph) -> SampleSource | None:
    """Return samples in the layout of MLPerf Tiny's runner; None: the folder has another one."""
    task = find_task(graph)
    if task is None or not any(
        (each / LABELS).is_file() for each in (folder, folder / task.folder)
    ):
        return None
    task.demand(graph)
    dataset = read_dataset(find_folder(folder, task), task)
    return SampleSource(folder, (), len(dataset.files), 1, dataset.files, task)


def _of_stimuli(stimuli: Sequence[Stimulus], task: Task, graph: Graph) -> Inputs:
    """Return all inferences of some files, one after the other."""
    tensor, stored, reals = graph.inputs[0], [], []
    for stimulus in stimuli:
        for sample in stimulus.samples():
            if task.kind == "spectrum":
                demand_finite(sample, stimulus)
            stored.append(task.input(sample, tensor))
            floats = np.frombuffer(sample, np.dtype("<f4")) if task.kind == "spectrum" else None
            reals.append(real(stored[-1], tensor) if floats is None else floats)
    shape = (len(stored), 1, *tensor.shape)
    return Inputs(np.stack(stored).reshape(shape), np.stack(reals).reshape(shape), 0)


def _of_folder(folder: Path, layouts: list[Layout]) -> SampleSource:
    """Return the samples of a folder, one in each file."""
    if len(layouts) > 1:
        names = ", ".join(layout.tensor.name for layout in layouts)
        raise UsageError(
            f"files of a folder are for models with one input, this has {names}; write "
            "one .npz file with numpy.savez, an array for each",
            where=folder,
        )
    every = sorted(path for path in folder.iterdir() if path.is_file())
    files = tuple(path for path in every if path.suffix.lower() in (".npy", *RAW))
    if not files:
        images = [path.name for path in every if path.suffix.lower() in _IMAGES]
        why = f"{images[0]} must be decoded first: " if images else ""
        raise UsageError(
            f"has no .npy, {' or '.join(RAW)} file; {why}write each sample, or all of "
            "them in one array, with numpy.save",
            where=folder,
        )
    steps, _ = _read_one(files[0], layouts[0])
    return SampleSource(folder, files, len(files), steps)


def _of_file(path: Path, layout: Layout, steps: int) -> Inputs:
    """Return the sample in a file."""
    found, values = _read_one(path, layout)
    if found != steps:
        raise UsageError(f"has {found} steps, the files before have {steps}", where=path)
    return layout.inputs(values, steps, str(path))


def _read_one(path: Path, layout: Layout) -> tuple[int, Array]:
    """Return the steps of a file's sample, and its values."""
    if path.suffix.lower() in RAW:
        return 1, read_raw(path, layout.tensor.dtype, layout.tensor.size)
    array = read_array(path)
    layout.check_type(array.dtype, str(path))
    return layout.steps_of_one(array.shape, str(path)), array


@lru_cache(maxsize=2)
def _open_arrays(path: Path, stamp: tuple[int, int]) -> dict[str, Array]:
    """Return the arrays of a file; of a .npy one whose name is empty."""
    if path.suffix.lower() == ".npz":
        return read_arrays(path)
    return {"": read_array(path, mapped=True)}


def _arrays(path: Path, graph: Graph) -> list[Array]:
    """Return an array of samples for each input of the model."""
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=path) from None
    found = _open_arrays(path, (status.st_mtime_ns, status.st_size))
    names = [tensor.name for tensor in graph.inputs]
    if len(names) == 1 and len(found) == 1:
        return list(found.values())
    if set(found) == {""}:
        raise UsageError(
            f"is one array, {graph.name} has the inputs {', '.join(names)}; write a .npz "
            "file with numpy.savez, an array for each",
            where=path,
        )
    for name in names:
        if name not in found:
            raise UsageError(f"has no array {name!r}:", where=path, hint=near_misses(name, found))
    return [found[name] for name in names]
