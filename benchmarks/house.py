"""The bars of the house: how often covp says each fact, counted from the source.

    python benchmarks/house.py

A bar is what a figure may be at most; `tests/packaging/test_house.py` holds them. Figures that need
a run have scripts of their own: `core_costs.py` (estimates of the core's side), `all_tests.py`.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COVP = ROOT / "covp"
CONTENT = ("peripherals", "accel_backends", "device_runtime", "platforms")
DECLARING = ("graph/ops/", "graph/onnx/", "graph/tflite/", "graph/zoo/tflite", "codegen/kernels/")
"""Where an operator's declaration, readers, writer and kernels are."""
LIKE = 6
"""Lines in a row that make two places alike."""


class Bar(NamedTuple):
    """A figure of the house.

    Attributes:
        text: what is counted.
        wanted: the most that it may be in the end.
        measure: counts the source as it is.
        held: the most that it may be today, where ``wanted`` is not reached.
    """

    text: str
    wanted: int
    measure: Callable[[], int]
    held: int | None = None


@functools.cache
def sources() -> dict[str, str]:
    """Python files of covp/ without content: path from there, text."""
    found = {}
    for path in sorted(COVP.rglob("*.py")):
        name = path.relative_to(COVP).as_posix()
        if not name.startswith(CONTENT):
            found[name] = path.read_text(encoding="utf-8")
    return found


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in sources().items()}


def lines() -> int:
    """Of all Python files, blank ones, comments and docstrings included."""
    return sum(text.count("\n") for text in sources().values())


def packages() -> int:
    """Directly in covp/, without those of content."""
    return sum((path / "__init__.py").is_file() for path in COVP.iterdir()) - sum(
        (COVP / name / "__init__.py").is_file() for name in CONTENT
    )


def _room(module: str) -> str:
    """The package directly in covp/, or the module there, that a module is in."""
    parts = module.replace("__main__", "cli").split(".")
    return parts[1] if len(parts) > 1 else "covp"


def _imports() -> dict[str, set[str]]:
    """For each room those that it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees().items():
        room = _room("covp." + name.removesuffix(".py").replace("/", ".").removesuffix("__init__"))
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module == "covp":
                names = [f"covp.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            found[room or "covp"] |= {_room(each) for each in names if each.startswith("covp")}
    return {room: others - {room} for room, others in found.items()}


def floors() -> int:
    """The longest chain of rooms of which each imports the next."""
    imports = _imports()

    @functools.cache
    def height(room: str) -> int:
        return 1 + max((height(other) for other in imports.get(room, ())), default=0)

    return max(map(height, imports))


@functools.cache
def _kinds() -> dict[str, set[str]]:
    """For each kind of operator the files outside its declaring rooms that name it."""
    from covp.graph.ops.definition import OPS

    known = set(OPS)
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees().items():
        if name.startswith(DECLARING):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in known:
                found[str(node.value)].add(name)
    return found


def kind_files() -> int:
    """Pairs of a kind and a file that names it elsewhere than where it is declared."""
    return sum(map(len, _kinds().values()))


def files_of_one_kind() -> int:
    """Of the kind that most files name elsewhere."""
    return max(map(len, _kinds().values()))


def _files_with(pattern: str) -> int:
    return sum(re.search(pattern, text) is not None for text in sources().values())


def option_files() -> int:
    """Files that name an option of a build, ``allow_slower``."""
    return _files_with(r"\ballow_slower\b")


def rounding_files() -> int:
    """Files that ask which arithmetic holds, by one of its signs."""
    return _files_with(r"\.arithmetic [!=]= |\.factors is (not )?None|\bwide_sums\b|UnsignedPool2D")


def double_classes() -> int:
    """Names of public classes that two or more modules define."""
    names = Counter(
        node.name
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sum(count > 1 for count in names.values())


def back_doors() -> int:
    """Type checks for the virtual device, ignored imports, `__getattr__` of modules."""
    rules = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    check = re.compile(r"isinstance\([^()]*\bVirtualDevice\b")
    checks = sum(len(check.findall(text)) for text in sources().values())
    doors = sum(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
        for tree in trees().values()
        for node in tree.body
    )
    return checks + len(re.findall(r"^ignore_imports", rules, re.M)) + doors


def _windows() -> Iterator[tuple[tuple[str, ...], tuple[str, int]]]:
    for name, text in sources().items():
        body = [line.strip() for line in text.splitlines()]
        kept = [
            (number, line)
            for number, line in enumerate(body)
            if len(line) > 3 and not line.startswith(("import ", "from ", "#"))
        ]
        for at in range(len(kept) - LIKE + 1):
            rows = kept[at : at + LIKE]
            yield tuple(line for _, line in rows), (name, at)


def like_lines() -> int:
    """Pairs of places with `LIKE` or more lines in a row the same; imports and blanks left out."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for text, place in _windows():
        places[text].append(place)
    same = {pair for found in places.values() for pair in itertools.combinations(found, 2)}
    return sum(((a, i - 1), (b, j - 1)) not in same for (a, i), (b, j) in same)


BARS = (
    Bar("lines of Python in covp/", 98_000, lines, held=121_450),
    Bar("packages directly in covp/", 14, packages),
    Bar("floors of the rooms' imports", 10, floors),
    Bar("(operator kind, file) outside declaration, reader, writer, kernel", 180, kind_files, 336),
    Bar("files that name one kind, the most", 15, files_of_one_kind, 19),
    Bar("files that state one build option (allow_slower)", 5, option_files),
    Bar("files that decide the rule of rounding", 5, rounding_files),
    Bar("public class names defined twice or more", 14, double_classes, 74),
    Bar("checks for VirtualDevice, ignored imports, modules' __getattr__", 0, back_doors),
    Bar("pairs of places with six like lines", 99, like_lines),
)
"""`held` is removed where ``wanted`` is reached, and made smaller with every step there."""


def main() -> None:
    for bar in BARS:
        count = bar.measure()
        print(f"{count:>8,}  {'<=' if count <= bar.wanted else '> '} {bar.wanted:>7,}  {bar.text}")


if __name__ == "__main__":
    main()
