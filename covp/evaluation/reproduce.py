"""`reproduce`: a saved run once more, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from numpy.typing import NDArray

from covp.base.arguments import read_file
from covp.base.document import Count, unit
from covp.base.request import BuildOptions, RunOptions
from covp.building.builder import build
from covp.building.schedules import schedules_of
from covp.chip.platform_file import Platform, load_platform
from covp.errors import UsageError
from covp.evaluation.runner import run
from covp.evaluation.sample import Sample

_NO_FIGURES = (
    "simulation_seconds", "check.seconds", "check.source", "warnings", "accelerators["
)  # fmt: skip
"""Times of this machine, what hangs on its other runtimes, texts, and what ``origin`` says too."""
_CAUSES = ("origin.", "toolchain", "schedules.", "covp_version")
"""What the figures depend on."""


class _Model(msgspec.Struct):
    name: str
    sha256: str | None
    shapes: dict[str, tuple[int, ...]]


class _Platform(msgspec.Struct):
    name: str
    content: dict[str, Any] | None


class _Accelerator(msgspec.Struct):
    request: str


class _Inputs(msgspec.Struct):
    seed: int | None


class _Origin(msgspec.Struct):
    model: _Model
    platform: _Platform
    accelerators: list[_Accelerator]
    inputs: _Inputs
    build: BuildOptions
    run: RunOptions


class _Run(msgspec.Struct, tag_field="schema", tag="covp.run/1"):
    origin: _Origin | None = None


class ChangedValue(msgspec.Struct, frozen=True):
    """A value of a run's document that is another one now.

    Attributes:
        key: such as `layers[3].cycles`
        then: in the file; None where it is not there
        now: None where it is not there any more
        is_cause: it is of what the figures depend on, such as the compiler's version
    """

    key: str
    then: Any
    now: Any
    is_cause: bool


class Reproduced(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.reproduce/1"
):
    """The output of ``covp reproduce --json``.

    Attributes:
        compared: of the two documents, without times of the machine
        equal: no figure differs, whatever else has changed
        differences: causes first
    """

    compared: Annotated[Count, unit("values")]
    equal: bool
    differences: list[ChangedValue]


def reproduce(path: Path, inputs: Sequence[NDArray[Any]] = ()) -> Reproduced:
    """Run again what a document of ``covp run --json`` records.

    Args:
        path: of the document.
        inputs: one array per input, where the recorded run had given ones.

    Raises:
        UsageError: the file is no such document, records no origin, or its inputs were given.
        CovpError: the model, the platform or an accelerator is gone, or does not run.
    """
    text = read_file(path)
    try:
        then, saved = msgspec.json.decode(text), msgspec.json.decode(text, type=_Run)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"not the JSON of one `covp run`: {error}", where=path) from None
    origin = saved.origin
    if origin is None:
        raise UsageError("written before runs recorded their origin; make it anew", where=path)
    if origin.model.sha256 is None:
        raise UsageError("its model was made in memory, not read from a file", where=path)
    if origin.inputs.seed is None and not inputs:
        raise UsageError("its inputs were given, not random: name them with --input", where=path)
    try:
        now = _again(origin, inputs)
    except (UsageError, msgspec.ValidationError) as error:
        raise UsageError(f"{error}", where=path) from None
    # the time of a device that measures it is another one each time
    is_measured = origin.run.device.partition(":")[0] not in ("virtual", "rtl")
    return _compare_values(then, now, ("seconds", "transfers") if is_measured else ())


def _again(origin: _Origin, inputs: Sequence[NDArray[Any]]) -> dict[str, Any]:
    """Return the document of the same run now."""
    content = origin.platform.content
    if content is None:
        board = load_platform(origin.platform.name)
    else:
        board = msgspec.convert(content, Platform)
    options = msgspec.structs.replace(origin.build, shapes=origin.model.shapes)
    schedules = schedules_of(board, options, origin.run.device)
    requests = [unit.request for unit in origin.accelerators]
    made = build(origin.model.name, board, requests, options, schedules=schedules)
    seed = origin.inputs.seed or 0
    sample = Sample.of(made.graph, inputs) if inputs else Sample.random(made.graph, seed)
    done = run(made, sample, origin.run)
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(done.record()))
    return document


def _compare_values(then: Any, now: Any, left_out: tuple[str, ...]) -> Reproduced:
    before, after = dict(_flat(then, "")), dict(_flat(now, ""))
    # what the present covp does not record, or the former did not, is no difference
    shared = [key for key in before if key in after]
    lost = sorted(key for key in {*before} ^ {*after} if "[" in key)
    keys = [key for key in (*shared, *lost) if not key.startswith((*_NO_FIGURES, *left_out))]
    found = [
        ChangedValue(key, before.get(key), after.get(key), key.startswith(_CAUSES))
        for key in keys
        if before.get(key) != after.get(key)
    ]
    return Reproduced(
        compared=len(keys),
        equal=all(one.is_cause for one in found),
        differences=sorted(found, key=lambda one: not one.is_cause),
    )


def _flat(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Yield each plain value of a document, with its key."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{key}[{index}]")
    else:
        yield key, value
