"""`RtlSources`: Verilog as it lies in folders, packages and lists of files, and patches of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from covp.base.dependencies import get_extra
from covp.errors import PlatformError, ToolchainError

_GET = get_extra("rtl")
_SUFFIXES = (".sv", ".svh", ".v", ".vh", ".h", ".inc")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|\((\w+)\)|(\w+))")
_MOST_LISTS = 20
"""File lists that name one another."""


@dataclass(frozen=True)
class RtlSources:
    """Files for Verilator.

    Attributes:
        root: the folder that they are in, apart from those of the core's folder.
        files: in Verilator's order, the wrapper last.
        include: folders for `include`.
        defines: Verilog macros.
        patches: files that change what is under ``root``.
    """

    root: Path
    files: tuple[Path, ...] = ()
    include: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    patches: tuple[Path, ...] = ()

    def contents(self) -> Iterator[bytes]:
        """Yield the content of each file that the model depends on."""
        headers = (path for folder in self.include for path in sorted(folder.glob("*")))
        for path in (*self.files, *(one for one in headers if one.suffix in _SUFFIXES)):
            if path.is_file():
                yield path.read_bytes()
        yield from (patch.read_bytes() for patch in self.patches)

    def patched(self, folder: Path) -> RtlSources:
        """Return the sources with their patches, in a copy if there are any.

        Args:
            folder: for the copy.

        Raises:
            PlatformError: a patch does not fit.
            ToolchainError: the package that applies patches is missing.
        """
        if not self.patches:
            return self
        copy = folder / "sources"
        shutil.copytree(self.root, copy, ignore=_ignored)
        for patch in self.patches:
            _apply(patch, copy)
        here = str(self.root)

        def moved(paths: tuple[Path, ...]) -> tuple[Path, ...]:
            return tuple(
                copy / path.relative_to(here) if path.is_relative_to(here) else path
                for path in paths
            )

        return replace(
            self, root=copy, files=moved(self.files), include=moved(self.include), patches=()
        )


def _ignored(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if not name.endswith(_SUFFIXES) and not (Path(folder) / name).is_dir()
    ]


def _apply(patch: Path, folder: Path) -> None:
    try:
        import patch_ng
    except ImportError:
        raise ToolchainError(
            f"device rtl: patch-ng, which applies {patch.name}, is missing: {_GET}"
        ) from None
    changes = patch_ng.fromfile(str(patch))
    if not changes or not (changes.apply(0, str(folder)) or changes.apply(1, str(folder))):
        raise PlatformError(
            "is no unified diff that fits the sources: it has to be made from the folder that "
            "package or root names (diff -u a/FILE b/FILE)",
            where=patch,
        )


@dataclass
class RtlFiles:
    """The files that lists of files name, as simulators read them.

    Attributes:
        files: in their order.
        include: folders for `include`.
        defines: Verilog macros.
    """

    files: list[Path] = field(default_factory=list)
    include: list[Path] = field(default_factory=list)
    defines: list[str] = field(default_factory=list)
    lists: int = 0

    def read(self, path: Path, root: Path, variables: Mapping[str, str]) -> None:
        """Add what a list of files says: paths, ``+incdir+``, ``+define+``, ``-f`` of others.

        Paths are those from the list's folder, or else from ``root``.
        """
        self.lists += 1
        if self.lists > _MOST_LISTS:
            raise PlatformError("lists of files name one another", where=path)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlatformError(f"the list of files cannot be read: {error}", where=path) from None

        def value(match: re.Match[str]) -> str:
            name = next(filter(None, match.groups()))
            if name not in variables:
                raise PlatformError(
                    f"names ${name}; say where it is: variables: {{{name}: FOLDER}}", where=path
                )
            return variables[name]

        words = iter(_VARIABLE.sub(value, _COMMENT.sub("", text)).split())
        for word in words:
            if word.startswith("+incdir+"):
                self.include += (_place(one, path, root) for one in word.split("+")[2:] if one)
            elif word.startswith("+define+"):
                self.defines += (one for one in word.split("+")[2:] if one)
            elif word in ("-f", "-F"):
                self.read(_place(next(words, ""), path, root), root, variables)
            elif word == "-v":
                continue
            elif word.startswith(("+", "-")):
                raise PlatformError(
                    f"{word} is not understood; name the files in sources instead", where=path
                )
            else:
                self.files.append(_place(word, path, root))


def _place(name: str, listed_in: Path, root: Path) -> Path:
    """Return the path of a file or folder that a list names."""
    beside = listed_in.parent / name
    return beside if beside.exists() else root / name
