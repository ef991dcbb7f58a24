"""Code of users: their Python files as modules, and calls of the functions that they wrote.

A file ``/home/me/mac.py`` is the module ``covp.base.plugins.file__2fhome_2fme_2fmac_2epy``. The
name says where the file is, so every process can import it: classes and functions of a user's file
pickle by reference, like those of an installed package.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

from covp.base.cache import content_key
from covp.errors import AcceleratorError, CovpError

__path__: list[str] = []
"""Empty path that makes this module a package, so that files can be modules in it."""

_PREFIX = f"{__name__}.file_"
_ESCAPED = re.compile(r"(?:[A-Za-z0-9]|_[0-9a-f]{2})+")
_loaded: dict[str, str] = {}
"""The key of the loaded content by module name."""
_beside: dict[str, Path] = {}
"""The folder of each module, by name, that a user's file imported from its own folder."""
_T = TypeVar("_T")


def load_file(path: Path | str, error: type[CovpError], *, again: bool = False) -> ModuleType:
    """Return the module in a user's Python file.

    It is executed once; a file whose content has changed is executed anew, in a new module. While
    it is executed, the files beside it can be imported.

    Args:
        path: of the file, which must exist.
        error: raised when the file cannot be loaded.
        again: execute it anew in any case: for files whose purpose is what they register.

    Raises:
        CovpError: of the given class, with the line of the file that raised. A CovpError that the
            file itself raises is passed on as it is.
    """
    file = Path(path).resolve()
    name = module_name(file)
    try:
        if again or _loaded.get(name) != content_key(file.read_bytes()):
            sys.modules.pop(name, None)
        return importlib.import_module(name)
    except CovpError:
        raise
    except (Exception, SystemExit) as raised:
        where = f"{path}{_line(raised, file)}"
        raise error(f"{where} cannot be loaded: {describe(raised)}") from raised


def module_name(path: Path) -> str:
    """Return the name of the module that stands for a file with an absolute path."""
    escaped = (chr(c) if chr(c).isalnum() and c < 128 else f"_{c:02x}" for c in bytes(path))
    return _PREFIX + "".join(escaped)


def call_hook(
    where: str,
    hook: str,
    function: Callable[..., _T],
    *arguments: Any,
    error: type[CovpError] = AcceleratorError,
) -> _T:
    """Return the result of a function that a user wrote.

    Args:
        where: who owns the hook, e.g. "accelerator gemm, layer conv2d_3".
        hook: its name.
        function: the hook itself, called with ``arguments``.
        error: raised for anything that the hook raises but a CovpError, which is passed on.

    Raises:
        CovpError: of the given class: "WHERE: HOOK() raised TYPE: text".
    """
    try:
        return function(*arguments)
    except CovpError:
        raise
    except Exception as raised:
        raise error(
            f"{where}: {hook}() raised {type(raised).__name__}: {' '.join(str(raised).split())}"
        ) from raised


def describe(error: BaseException) -> str:
    """Return the type and the first line of an exception."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def _line(error: BaseException, file: Path) -> str:
    """Return the innermost line of a file that an exception passed through, as ":12"."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f":{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return f":{lines[-1]}" if lines else ""


class _FileLoader(SourceFileLoader):
    """A loader of a file's present content: bytecode files only tell seconds and sizes apart."""

    def get_code(self, fullname: str) -> CodeType:
        data = self.get_data(self.path)
        _loaded[fullname] = content_key(data)
        return self.source_to_code(data, self.path)

    def exec_module(self, module: ModuleType) -> None:
        folder = Path(self.path).parent
        _forget_namesakes(folder)
        before = set(sys.modules)
        sys.path.insert(0, str(folder))
        try:
            super().exec_module(module)
        finally:
            sys.path.remove(str(folder))
            for name in set(sys.modules) - before:
                if "." not in name and _lies_in(folder, name):
                    _beside[name] = folder


def _lies_in(folder: Path, name: str) -> bool:
    """Return whether a folder has a module or package of that name."""
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()


def _forget_namesakes(folder: Path) -> None:
    """Forget modules from other folders that have the name of a file in this folder."""
    for name, home in list(_beside.items()):
        if home != folder and _lies_in(folder, name):
            del _beside[name]
            for module in [m for m in sys.modules if m.partition(".")[0] == name]:
                del sys.modules[module]


class _FileFinder(MetaPathFinder):
    """A finder of the file that a module name stands for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        escaped = fullname.removeprefix(_PREFIX)
        if not fullname.startswith(_PREFIX) or not _ESCAPED.fullmatch(escaped):
            return None
        data = re.sub(r"_([0-9a-f]{2})", lambda byte: chr(int(byte[1], 16)), escaped)
        file = Path(data.encode("latin-1").decode(errors="surrogateescape"))
        if not (file.is_absolute() and file.is_file()):
            return None
        return spec_from_file_location(fullname, file, loader=_FileLoader(fullname, str(file)))


sys.meta_path.append(_FileFinder())
