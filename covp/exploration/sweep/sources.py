"""`sources`: the Python files that a user's classes are made of, found without executing them."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path


def sources(classes: Iterable[type]) -> list[bytes]:
    """Return the files of classes and of what these import from beside themselves, by content.

    Args:
        classes: with all their bases. What covp, Python and other packages bring is left out.
    """
    waiting = [place for each in classes for base in each.__mro__ for place in _place(base)]
    found: dict[Path, bytes] = {}
    while waiting:
        file, root = waiting.pop()
        if file not in found:
            found[file] = file.read_bytes()
            waiting += [(other, root) for other in _find_imports(file, found[file], root)]
    return sorted(found.values())


def _place(base: type) -> Iterator[tuple[Path, Path]]:
    """Yield the file of a user's class, and the folder that its imports are searched from."""
    name = base.__module__
    package = name.partition(".")[0]
    is_file = ".file_" in name  # of `covp.base.plugins`
    if package in sys.stdlib_module_names or (package == "covp" and not is_file):
        return
    try:
        source = inspect.getsourcefile(sys.modules[name])
    except (TypeError, KeyError):
        return
    if source is None:
        return
    file = Path(source).resolve()
    depth = 0 if is_file else name.count(".") + (file.name == "__init__.py")
    yield file, file.parents[depth]


def _find_imports(file: Path, text: bytes, root: Path) -> Iterator[Path]:
    """Yield the files below ``root`` that a file imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [root.joinpath(*alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = file.parents[node.level - 1] if node.level else root
            base = base.joinpath(*(node.module or "").split("."))
            names = [base, *(base / alias.name for alias in node.names)]
        else:
            continue
        for name in names:
            candidates = name.with_suffix(".py"), name / "__init__.py"
            yield from (path for path in candidates if path.is_file())
