"""Finding accelerators by the user's text: a built-in, a plug-in or a file.

Three ways to one type: the folders of ``covp.accel_backends``, the entry point group
``covp.accelerators`` of any installed package, and ``path/to/file.py:Class``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from itertools import chain, count
from pathlib import Path
from types import ModuleType

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.parameters import Parameter, split_parameters
from covp.base.arguments import demand_each
from covp.base.c_names import c_prefix
from covp.base.plugins import describe, load_file
from covp.errors import AcceleratorError, CovpError, UsageError, near_misses

ENTRY_POINTS = "covp.accelerators"
_BUILT_IN = "covp.accel_backends"
_INSTANCE = re.compile(r"^(?P<instance>[^=:/\\]*)=(?P<spec>.*)$")
_RTL_FILE = re.compile(r"([:,]rtl=)([^,]+\.s?v)\b")
_FILE = re.compile(r"^(?P<path>.+\.py)(:(?P<name>[A-Za-z_]\w*))?(:(?P<parameters>.*))?$")


@dataclass(frozen=True)
class BackendInfo:
    """An accelerator that can be named.

    Attributes:
        name: as users write it after ``-a``.
        description: one line; the reason, where a plug-in cannot be loaded.
        origin: "built in" or the package that brings it.
        parameters: what can be set.
    """

    name: str
    description: str
    origin: str
    parameters: tuple[Parameter, ...] = ()


def find_backend(spec: str) -> AcceleratorBackend:
    """Return a backend by "name", "file.py:Class" or "file.py", each followed by ":key=value,...".

    The instance may be given a name of its own before all that: "small=gemm:size=8".

    Raises:
        UsageError: an unknown name or parameter, or no such file or class.
        AcceleratorError: the plug-in or file cannot be loaded or holds something else.
    """
    named = _INSTANCE.match(spec)
    if named is not None:
        return _make(named["spec"]).with_name(named["instance"].strip())
    return _make(spec)


def at_folder(spec: str, folder: Path) -> str:
    """Return the same accelerator, named from anywhere.

    Args:
        spec: a text that `find_backend` takes.
        folder: that the paths of its file and its Verilog, if it has them, are relative to.
    """
    named = _INSTANCE.match(spec)
    name, text = (f"{named['instance']}=", named["spec"]) if named else ("", spec)
    file = _FILE.match(text)
    if file is None:
        return spec
    rest = _RTL_FILE.sub(lambda found: f"{found[1]}{folder / found[2]}", text[file.end("path") :])
    return f"{name}{folder / file['path']}{rest}"


def find_backends(
    accelerators: Sequence[str | AcceleratorBackend],
) -> list[AcceleratorBackend]:
    """Find backends, of which no two have one name.

    Where an accelerator is named several times without names of their own, the second one becomes
    ``gemm_2`` and so on.

    Args:
        accelerators: as `find_backend` takes them, or backends.

    Raises:
        UsageError, AcceleratorError: see `find_backend`; or two instances are given one name.
    """
    demand_each("accelerators", accelerators, (str, AcceleratorBackend), "a name or a backend")
    found = [find_backend(a) if isinstance(a, str) else a for a in accelerators]
    own = [c_prefix(backend.name) for backend in found if backend.name != type(backend).name]
    for backend in found:
        if own.count(c_prefix(backend.name)) > 1:
            raise UsageError(
                f"two accelerators are named {backend.name}; names must differ in more than case"
            )
    used = set(own)
    return [
        backend if backend.name != type(backend).name else _distinct(backend, used)
        for backend in found
    ]


def _distinct(backend: AcceleratorBackend, used: set[str]) -> AcceleratorBackend:
    """Return the backend under its own name or, where that is used, with a number."""
    names = chain([backend.name], (f"{backend.name}_{number}" for number in count(2)))
    name = next(name for name in names if c_prefix(name) not in used)
    used.add(c_prefix(name))
    return backend if name == backend.name else backend.with_name(name)


def _make(spec: str) -> AcceleratorBackend:
    file = _FILE.match(spec)
    if file is not None:
        backend = _from_file(Path(file["path"]), file["name"])
        text = file["parameters"] or ""
    else:
        name, _, text = spec.partition(":")
        backend = _by_name(name.strip())
    values = split_parameters(backend.name, text)
    try:
        return backend(values)
    except CovpError:
        raise
    except Exception as error:
        raise AcceleratorError(f"accelerator {spec} cannot be made: {describe(error)}") from error


def list_backends() -> list[BackendInfo]:
    """Return every accelerator that can be named, by name; broken plug-ins say why."""
    found = []
    for name, (origin, load) in sorted(_sources().items()):
        try:
            backend = load()
        except CovpError as error:
            found.append(BackendInfo(name, f"cannot be used: {error}", origin))
        else:
            found.append(
                BackendInfo(name, backend.description(), origin, tuple(backend.parameters))
            )
    return found


def built_in_names() -> list[str]:
    """Return the accelerators that come with covp; no other can have their names."""
    folders = pkgutil.iter_modules(importlib.import_module(_BUILT_IN).__path__)
    return [module.name for module in folders]


Loader = Callable[[], type[AcceleratorBackend]]


def _by_name(name: str) -> type[AcceleratorBackend]:
    sources = _sources()
    if name not in sources:
        raise UsageError(
            f"unknown accelerator {name!r}:",
            hint=f"{near_misses(name, sources)} (or write path/to/file.py:Class)",
        )
    return sources[name][1]()


def _sources() -> Mapping[str, tuple[str, Loader]]:
    """Name to where it comes from and how to load it; built-in ones cannot be replaced."""
    sources: dict[str, tuple[str, Loader]] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        package = entry.dist.name if entry.dist is not None else entry.value
        load: Loader = partial(_from_entry_point, entry)
        if entry.name in sources:
            both = f"{sources[entry.name][0]} and {package}"
            package, load = both, partial(_reject, entry.name, both)
        sources[entry.name] = package, load
    for name in built_in_names():
        sources[name] = "built in", partial(_from_module, f"{_BUILT_IN}.{name}.backend")
    return sources


def _reject(name: str, packages: str) -> type[AcceleratorBackend]:
    raise AcceleratorError(
        f"accelerator {name}: the packages {packages} bring one each; uninstall one of them or "
        "write path/to/file.py:Class"
    )


def _from_entry_point(entry: EntryPoint) -> type[AcceleratorBackend]:
    try:
        found = entry.load()
    except Exception as error:
        raise AcceleratorError(
            f"accelerator {entry.name} ({entry.value}) cannot be loaded: {describe(error)}"
        ) from error
    if isinstance(found, ModuleType):
        return _only_backend(found, entry.value)
    return _check_class(found, f"{entry.name} ({entry.value})")


def _from_module(path: str) -> type[AcceleratorBackend]:
    try:
        module = importlib.import_module(path)
    except Exception as error:
        raise AcceleratorError(f"{path} cannot be imported: {describe(error)}") from error
    return _only_backend(module, path)


def _from_file(path: Path, name: str | None) -> type[AcceleratorBackend]:
    if not path.is_file():
        raise UsageError(
            "no such file; an accelerator is a name or path/to/file.py:Class", where=path
        )
    module = load_file(path, AcceleratorError)
    if name is None:
        return _only_backend(module, str(path))
    if not hasattr(module, name):
        known = [backend.__name__ for backend in _backends_in(module)]
        raise UsageError(f"{path} has no class {name!r}:", hint=near_misses(name, known))
    return _check_class(getattr(module, name), f"{path}:{name}")


def _backends_in(module: ModuleType) -> list[type[AcceleratorBackend]]:
    """Return the finished backend classes that a module itself defines."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, AcceleratorBackend)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    ]


def _only_backend(module: ModuleType, where: str) -> type[AcceleratorBackend]:
    found = _backends_in(module)
    if len(found) == 1:
        return _check_class(found[0], where)
    if not found:
        raise AcceleratorError(f"{where} defines no complete subclass of AcceleratorBackend")
    names = ", ".join(backend.__name__ for backend in found)
    raise UsageError(f"{where} defines {names}; say which one, as {where}:{found[0].__name__}")


def _check_class(found: object, where: str) -> type[AcceleratorBackend]:
    if not (isinstance(found, type) and issubclass(found, AcceleratorBackend)):
        raise AcceleratorError(f"{where} is not a subclass of AcceleratorBackend")
    missing = sorted(found.__abstractmethods__) + [
        key for key in ("name", "patterns", "peripheral") if not hasattr(found, key)
    ]
    if missing:
        raise AcceleratorError(f"{where} lacks {', '.join(missing)}")
    return found
