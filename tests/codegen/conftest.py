"""Runs one generated layer on a virtual core."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import covp.codegen.kernels  # noqa: F401  (they register themselves)
from covp.chip.platform_file import load_platform
from covp.codegen.layer import KernelRequest, LayerCode, Scratch, emit_layer, schedules
from covp.codegen.schedule import Schedule
from covp.device.virtual import VirtualDevice
from covp.graph.graph import Op
from covp.runtime.session import Session
from tests.strict import STRICT, STRICT_GCC

Array = NDArray[Any]
COMPILERS = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}


class LayerRunner:
    """Compiles layers and runs them; sessions are kept open."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], Session] = {}
        self.instructions = 0
        self.code: LayerCode | None = None

    def __call__(
        self,
        platform: str,
        op: Op,
        *inputs: Array,
        toolchain: str = "zig",
        choose: Callable[[list[Schedule]], Schedule] | None = None,
        in_place: bool = False,
    ) -> list[Array]:
        """The layer's outputs for the values of its inputs that are not constant.

        ``choose`` picks one of the layer's schedules.
        ``in_place``: the output takes the memory of the first input that the layer allows.
        """
        session = self._session(platform, toolchain)
        request = KernelRequest(op, session.platform.core, "layer")
        if choose is not None:
            request = replace(request, schedule=choose(schedules(request)))
        code = self.code = emit_layer(request)
        flags = STRICT_GCC if toolchain == "gcc" else STRICT
        module = session.load_c(code.source, flags=flags)
        values = iter(inputs)
        tensors = []
        for argument in code.arguments.values():
            if isinstance(argument, Scratch):
                content: Array = np.full(-(-argument.nbytes // 4), 0x5A5A5A5A, np.int32)
            elif any(argument is output for output in op.outputs):
                content = np.full(argument.shape or (1,), 99, argument.dtype)
            else:
                content = next(values)
            tensors.append(session.tensor(content))
        assert next(values, None) is None
        if in_place:
            names = list(code.arguments.values())
            tensors[names.index(op.output)] = tensors[names.index(code.in_place[0])]
        assert isinstance(session.device, VirtualDevice)
        before = session.device.instructions
        module["layer"](*tensors)
        session.sync()
        self.instructions = session.device.instructions - before
        results = [
            tensor.numpy()
            for tensor, argument in zip(tensors, code.arguments.values(), strict=True)
            if any(argument is output for output in op.outputs)
        ]
        for tensor in dict.fromkeys(tensors):
            tensor.free()
        module.unload()
        return results

    def _session(self, platform: str, toolchain: str) -> Session:
        key = platform, toolchain
        if key not in self._sessions:
            loaded = load_platform(platform)
            if toolchain == "gcc" and shutil.which(COMPILERS[loaded.core.architecture]) is None:
                pytest.skip(f"{COMPILERS[loaded.core.architecture]} is not installed")
            self._sessions[key] = Session(loaded, toolchain=toolchain)
        return self._sessions[key]

    def close(self) -> None:
        """Close all sessions."""
        for session in self._sessions.values():
            session.close()


@pytest.fixture(scope="session")
def run_layer() -> Iterator[LayerRunner]:
    """``run_layer(platform, op, *inputs) -> outputs``."""
    runner = LayerRunner()
    yield runner
    runner.close()
