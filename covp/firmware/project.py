"""`Project`: a library, its self-test and the firmware around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from covp.codegen.program import Program
from covp.compilers.toolchain import Toolchain, get_toolchain
from covp.errors import UsageError
from covp.evaluation import Build, Evaluation, Sample, run
from covp.firmware.firmware import firmware_files
from covp.firmware.frames import Frame, golden_frames
from covp.firmware.library import Library
from covp.firmware.selftest import sample_files
from covp.runtime.placement import MemoryPlacement


@dataclass(frozen=True, eq=False)
class Application:
    """Application code that replaces the self-checking example in the firmware.

    Attributes:
        files: name to text; one of them is ``main.c``.
        about: lines of the README.
    """

    files: Mapping[str, str]
    about: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Project:
    """Input of a layout.

    Attributes:
        simulated: an inference of the program that is exported; its outputs are those that the
            self-test expects.
        later: inferences after it, of a network with states, see `golden_frames`.
        static_arena: see `Library.of`.
        application: what the firmware does; None: the self-test.
    """

    simulated: Evaluation
    static_arena: bool = False
    application: Application | None = None
    later: tuple[Frame, ...] = ()

    @staticmethod
    def of(build: Build, sample: Sample | None = None, static_arena: bool = False) -> Project:
        """Return the project of a build: simulated once, and compared with the reference.

        Args:
            build: what is exported.
            sample: inputs of the self-test; by default the random ones of seed 0.
            static_arena: see `Library.of`.

        Raises:
            UsageError: the simulation's outputs are not the reference's.
            CovpError: it does not run.
        """
        device = "host" if build.platform.core.architecture == "x86" else "virtual"
        result = run(build, sample, device=device, check="output")
        if not result.matches_reference:
            raise UsageError(
                f"{build.model}: {result.mismatches} output elements of the simulation are not "
                "the reference's; covp run says more"
            )
        later = golden_frames(build, result.sample, device)[1:] if result.program.states else ()
        return Project(result, static_arena, later=later)

    @property
    def program(self) -> Program:
        """The compiled model."""
        return self.simulated.program

    @cached_property
    def library(self) -> Library:
        """The model as a C library."""
        return Library.of(self.program, self.static_arena)

    @cached_property
    def toolchain(self) -> Toolchain:
        """Whose flags the project has."""
        return get_toolchain(self.simulated.build.toolchain, self.program.platform.core)

    @cached_property
    def placement(self) -> MemoryPlacement:
        """Placement of the program in memory, as in a simulation.

        Raises:
            CapacityError: it does not fit the platform, with what may help.
        """
        return MemoryPlacement.of(self.program, self.toolchain)

    @cached_property
    def sample(self) -> Mapping[str, str]:
        """The self-test: ``NAME_io.h``, ``NAME_selftest.h``, ``NAME_selftest.c``.

        An application has none.
        """
        if self.application is not None:
            return {}
        first = Frame(self.simulated.sample.inputs, self.simulated.outputs)
        return sample_files(self.program, (first, *self.later))

    @cached_property
    def firmware(self) -> Mapping[str, str]:
        """Files that turn the library into firmware, see `firmware_files`."""
        found = firmware_files(self.library, self.placement)
        return found if self.application is None else {**found, **self.application.files}
