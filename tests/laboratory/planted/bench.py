"""Sessions that all planted bugs share; a C file is compiled with all its bugs, and with none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.chip.platform_file import load_platform
from covp.errors import DeviceFault
from covp.runtime.module import Module
from covp.runtime.session import Session
from covp.testing import Kernel
from tests.laboratory.planted.sections import FOLDER, Section

ROUNDS = 12
"""Calls in which a bug has to be found, and its twin makes no alarm."""


class Bench:
    """Sessions by platform and options; modules by session, file and variant."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[Any, ...], Session] = {}
        self._modules: dict[tuple[Any, ...], Module] = {}

    def session(self, platform: str, **options: Any) -> Session:
        """The one session with these options."""
        key = (platform, *sorted(options.items()))
        if key not in self._sessions:
            self._sessions[key] = Session(platform, **options)
        return self._sessions[key]

    def kernel(
        self, name: str, file: str, bug: bool, session: Session, flags: tuple[str, ...] = ()
    ) -> Kernel:
        """A function of a C file, with its bug or without."""
        key = (id(session), file, bug, flags)
        if key not in self._modules:
            all_flags = ("-Werror", *flags, *(("-DBUG",) if bug else ()))
            self._modules[key] = session.load_c(FOLDER / file, flags=all_flags)
        return Kernel(self._modules[key][name])

    def close(self) -> None:
        """All of them."""
        for session in self._sessions.values():
            session.close()


class Draw:
    """Random arguments, the same in each run."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def integer(self, low: int, high: int) -> int:
        """low <= result <= high."""
        return int(self._generator.integers(low, high + 1))

    def array(self, dtype: str, n: int, low: int = 0, high: int = 0) -> NDArray[Any]:
        """Of n elements, any values or from low to high."""
        limits = np.iinfo(dtype)
        low, high = (low, high) if (low, high) != (0, 0) else (limits.min, limits.max)
        return self._generator.integers(low, high, n, dtype, endpoint=True)


PLATFORMS = ("cortex-m4", "riscv32", "cortex-m0plus")


def on_platforms(names: Iterable[str], platforms: Sequence[str] = PLATFORMS) -> list[Any]:
    """Parameters (name, platform, toolchain): each name with zig on one platform; the rest slow."""
    found = []
    for index, name in enumerate(names):
        for number, (toolchain, platform) in enumerate(product(("zig", "gcc"), platforms)):
            marks = [] if number == index % len(platforms) else [pytest.mark.slow]
            if toolchain == "gcc":
                command = f"{load_platform(platform).core.gcc_prefix}gcc"
                marks.append(pytest.mark.skipif(not shutil.which(command), reason=f"no {command}"))
            found.append(pytest.param(name, platform, toolchain, marks=marks))
    return found


Call = Callable[[Callable[[str], Kernel], Draw], object]
"""Calls the kernels of a file that it gets by name, once, with arguments that it draws."""


def first_fault(kernel: Callable[[str], Kernel], call: Call) -> DeviceFault | None:
    """The first fault of some calls, None if there is none."""
    draw = Draw()
    for _ in range(ROUNDS):
        try:
            call(kernel, draw)
        except DeviceFault as fault:
            return fault
    return None


def named_line(fault: DeviceFault, section: Section) -> str:
    """The innermost line of the section's file that a fault names, as "file.c:12"."""
    stack = getattr(fault, "call_stack", ())
    places = [frame.rpartition("(")[2].rstrip(")") for frame in stack]
    inside = [place for place in (fault.source, *places) if place and section.file in place]
    return inside[0].rpartition("/")[2] if inside else f"no line: {fault}"


def check(bench: Bench, section: Section, call: Call, session: Session) -> None:
    """The bug is found, with its kind and line; its twin makes no alarm in as many calls."""

    def kernels(bug: bool) -> Callable[[str], Kernel]:
        return lambda name: bench.kernel(name, section.file, bug, session)

    fault = first_fault(kernels(True), call)
    assert fault is not None, f"not found: {section.what}"
    kind: str = fault.kind
    said = fault.detail if kind == "undefined behaviour" else kind
    assert any(kind in said for kind in section.kind.split(" or ")), str(fault)
    assert named_line(fault, section) in section.lines, str(fault)
    assert first_fault(kernels(False), call) is None, f"false alarm in the twin of {section.name}"
