"""`read_spec`: the YAML file of a sweep, checked; every mistake is one line with its key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from covp.accelerator.parameters import Value
from covp.accelerator.registry import at_folder
from covp.base.struct_errors import readable
from covp.base.yaml_files import read_yaml
from covp.chip.cores import is_core_path, timing_file
from covp.errors import UsageError, near_misses
from covp.exploration.sweep.constraints import Constraint
from covp.exploration.sweep.points import FIGURES
from covp.exploration.sweep.ranges import values_of
from covp.exploration.sweep.spec import Samples, Spec

_LONGEST = 300
_NUMBER = re.compile(r"[+-]?\d[\d_]*(\.\d*)?([eE][+-]?\d+)?")


def read_spec(path: str | Path) -> Spec:
    """Return a sweep's file; its paths become absolute.

    Raises:
        UsageError: with the file, the key and the reason.
    """
    path = Path(path)
    content = read_yaml(path, UsageError)
    return make_spec(content, f"{path}: ", path.absolute().parent)


def make_spec(content: Any, where: str = "", folder: Path | None = None) -> Spec:
    """Return a sweep from what its file holds.

    Args:
        content: the mapping.
        where: begins every error.
        folder: of relative paths; by default the current one.

    Raises:
        UsageError: with the key and the reason.
    """
    if not isinstance(content, Mapping):
        raise UsageError(f"{where}a sweep is a mapping of keys (models, platforms, vary ...)")
    try:
        spec = msgspec.convert(_as_meant(content), Spec)
    except msgspec.ValidationError as error:
        text = readable(str(error).replace("$.vary[...]", _wrong_axis(content)), Spec)
        raise UsageError(f"{where}{text[:_LONGEST]}") from None
    problem = next(_problems(spec), None)
    if problem:
        raise UsageError(f"{where}{problem[:_LONGEST]}")
    return _absolute(spec, folder or Path.cwd())


def _as_meant(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with YAML 1.1's misreadings undone: texts like 100e6, the key `on`."""
    found = dict(content)
    if isinstance(found.get("data"), Mapping):
        found["data"] = {"on" if key is True else key: v for key, v in found["data"].items()}
    if isinstance(found.get("vary"), Mapping):
        found["vary"] = {
            name: [_number(value) for value in values] if isinstance(values, list) else values
            for name, values in found["vary"].items()
        }
    if isinstance(found.get("points"), list):
        found["points"] = [
            {name: _number(value) for name, value in entry.items()}
            if isinstance(entry, Mapping)
            else entry
            for entry in found["points"]
        ]
    return found


def _number(value: Any) -> Any:
    """Return text that is a number as one, and whole floats as integers."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _problems(spec: Spec) -> Iterator[str]:
    """Yield the broken rules that types cannot express, as "key: reason"."""
    search = spec.search
    for position, text in enumerate(spec.constraints):
        try:
            Constraint.read(text, FIGURES)
        except ValueError as error:
            yield f"constraints[{position}]: {error}"
    for name, given in spec.vary.items():
        try:
            values_of(given)
        except ValueError as error:
            yield f"vary.{name}: {error}"
    if search.kind == "list":
        if not spec.points:
            yield "points: a search of kind list takes its designs from there; there are none"
        if spec.vary:
            yield "vary: a search of kind list has the values in points"
    elif spec.points:
        yield f"points: designs are listed for a search of kind list, not {search.kind}"
    for key in ("samples", "labels"):
        by_model = getattr(spec.data, key, None)
        for model in by_model if isinstance(by_model, dict) else ():
            if model not in spec.models:
                yield f"data.{key}: no model {model!r}: {near_misses(model, spec.models)}"
    if spec.data is not None and spec.data.labels is None:
        places = spec.data.samples
        for path in places.values() if isinstance(places, dict) else [places]:
            if Path(path).suffix in (".npy", ".npz"):
                yield "data: the key labels is missing"
    if search.kind in ("random", "optuna") and search.points is None:
        yield f"search.points: a search of kind {search.kind} needs the number of designs"
    if search.kind in ("grid", "list") and search.points is not None:
        yield f"search.points: all designs of a {search.kind} are evaluated"
    if search.kind == "optuna" and not search.objectives:
        yield "search.objectives: a search of kind optuna needs one or more"


def _absolute(spec: Spec, folder: Path) -> Spec:
    """Return a sweep with absolute paths, so that it means the same everywhere."""
    return msgspec.structs.replace(
        spec,
        models=tuple(_model_at(folder, model) for model in spec.models),
        platforms=tuple(_platform_at(folder, platform) for platform in spec.platforms),
        accelerators=tuple(
            tuple(at_folder(unit, folder) for unit in setup) for setup in spec.accelerators
        ),
        vary={
            name: tuple(_value_at(folder, name, value) for value in given)
            if isinstance(given, tuple)
            else given
            for name, given in spec.vary.items()
        },
        points=tuple(
            {name: _value_at(folder, name, value) for name, value in entry.items()}
            for entry in spec.points
        ),
        data=None if spec.data is None else _samples_at(folder, spec.data),
    )


def _samples_at(folder: Path, data: Samples) -> Samples:
    def place(files: str | dict[str, str]) -> str | dict[str, str]:
        if isinstance(files, str):
            return str(folder / files)
        return {_model_at(folder, model): str(folder / file) for model, file in files.items()}

    labels = None if data.labels is None else place(data.labels)
    return msgspec.structs.replace(data, samples=place(data.samples), labels=labels)


def _model_at(folder: Path, model: str) -> str:
    """Return a model, in the folder if `covp.graph.models.find_model` takes it for a path."""
    path = Path(model)
    is_path = path.suffix or len(path.parts) > 1 or (folder / path).is_file()
    return str(folder / path) if is_path else model


def _platform_at(folder: Path, platform: str) -> str:
    """Return a platform, in the folder if `load_platform` takes it for a path."""
    is_path = platform.endswith((".yaml", ".yml")) or "/" in platform
    return str(folder / platform) if is_path else platform


def _value_at(folder: Path, name: str, value: Value) -> Value:
    text = str(value)
    is_file = (name == "platform.timing" and timing_file(text)) or (
        name == "platform.core" and is_core_path(text)
    )
    return str(folder / str(value)) if is_file else value


def _wrong_axis(content: Mapping[str, Any]) -> str:
    """Return the key of the first parameter with invalid values; msgspec does not name it."""
    kind = next(field.type for field in msgspec.structs.fields(Spec) if field.name == "vary")
    axes = content.get("vary")
    for name, values in axes.items() if isinstance(axes, Mapping) else ():
        try:
            msgspec.convert({name: values}, kind)
        except msgspec.ValidationError:
            return f"$.vary.{name}"
    return "$.vary"
