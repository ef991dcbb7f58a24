"""The bars of the house: how often covp says each fact, counted from the source.

    python benchmarks/house.py                # of this checkout
    python benchmarks/house.py --root FOLDER  # of another one: what ``before`` was counted with
    python benchmarks/house.py --times        # runs the tests with an empty cache: ten minutes

A bar is what a figure may be at most; `tests/packaging/test_house.py` holds them. Figures that need
a run have scripts of their own: `core_costs.py` (estimates of the core's side), `all_tests.py`.
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
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
        before: the count at 549b194, by this script.
        wanted: the most that it may be in the end.
        measure: counts the source as it is.
        held: the most that it may be today, where ``wanted`` is not reached.
    """

    text: str
    before: int
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


_SOUGHT = (
    *(ast.Import, ast.ImportFrom, ast.Constant),
    *(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef),
)


@functools.cache
def nodes() -> dict[str, list[ast.AST]]:
    """The nodes of each file that some bar asks for: each tree is walked once."""
    return {
        name: [node for node in ast.walk(tree) if isinstance(node, _SOUGHT)]
        for name, tree in trees().items()
    }


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
    for name in sources():
        room = _room("covp." + name.removesuffix(".py").replace("/", ".").removesuffix("__init__"))
        for node in nodes()[name]:
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
    for name, found_nodes in nodes().items():
        if name.startswith(DECLARING):
            continue
        for node in found_nodes:
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


_ROUNDING = (
    r"\.arithmetic [!=]= |\.factors is (not )?None|\bwide_sums\b|UnsignedPool2D|\.wide\b"
    r"|\bis_half_even\b|\bis_tflm\b|\bties_up\b|\bunfused\b|\bby_columns\b"
)


def rounding_files() -> int:
    """Files that ask which arithmetic holds, by one of its signs; the arithmetic's own left out."""
    found = {name for name, text in sources().items() if re.search(_ROUNDING, text)}
    return len(found - {"graph/arithmetic.py"})


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
    """Type checks for the virtual device, ignored imports, modules made classes, `__getattr__`.

    The root package may offer its names by `__getattr__` (PEP 562), as the ecosystem does.
    """
    rules = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    check = re.compile(r"isinstance\([^()]*\bVirtualDevice\b|^ *class \w+\(ModuleType\)", re.M)
    checks = sum(len(check.findall(text)) for text in sources().values())
    doors = sum(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
        for name, tree in trees().items()
        for node in tree.body
        if name != "__init__.py"
    )
    return checks + len(re.findall(r"^ignore_imports", rules, re.M)) + doors


def string_imports() -> int:
    """Modules of covp that code imports by their names in a string."""
    pattern = r"import_module\(\s*f?\"covp\."
    return sum(len(re.findall(pattern, text)) for text in sources().values())


def _module_imports() -> dict[str, set[str]]:
    """For each module those that it imports, anywhere in it."""
    names = {
        "covp." + name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): name
        for name in sources()
    }
    found = {}
    for module, name in names.items():
        seen: set[str] = set()
        for node in nodes()[name]:
            if isinstance(node, ast.Import):
                seen |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                seen |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        found[module] = (seen & set(names)) - {module}
    return found


def modules() -> int:
    """Files that are not a package's own."""
    return sum(not name.endswith("__init__.py") for name in sources())


def all_packages() -> int:
    """Packages below covp/, at any depth, without those of content."""
    return sum(name.endswith("/__init__.py") for name in sources())


def chain() -> int:
    """Modules in the longest chain of which each imports the next."""
    imports = _module_imports()
    heights: dict[str, int] = {}

    def height(module: str, path: frozenset[str]) -> int:
        if module not in heights:
            others = [other for other in imports[module] if other not in path]
            above = (height(other, path | {module}) for other in others)
            heights[module] = 1 + max(above, default=0)
        return heights[module]

    sys.setrecursionlimit(10_000)
    return max(height(module, frozenset()) for module in imports)


def lonely_modules() -> int:
    """Modules under 120 lines that one module alone imports, which is of the same package."""
    imports = _module_imports()
    importers: dict[str, list[str]] = defaultdict(list)
    for module, others in imports.items():
        for other in others:
            importers[other].append(module)
    lines_of = {
        "covp." + name.removesuffix(".py").replace("/", "."): text.count("\n")
        for name, text in sources().items()
    }
    return sum(
        len(found) == 1
        and lines_of.get(module, 120) < 120
        and _package(found[0]) == _package(module)
        for module, found in importers.items()
    )


def _package(module: str) -> str:
    return module.rpartition(".")[0]


_ODD = re.compile(
    r"(What|Whether|Of|That|Which|As|How|Where|For|Those|Its|By|From|In|When|Than|With|To)[\s,:.`]"
)
"""A docstring does not begin with these: it says what a function does, or what a class is."""
_PARTICIPLE = re.compile(r"(ed|en|ing)$")
_NOT_PARTICIPLES = re.compile(
    r"padding|string|scaling|rounding|timing|listing|embedding|pooling|heading|warning|encoding"
    r"|ring|bed|thing|seed|feed|speed|need|token|open|given|golden|even|chosen|hidden"
)
_PREDICATES = ("is", "has", "can", "may", "are", "needs")


def _docstrings() -> Iterator[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for each in nodes().values():
        for node in each:
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield text


def odd_openings() -> int:
    """Docstrings that begin with a word of `_ODD`."""
    return sum(_ODD.match(text) is not None for text in _docstrings())


def pointing_docstrings() -> int:
    """Docstrings that only say where to look."""
    return sum(text.startswith("See ") for text in _docstrings())


def participles() -> int:
    """Functions named by a participle, which are no predicates."""
    count = 0
    for each in nodes().values():
        for node in each:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                words = node.name.strip("_").split("_")
                count += (
                    _PARTICIPLE.search(words[-1]) is not None
                    and not _NOT_PARTICIPLES.fullmatch(words[-1])
                    and words[0] not in _PREDICATES
                    and len(words) <= 2
                )
    return count


def figure_files() -> int:
    """Files that name one figure of a run, ``arena_bytes``."""
    return _files_with(r"arena_bytes")


_TABLES = (
    "graph/batches.py",
    "graph/passes/streaming/rules.py",
    "graph/passes/axis_orders.py",
    "codegen/bands.py",
    "graph/cuts.py",
)


def kinds_in_tables() -> int:
    """(kind, file) in what follows from index maps: batches, streams, axis orders, bands."""
    return sum(len(files & set(_TABLES)) for files in _kinds().values())


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


def concepts() -> int:
    """Names of covp that a first operator imports, declared outside of the package."""
    example = ROOT / "examples" / "soft_threshold.py"
    if not example.is_file():
        return 16  # counted by hand at 549b194, which has no such declaration
    tree = ast.parse(example.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return sum(len(node.names) for node in imports if (node.module or "").startswith("covp"))


BARS = (
    Bar("lines of Python in covp/", 117_152, 108_000, lines, 134_300),
    Bar("modules", 820, 600, modules, 766),
    Bar("packages, at any depth", 56, 40, all_packages, 60),
    Bar("packages directly in covp/", 14, 18, packages),
    Bar("floors of the rooms' imports", 10, 12, floors),
    Bar("modules in the longest chain of imports", 56, 35, chain, 54),
    Bar("short modules that one sibling alone imports", 85, 40, lonely_modules),
    Bar(
        "(kind, file) outside declaration, reader, writer, kernel",
        345,
        180,
        kind_files,
        260,
    ),
    Bar("files that name one kind, the most", 20, 15, files_of_one_kind, 17),
    Bar("kinds in tables that index maps could replace", 76, 20, kinds_in_tables),
    Bar("files that state one build option (allow_slower)", 2, 5, option_files),
    Bar("files that name one figure (arena_bytes)", 28, 8, figure_files, 27),
    Bar("files that ask for the rule of rounding", 23, 5, rounding_files, 14),
    Bar("public class names defined twice or more", 74, 25, double_classes),
    Bar("checks for VirtualDevice, ignored imports, modules' __getattr__", 1, 0, back_doors),
    Bar("modules imported by a string", 2, 0, string_imports, 1),
    Bar("names of covp that a first operator imports", 16, 8, concepts),
    Bar("pairs of places with six like lines", 43, 99, like_lines),
    Bar("docstrings with an odd first word", 962, 100, odd_openings),
    Bar("docstrings that only point elsewhere", 113, 20, pointing_docstrings),
    Bar("functions named by a participle", 508, 120, participles),
)
"""`held` is removed where ``wanted`` is reached, and made smaller with every step there."""


TIMES = (
    ("seconds of the laws, `pytest -m law`", 0, 60, ("-m", "law")),
    ("seconds of the default tests, with an empty cache", 446, 300, ()),
)
"""What is timed on an idle machine of two cores: text, seconds at 549b194, wanted, options."""


def measure_times() -> None:
    """Run the tests and print their seconds; a figure of this machine, which should be idle."""
    for text, before, wanted, options in TIMES:
        with tempfile.TemporaryDirectory() as cache:
            began = time.monotonic()
            subprocess.run(
                [sys.executable, "-m", "pytest", "-q", *options],
                cwd=ROOT,
                env={**os.environ, "COVP_CACHE_DIR": cache},
                check=True,
                stdout=subprocess.DEVNULL,
            )
            _print_row(before, round(time.monotonic() - began), wanted, text)


def _print_row(before: int, count: int, wanted: int, text: str) -> None:
    print(f"{before:>8,} {count:>8,}  {'<=' if count <= wanted else '> '} {wanted:>7,}  {text}")


def main() -> None:
    """Print a row for each bar: the figure before, today's, the most it may be."""
    global ROOT, COVP
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--times", action="store_true", help="of the tests, instead")
    given = parser.parse_args()
    ROOT = given.root
    COVP = ROOT / "covp"
    print("  before    today       wanted")
    if given.times:
        measure_times()
        return
    for bar in BARS:
        _print_row(bar.before, bar.measure(), bar.wanted, bar.text)


if __name__ == "__main__":
    main()
