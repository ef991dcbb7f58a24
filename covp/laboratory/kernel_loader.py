"""The fixture `kernel`: C functions by file and name, for the tests of one Python file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from covp.base.arguments import demand, demand_each
from covp.errors import CovpError, UsageError, near_misses
from covp.laboratory.bench import Bench, SourceKey
from covp.laboratory.figures import CallCost, KernelKey, Recorder
from covp.laboratory.kernel import Kernel, Value
from covp.laboratory.options import device_name
from covp.runtime.module import Function


class TestedKernel(Kernel):
    """A kernel whose calls are counted; its errors show the line of the test, not covp's own."""

    __test__ = False  # not a class of tests

    def __init__(self, function: Function, key: KernelKey, recorder: Recorder) -> None:
        super().__init__(function)
        self._key, self._recorder = key, recorder
        self._size = self.code_bytes
        self._cached = bool(self.session.platform.caches)

    def __call__(self, *arguments: Any) -> Value:
        """Call the function and record what the call costs."""
        __tracebackhide__ = True
        try:
            result = super().__call__(*arguments)
        except CovpError as error:
            raise error.with_traceback(None) from None
        cost = self.latest
        source = cost.sources.cycles
        # caches see addresses, which depend on what else is loaded; boards have their own mind
        repeatable = source is not None and source.kind != "measured" and not self._cached
        seen = CallCost(cost.instructions, cost.cycles, repeatable)
        self._recorder.count(self._key, self._size, seen)
        return result


class KernelLoader:
    """A loader of kernels for the tests of one file.

    Args:
        bench: where they are loaded.
        recorder: counts their calls.
        file: the test file; paths are relative to its folder.
        root: of the project; kernels are named by their path below it.
    """

    def __init__(self, bench: Bench, recorder: Recorder, file: Path, root: Path) -> None:
        self._bench, self._recorder = bench, recorder
        self._file, self._root = file, root
        self._made: dict[tuple[object, ...], TestedKernel] = {}
        self._used: set[SourceKey] = set()

    def __call__(
        self,
        source: str | Path,
        name: str,
        flags: Sequence[str] = (),
        include: Sequence[str | Path] = (),
    ) -> Kernel:
        """Load a C function; the same arguments give the same object.

        Args:
            source: path of a C file, relative to the test file, or C text (anything with a line
                break or a brace).
            name: of the function.
            flags: further compiler options.
            include: folders for ``#include``, relative to the test file.

        Raises:
            UsageError: there is no such file or function.
            ToolchainError: it does not compile: "file.c:12: message".
        """
        __tracebackhide__ = True
        try:
            return self._found(source, name, flags, include)
        except CovpError as error:
            raise error.with_traceback(None) from None

    def close(self) -> None:
        """Mark the kernels as unused, after the tests of the file."""
        self._bench.leave(self._used)

    def _found(
        self,
        source: str | Path,
        name: str,
        flags: Sequence[str],
        include: Sequence[str | Path],
    ) -> TestedKernel:
        try:
            asked: tuple[object, ...] = (str(source), name, tuple(flags), tuple(include))
            known = self._made.get(asked)
        except TypeError:
            asked, known = (), None  # not of the types that `_make` demands
        if known is None:
            known = self._made[asked] = self._make(source, name, flags, include)
        return known

    def _make(
        self,
        source: str | Path,
        name: str,
        flags: Sequence[str],
        include: Sequence[str | Path],
    ) -> TestedKernel:
        demand("source", source, (str, Path), "C text or the path of a C file")
        demand_each("flags", flags, str, "an option")
        demand_each("include", include, (str, Path), "the path of a folder")
        folder = self._file.parent
        is_text = isinstance(source, str) and ("\n" in source or "{" in source)
        what = str(source) if is_text else str(self._path(source))
        folders = [str(folder / each) for each in include]
        if is_text:
            folders.append(str(folder))
        key = (what, tuple(flags), tuple(folders))
        function = self._bench.module(key)[name]
        self._used.add(key)
        self._recorder.toolchain = self._bench.session.toolchain.version
        label = self._label(self._file if is_text else Path(what), name, flags)
        return TestedKernel(function, label, self._recorder)

    def _path(self, source: str | Path) -> Path:
        path = (self._file.parent / source).resolve()
        if not path.is_file():
            folder = path.parent
            if not folder.is_dir():
                raise UsageError(f"{source}: there is no folder {folder}")
            near = near_misses(path.name, (each.name for each in folder.glob("*.c")))
            raise UsageError(f"{source}: there is no such C file in {folder}: {near}")
        return path

    def __repr__(self) -> str:
        return f"<kernels on {device_name(self._bench.target)}>"

    def _label(self, file: Path, name: str, flags: Sequence[str]) -> KernelKey:
        below = file.is_relative_to(self._root)
        shown = file.relative_to(self._root).as_posix() if below else file.name
        options = f"[{' '.join(flags)}]" if flags else ""
        return KernelKey(f"{shown}::{name}{options}", device_name(self._bench.target))
