"""The key of a design: a hash of the content of all that its figures depend on.

Files are read where they are; their names and places do not matter. The tuner's records of this
machine are not in it: what is tuned during a sweep does not make its rows new designs.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.parameters import Value
from covp.base.cache import content_key
from covp.base.plugins import call_hook
from covp.base.request import BuildOptions, key_options
from covp.building.platform_content import (
    core_content,
    file_content,
    platform_content,
    timing_content,
)
from covp.chip.platform_file import Platform
from covp.compilers.toolchain import get_toolchain
from covp.evaluation.data import Data
from covp.graph.models import find_model


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


_SOURCES = frozenset({".py", ".c", ".h", ".S", ".ld", ".in", ".yaml", ".jsonl"})
_WITHOUT_EFFECT = ("cli/", "exploration/sweep/", "firmware/", "laboratory/", "report/", "testing/")


@functools.lru_cache(maxsize=1)
def covp_content() -> str:
    """Return the key of this covp: of its version and the files that figures come from."""
    root = Path(__file__).parents[2]
    folders = (path for path in root.iterdir() if path.is_dir())
    places = (*root.iterdir(), *(path for folder in folders for path in folder.rglob("*")))
    names = (path.relative_to(root).as_posix() for path in places if path.suffix in _SOURCES)
    files = sorted(name for name in names if not name.startswith(_WITHOUT_EFFECT))
    parts = ((name, (root / name).read_bytes()) for name in files)
    return content_key(version("covp"), *(text for part in parts for text in part))


def design_content(
    model: str,
    platform: Platform,
    units: Sequence[AcceleratorBackend],
    options: BuildOptions,
    data: Data | None = None,
    **settings: Any,
) -> str:
    """Return the key of a design whose parameters are as the files say.

    Args:
        model: a name of the zoo or a path.
        platform, units: that run it.
        options: how it is compiled.
        data: that its accuracy is found on.
        settings: all else that its figures depend on; JSON.

    Raises:
        CovpError: a file cannot be read, or the compiler is not there.
    """
    return content_key(
        covp_content(),
        model_content(model),
        platform_content(platform),
        *(unit_content(unit) for unit in units),
        get_toolchain(options.toolchain, platform.core).version,
        data_content(data),
        json.dumps(settings | key_options(options), sort_keys=True),
    )


def model_content(model: str) -> str:
    """Return the key of a model's file. Raises UsageError: there is none."""
    return file_content(str(find_model(model).path))


def data_content(data: Data | None) -> str:
    """Return the key of samples and labels: of their files' content, in a folder of names too."""
    if data is None:
        return ""
    root = data.samples
    if root.is_dir():
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        parts = [f"{path.relative_to(root)} {file_content(str(path))}" for path in files]
    else:
        parts = [file_content(str(root))]
    labels = "" if data.labels is None else file_content(str(data.labels))
    return content_key(*parts, labels, f"{data.on} {data.limit}")


def value_content(name: str, value: Value) -> Value:
    """Return a varied parameter's value; the content if the value names a file."""
    contents = {"platform.timing": timing_content, "platform.core": core_content}
    return contents[name](str(value)) if name in contents else value


def unit_content(unit: AcceleratorBackend) -> str:
    """Return the key of an accelerator: its parameters, Python sources and driver.

    Raises:
        AcceleratorError: its hooks raised.
    """
    files = call_hook(f"accelerator {unit.name}", "driver", unit.driver, 0)
    return content_key(
        unit.name,
        json.dumps(unit.values, sort_keys=True),
        json.dumps(dict(files), sort_keys=True),
        *sources((type(unit), unit.peripheral_class())),
    )


def point_key(content: str, vary: Mapping[str, Value]) -> str:
    """Return the key of a design with other values than those of its files."""
    values = {name: value_content(name, value) for name, value in vary.items()}
    return content_key(content, json.dumps(values, sort_keys=True))
