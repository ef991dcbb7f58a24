"""Options for samples with labels, and what is printed of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from covp.base.request import BuildOptions
from covp.cli.groups import option
from covp.cli.options import bundle
from covp.cli.output import progress
from covp.errors import UsageError
from covp.evaluation import Evaluation
from covp.evaluation.data.accuracy import Data, accuracy_of, first_inputs
from covp.evaluation.data.quality import Beside, Quality, Scores
from covp.graph.models import as_graph

_OPTIONS = (
    option(
        "--data",
        "samples",
        type=click.Path(path_type=Path),
        metavar="FOLDER|FILE",
        heading="Samples",
        help="Run many samples: a .npy file (samples, ...), a .npz file with an array for each "
        "input, or a folder with a .npy or raw file for each; floats are quantized.",
    ),
    option(
        "--labels",
        type=click.Path(path_type=Path),
        metavar="FILE",
        heading="Samples",
        help="Ground truth per sample, .npy or text: classes for top-1, 0 and 1 for the area "
        "under the curve, floats for mean errors.",
    ),
    option(
        "--data-on",
        "data_on",
        type=click.Choice(["device", "reference"]),
        default="device",
        show_default=True,
        heading="Samples",
        help="What runs the samples; the bit-exact reference is faster and has no cycles.",
    ),
    option(
        "--data-limit",
        "data_limit",
        type=click.IntRange(1),
        metavar="N",
        heading="Samples",
        help="The first N samples only.",
    ),
    option(
        "--float-model",
        metavar="MODEL",
        heading="Samples",
        help="Run the samples on this model too: the original float model.",
    ),
    option(
        "--jobs",
        heading="Samples",
        type=click.IntRange(1),
        help="Processes for samples; default: one per CPU core.",
    ),
)


@dataclass(frozen=True)
class SampleOptions:
    """Samples that the options name; `run_data` takes it.

    Attributes:
        data: the samples.
        float_model: beside it.
        jobs: processes.
    """

    data: Data
    float_model: str | None
    jobs: int


def read_options(
    samples: Path | None,
    labels: Path | None,
    data_on: Any,
    data_limit: int | None,
    float_model: str | None,
    jobs: int | None,
) -> SampleOptions | None:
    """Return the samples that the options name; None: there are none.

    Raises:
        UsageError: an option needs ``--data``.
    """
    if samples is not None:
        data = Data(samples, labels, data_on, data_limit)
        return SampleOptions(data, float_model, jobs or os.cpu_count() or 1)
    given = {
        "--labels": labels,
        "--data-limit": data_limit,
        "--float-model": float_model,
        "--jobs": jobs,
    }
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name} belongs to samples: name them with --data")
    return None


options = bundle(
    "data",
    read_options,
    ("samples", "labels", "data_on", "data_limit", "float_model", "jobs"),
    *_OPTIONS,
)
"""The options ``--data`` and those that belong to it; the command gets ``data``."""


def demand_fit(data: SampleOptions | None, models: Sequence[str], options: BuildOptions) -> None:
    """Raise UsageError if samples or labels do not fit one of the models."""
    if data is not None:
        for model in models:
            first_inputs(data.data, as_graph(model, options))


def run_data(
    results: Sequence[Evaluation], data: SampleOptions | None, model: str, device: str
) -> list[Evaluation]:
    """Return evaluations of one model with what `accuracy_of` says; a bar on a terminal.

    The reference, the float model and LiteRT do not depend on the build: they run once, and stand
    in the first one.

    Args:
        results: of the model.
        data: the samples; None: there are none.
        model: as it was named, for LiteRT.
        device: as for `Session`.
    """
    if data is None or not results:
        return list(results)
    first, *others = results
    with progress("samples", None) as advance:
        run = partial(accuracy_of, data=data.data, device=device, jobs=data.jobs, advance=advance)
        quality = run(first.build, float_model=data.float_model, litert=model)
        found = [replace(first, data=quality)]
        plain = replace(quality, float_model=None, litert=None)
        for other in others:
            is_same = data.data.on == "reference"
            found.append(replace(other, data=plain if is_same else run(other.build)))
    return found


def accuracy_cell(quality: Quality | None) -> str | None:
    """Return the one figure that says most, for a table."""
    if quality is None:
        return None
    scores = quality.scores
    if scores.mean_error is not None:
        return f"error {scores.mean_error.absolute:.4g}"
    if scores.top1 is not None:
        return f"{scores.top1:.2%}"
    return None if scores.auc is None else f"AUC {scores.auc:.4f}"


def data_lines(quality: Quality) -> list[str]:
    """Return lines on samples."""
    steps = f" of {quality.steps} inferences each" if quality.steps > 1 else ""
    where = {
        "device": "on the device",
        "reference": "by the bit-exact reference, not on the device",
    }
    scores = _scores(quality.scores) or "no labels"
    lines = [f"{quality.samples:,} samples{steps} {where[quality.on]}: {scores}"]
    for name, beside in (("float model", quality.float_model), ("LiteRT", quality.litert)):
        if isinstance(beside, Beside):
            lines.append(f"{name}: {_beside(beside)}")
        elif beside is not None:
            lines.append(f"{name}: {beside}")
    if quality.saturated > 0.001:
        lines.append(
            f"{quality.saturated:.1%} of the samples' values are beyond what the input can hold: "
            "were they scaled as in the training?"
        )
    if quality.cycles is not None:
        cycles = quality.cycles
        lines.append(f"cycles {cycles.min:,} to {cycles.max:,}, mean {cycles.mean:,.0f}")
    rate = quality.samples / max(quality.seconds, 1e-9) * 60
    lines.append(f"samples run in {quality.seconds:,.1f} s, {rate:,.0f} a minute")
    return lines


def _scores(scores: Scores) -> str:
    found = []
    if scores.top1 is not None:
        found.append(f"top-1 {scores.top1:.2%}")
    if scores.top5 is not None:
        found.append(f"top-5 {scores.top5:.2%}")
    if scores.auc is not None:
        found.append(f"AUC {scores.auc:.4f}")
    if scores.mean_error is not None:
        error = scores.mean_error
        found.append(f"mean absolute error {error.absolute:.4g}, squared {error.squared:.4g}")
    return ", ".join(found)


def _beside(beside: Beside) -> str:
    found = [text] if (text := _scores(beside.scores)) else []
    if beside.other_classes is not None:
        found.append(f"another class for {beside.other_classes:,} samples")
    if beside.other_bytes is not None:
        found.append(f"other bytes for {beside.other_bytes:,} samples")
    return f"{', '.join(found)} ({beside.what})"
