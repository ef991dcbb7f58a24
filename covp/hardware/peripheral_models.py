"""Peripheral models by name: those of covp, an importable module's or a file's."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from covp.base.plugins import describe, load_file
from covp.base.struct_errors import readable
from covp.errors import AcceleratorError, PlatformError, near_misses
from covp.hardware.peripheral import Peripheral

_SCALARS = {int, float, bool, str, NoneType}


def load_peripheral(model: str, parameters: Mapping[str, Any] | None = None) -> Peripheral:
    """Return a new peripheral model.

    Args:
        model: the name of a module in covp.peripherals (its class is the `Peripheral` subclass
            that it defines), "module:Class" or "path/to/file.py:Class".
        parameters: given to the constructor.

    Raises:
        PlatformError: there is no such model, where the text lists near misses; or a parameter is
            not of its type.
        AcceleratorError: the model cannot be imported or constructed.
    """
    place, _, wanted = model.partition(":")
    kind = _class(_module(place), model, wanted)
    given = dict(parameters or {})
    _check_types(model, kind, given)
    try:
        return kind(**given)
    except Exception as error:
        raise AcceleratorError(f"peripheral {model}: {error}") from error


def peripheral_names() -> list[str]:
    """Return the models that come with covp."""
    folder = Path(__file__).parent.parent / "peripherals"
    return sorted(path.stem for path in folder.glob("[!_]*.py"))


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise PlatformError(f"peripheral {place}: no such file")
        return load_file(place, AcceleratorError)
    full = place if "." in place else f"covp.peripherals.{place}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name is None or not full.startswith(error.name):
            raise AcceleratorError(f"{full} cannot be imported: {describe(error)}") from error
        hint = near_misses(place, peripheral_names())
        raise PlatformError(f"unknown peripheral {place!r}: {hint}") from None
    except Exception as error:
        raise AcceleratorError(f"{full} cannot be imported: {describe(error)}") from error


def _check_types(model: str, kind: type[Peripheral], given: Mapping[str, Any]) -> None:
    """Check numbers, texts and flags among parameters by the constructor's annotations."""
    try:
        hints = get_type_hints(kind.__init__)
    except NameError:  # a user's file may import names for its type checker alone
        return
    for name in given.keys() & hints.keys():
        if set(get_args(hints[name]) or (hints[name],)) <= _SCALARS:
            try:
                msgspec.convert(given[name], hints[name])
            except msgspec.ValidationError as error:
                reason = readable(error, hints[name])
                raise PlatformError(f"peripheral {model}: parameter {name}: {reason}") from None


def _class(module: ModuleType, model: str, wanted: str) -> type[Peripheral]:
    if wanted:
        found = getattr(module, wanted, None)
        if isinstance(found, type) and issubclass(found, Peripheral):
            return found
        raise PlatformError(f"peripheral {model}: {wanted} is not a Peripheral class in it")
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Peripheral)
        and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise PlatformError(f"peripheral {model}: it defines {len(classes)} models; write :Class")
    return classes[0]
