"""`BuildOptions` and `RunOptions`: what is asked of a build and of a run.

Each option is one field. The options of commands, the keywords of the Python API and the keys of
sweeps are read from its annotation. Functions, graphs and backends are arguments instead: they
cannot be written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, TypeVar, get_args, get_type_hints

import msgspec

Toolchain = Literal["zig", "gcc"]
TOOLCHAINS: tuple[Toolchain, ...] = get_args(Toolchain)
Objective = Literal["cycles", "energy", "instructions", "balanced", "size"]
Level = Literal["none", "output", "layers", "source"]
LEVELS: tuple[Level, ...] = get_args(Level)
Shapes = Mapping[str, Sequence[int]]
"""Shapes by input name, for inputs whose shape a model file leaves open."""
FLASH_TRADE = 5000
"""Bytes of flash that "cycles" pays at most for a thousand cycles saved."""
_T = TypeVar("_T", "BuildOptions", "RunOptions")


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """The annotation of an option.

    Attributes:
        text: the help.
        heading: where the help of a command lists it; empty: no command takes it.
        names: on the command line, where they are not the field's.
        metavar: of the value in the help.
        choices: the values of a text.
        least: the smallest number.
        bare: the value of an option that is named without one; None: it needs one.
        keyed: whether figures depend on it, so that it belongs into the key of a kept result.
    """

    text: str
    heading: str = "Target"
    names: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: int | None = None
    bare: int | None = None
    keyed: bool = True


class BuildOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a model is compiled with."""

    toolchain: Annotated[
        str,
        Option(text="The compiler, whose tuned schedules count first.", choices=TOOLCHAINS),
    ] = "zig"
    allow_unused: Annotated[
        bool,
        Option(
            text="Accept accelerators that get no layer; else that is an error.",
            heading="",
            keyed=False,
        ),
    ] = False
    allow_slower: Annotated[
        bool,
        Option(text="Give accelerators also the layers that the core computes faster."),
    ] = False
    overlap: Annotated[
        bool,
        Option(
            text="Overlap core and accelerators: other layers, or other rows of them, run on the "
            "core while accelerators work, in the order that simulates fastest."
        ),
    ] = False
    patches: Annotated[
        str,
        Option(
            text="Compute the first layers in N strips or fewer, which needs less RAM; auto: in "
            "as many as need the least.",
            metavar="auto|N",
        ),
    ] = ""
    shapes: Annotated[
        Shapes,
        Option(
            text="The shape of an input that an ONNX file leaves open; once for each.",
            heading="Model and inputs",
            names="--shape",
            metavar="NAME=N,...",
        ),
    ] = {}
    states: Annotated[
        Mapping[str, str],
        Option(
            text="The output is the input of the next inference; the network keeps it. Once for "
            "each.",
            heading="Model and inputs",
            names="--state",
            metavar="INPUT=OUTPUT",
        ),
    ] = {}
    streaming: Annotated[
        int,
        Option(
            text="Take N new rows of a stream (default: 1) instead of a whole window, compute what "
            "is new.",
            heading="Model and inputs",
            metavar="[N]",
            least=1,
            bare=1,
        ),
    ] = 0
    optimize: Annotated[
        Objective,
        Option(
            text="Which of the tuned schedules to take: of the fewest cycles on the platform, with "
            "its memory; of the least energy; of the fewest instructions; balanced: of the fewest "
            "cycles among those with little flash; or of the least flash.",
            heading="Schedules",
            choices=get_args(Objective),
        ),
    ] = "cycles"
    max_scratch: Annotated[
        int | None,
        Option(
            text="Leave out schedules that take more working memory for a layer.",
            heading="Schedules",
            metavar="BYTES",
            least=0,
        ),
    ] = None
    flash_trade: Annotated[
        int | None,
        Option(
            text="Flash that --optimize cycles pays at most for a thousand cycles saved.",
            heading="Schedules",
            metavar="BYTES",
            least=1,
        ),
    ] = FLASH_TRADE
    ram_weights: Annotated[
        int,
        Option(
            text="Keep up to so many bytes of weights in RAM, copied there at start, of the layers "
            "that gain the most by it (default: as many as fit).",
            heading="Schedules",
            metavar="[BYTES]",
            least=0,
            bare=1 << 31,
        ),
    ] = 0
    tuned: Annotated[
        bool,
        Option(text="Use the tuner's records.", heading="Schedules", names="--tuned/--untuned"),
    ] = True
    require_offload: Annotated[
        Sequence[str],
        Option(
            text="Fail when a layer of this kind (such as CONV_2D) runs on the core, or its "
            "accelerator does not report all of its work.",
            heading="Checks",
            metavar="OP",
            keyed=False,
        ),
    ] = ()

    def __hash__(self) -> int:
        return hash(tuple(v for v in msgspec.structs.astuple(self) if isinstance(v, str | int)))

    def for_graph(self) -> BuildOptions:
        """Return the options for a graph read with them: what its file left open is set."""
        return change_options(self, {"shapes": {}, "states": {}, "streaming": 0})

    def core_alone(self) -> BuildOptions:
        """Return the same without what concerns accelerators."""
        return change_options(self, {"overlap": False, "require_offload": ()})


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that a compiled program runs and is checked with."""

    device: Annotated[
        str,
        Option(
            text="What the platform runs on: virtual, rtl, host (no sandbox), gdb:HOST:PORT, "
            "gdb:qemu, openocd:HOST:PORT.",
            metavar="DEVICE",
        ),
    ] = "virtual"
    seed: Annotated[
        int, Option(text="Of random inputs.", heading="Model and inputs", metavar="N", least=0)
    ] = 0
    check: Annotated[
        str | None,
        Option(
            text="Compare with the reference: nothing, the outputs of this run, each layer's "
            "tensor over several inputs, or (source) these, and all beside onnxruntime or LiteRT "
            "executing the file. Default: output on slow devices; else layers, and the file where "
            "that takes a second.",
            heading="Checks",
            choices=LEVELS,
            keyed=False,
        ),
    ] = None
    sanitize: Annotated[
        bool,
        Option(
            text="Check every load and store of the layers, as they run one by one: a layer may "
            "access its own tensors, scratch memory and stack, and use what was written.",
            heading="Checks",
            keyed=False,
        ),
    ] = False
    ubsan: Annotated[
        bool,
        Option(
            text="Compile the layers that are run one by one with the compiler's checks for "
            "undefined behaviour of C: overflows, shifts, alignment, bounds.",
            heading="Checks",
            keyed=False,
        ),
    ] = False


class BuildChanges(TypedDict, total=False):
    """The keywords of `covp.compile`: the fields of `BuildOptions`."""

    toolchain: str
    allow_unused: bool
    allow_slower: bool
    overlap: bool
    patches: str
    shapes: Shapes
    states: Mapping[str, str]
    streaming: int
    optimize: Objective
    max_scratch: int | None
    flash_trade: int | None
    ram_weights: int
    tuned: bool
    require_offload: Sequence[str]


class RunChanges(TypedDict, total=False):
    """The keywords of `covp.evaluation.run`: the fields of `RunOptions`."""

    device: str
    seed: int
    check: str | None
    sanitize: bool
    ubsan: bool


class Changes(BuildChanges, RunChanges, total=False):
    """The keywords of functions that build and run."""


DEFAULT_BUILD = BuildOptions()
DEFAULT_RUN = RunOptions()
EVERY_MATCH = BuildOptions(allow_unused=True, allow_slower=True)
"""Accelerators get every layer that they accept, however slow they are, as sweeps and verification
need it: what runs where does not depend on the parameters that are varied."""


def change_options(options: _T, changes: Mapping[str, Any]) -> _T:
    """Return the options with some changes. Raises TypeError: there is no such field."""
    return msgspec.structs.replace(options, **changes) if changes else options


def request(
    build: BuildOptions, run: RunOptions, changes: Mapping[str, Any]
) -> tuple[BuildOptions, RunOptions]:
    """Return options of a build and of a run with other values of some fields.

    Args:
        build, run: the options.
        changes: of either.

    Raises:
        TypeError: neither has such a field.
    """
    names = RunOptions.__struct_fields__
    of_run = {name: value for name, value in changes.items() if name in names}
    of_build = {name: value for name, value in changes.items() if name not in names}
    return change_options(build, of_build), change_options(run, of_run)


def list_options(kind: type[BuildOptions | RunOptions]) -> Iterator[tuple[str, Any, Option]]:
    """Name, type and annotation of each option."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        yield name, hint.__origin__, hint.__metadata__[0]


def key_options(options: BuildOptions | RunOptions) -> dict[str, Any]:
    """Return the options that figures depend on, by name, as JSON."""
    names = [name for name, _, option in list_options(type(options)) if option.keyed]
    return {name: msgspec.to_builtins(getattr(options, name)) for name in names}
