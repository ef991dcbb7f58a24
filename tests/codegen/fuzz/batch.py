"""`Batch`: many layers in one C file, compiled once, run one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covp.codegen.kernels  # noqa: F401  (they register themselves)
from covp.chip.cores import Core
from covp.codegen.layer import KernelRequest, LayerCode, Scratch, emit_layer, schedules
from covp.errors import DeviceFault
from covp.runtime.module import Module
from covp.runtime.session import Session
from covp.testing import Buffer, Kernel

from .unusual import Unusual

Array = NDArray[Any]
HOST_INCLUDE = Path(__file__).with_name("host_include")
_STATIC = re.compile(r"static\b[^=;{]*?\b(\w+)\s*[\[(]")
_ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)+")
_DEFINE = re.compile(r"#define (\w+)")


@dataclass(frozen=True)
class Ran:
    """What became of one layer."""

    case: Unusual
    code: LayerCode
    outputs: list[Array]


def generate(case: Unusual, core: Core, name: str) -> LayerCode:
    """The layer's C for a core, with the schedule that the case picks."""
    request = KernelRequest(case.graph().ops[0], core, name)
    found = schedules(request)
    if found:
        request = replace(request, schedule=found[case.schedule % len(found)])
    return emit_layer(request)


def combined(sources: Sequence[str]) -> str:
    """One C file; what each of them keeps to itself gets a number in its name."""
    parts = []
    for number, text in enumerate(sources):
        own = set(_DEFINE.findall(text))
        for line in text.splitlines():
            if line.startswith("static"):
                found = _STATIC.search(_ATTRIBUTE.sub("", line))
                own |= {found[1]} if found else set()
        for name in own:
            text = re.sub(rf"\b{name}\b", f"{name}_{number}", text)
        parts.append(text)
    return "\n".join(parts)


def run_batch(
    session: Session,
    cases: Sequence[Unusual],
    cores: Sequence[Core],
    flags: Sequence[str] = (),
    check: Callable[[Ran], None] = lambda ran: None,
) -> list[str]:
    """Compile all of them together, run each and hand its outputs to ``check``.

    Args:
        session: whose device runs them; where it is the host, the C of any core will do.
        cores: case number n is generated for number n modulo their count.
        flags: of the compiler.
        check: raises AssertionError where the outputs are wrong.

    Returns:
        One line for each layer that is wrong or that faulted.
    """
    codes = [generate(case, cores[i % len(cores)], f"layer{i}") for i, case in enumerate(cases)]
    include = [HOST_INCLUDE] if session.platform.core.architecture == "x86" else []
    options = tuple(flags)
    module = session.load_c(
        combined([code.source for code in codes]), flags=options, include=include
    )
    failures = []
    for number, (case, code) in enumerate(zip(cases, codes, strict=True)):
        try:
            check(Ran(case, code, _run(module, case, code, f"layer{number}")))
        except (AssertionError, DeviceFault) as error:
            core = cores[number % len(cores)].name
            reason = str(error).splitlines()[0]
            failures.append(f"{reason}: {case!r} with schedule {code.schedule!r} for {core}")
    module.unload()
    return failures


def _run(module: Module, case: Unusual, code: LayerCode, name: str) -> list[Array]:
    values, buffers = iter(case.inputs()), []
    outputs = code.op.outputs
    for argument in code.arguments.values():
        if isinstance(argument, Scratch):
            buffers.append(Buffer(np.full(argument.nbytes, 0x5A, np.uint8), scratch=True))
        elif any(argument is output for output in outputs):
            content = np.full(argument.shape or (1,), 99, argument.dtype)
            buffers.append(Buffer(content, written=False))
        else:
            buffers.append(Buffer(next(values)))
    Kernel(module[name])(*buffers)
    return [
        buffer.array.reshape(argument.shape)
        for buffer, argument in zip(buffers, code.arguments.values(), strict=True)
        if not isinstance(argument, Scratch) and any(argument is output for output in outputs)
    ]
