"""`Backend`: covp as a backend of the onnx package's own tests, executed on an emulated core.

    tests = onnx.backend.test.BackendTest(covp.testing.onnx_backend.Backend, __name__)

A model that covp rejects raises its `ModelError`, so the test fails: nothing is skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.backend.base import Backend as BackendBase
from onnx.backend.base import BackendRep

from covp.building.builder import compile
from covp.chip.platform_file import load_platform
from covp.codegen.program import Program
from covp.errors import CovpError
from covp.graph.onnx import read_onnx
from covp.runtime.profile import Profile
from covp.runtime.session import Session

TIMEOUT = 60.0
"""Seconds of host time that one inference may take."""


class Prepared(BackendRep):  # type: ignore[misc]
    """A compiled model and the core that runs it.

    Attributes:
        program: compiled for ``platform``.
        profile: the cost of the latest `run`; None before.
    """

    def __init__(self, program: Program, platform: str) -> None:
        super().__init__()
        self.program = program
        self.platform = platform
        self.profile: Profile | None = None

    def run(self, inputs: Any, **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """Run one inference.

        Args:
            inputs: an array for each input of the model, in order.
            kwargs: ignored.

        Returns:
            The outputs, in order.

        Raises:
            CovpError: the inputs do not fit, or the program faulted.
        """
        with Session(self.platform, timeout=TIMEOUT) as session:
            module = session.load(self.program)
            found = module.run(*[np.asarray(value) for value in inputs])
            self.profile = module.profile()
        return tuple(found) if isinstance(found, list) else (found,)


class Backend(BackendBase):  # type: ignore[misc]
    """A backend that compiles for a platform, ``device``; `cpu` by default.

    Attributes:
        cpu: the platform that "CPU", which onnx's tests give, stands for.
    """

    cpu = "riscv32"

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compile a model.

        Args:
            model: whose input shapes are known.
            device: a platform's name, or "CPU" for `cpu`.
            kwargs: ignored.

        Raises:
            CovpError: the model is rejected.
        """
        platform = cls.cpu if device == "CPU" else device
        return Prepared(compile(read_onnx(model), platform), platform)

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Prepare ``model`` for ``device`` and run it on ``inputs``; ignore ``kwargs``."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether there is such a platform; "CPU" stands for `cpu`."""
        try:
            load_platform(cls.cpu if device == "CPU" else device)
        except CovpError:
            return False
        return True
