"""`Project`: a library, its self-test and the firmware around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from covp.export.firmware import firmware_files
from covp.export.library import Library
from covp.export.selftest import sample_files
from covp.program import Program
from covp.runtime.placement import Placement
from covp.toolchain import Toolchain

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Application:
    """What firmware does with a model, in place of the example that checks itself.

    Attributes:
        files: name to text; one of them is ``main.c``.
        about: lines of the README.
    """

    files: Mapping[str, str]
    about: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Project:
    """What a layout arranges.

    Attributes:
        library: the model.
        toolchain: whose flags the project has.
        inputs, outputs: of one inference, in the model's order: the sample of the self-test.
        application: what the firmware does; None: the self-test.
    """

    library: Library
    toolchain: Toolchain
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    application: Application | None = None

    @property
    def program(self) -> Program:
        """The compiled model."""
        return self.library.program

    @cached_property
    def placement(self) -> Placement:
        """Where a simulation puts the program.

        Raises:
            CapacityError: it does not fit the platform, with what may help.
        """
        return Placement.of(self.program, self.toolchain)

    @cached_property
    def sample(self) -> Mapping[str, str]:
        """The self-test: ``NAME_io.h``, ``NAME_selftest.h``, ``NAME_selftest.c``.

        An application has none.
        """
        if self.application is not None:
            return {}
        return sample_files(self.program, self.inputs, self.outputs)

    @cached_property
    def firmware(self) -> Mapping[str, str]:
        """What makes firmware of it, see `firmware_files`."""
        found = firmware_files(self.library, self.placement)
        return found if self.application is None else {**found, **self.application.files}
