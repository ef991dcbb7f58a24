"""Options that several commands share."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypedDict

import click

from covp.evaluation.tune.records import Objective
from covp.evaluation.tune.trial import FLASH_TRADE

if TYPE_CHECKING:
    from covp.chip.platform_file import Platform
    from covp.evaluation import RecordedSchedules

platform = click.option(
    "-p",
    "--platform",
    required=True,
    metavar="PLATFORM",
    help="A name from `covp platforms`, or the path of a YAML file.",
)
platforms = click.option(
    "-p",
    "--platform",
    "platforms",
    required=True,
    multiple=True,
    metavar="PLATFORM",
    help="A name from `covp platforms`, or the path of a YAML file; once or several times.",
)
device = click.option(
    "--device",
    default="virtual",
    show_default=True,
    metavar="DEVICE",
    help="What the platform runs on: virtual, rtl, host (no sandbox), gdb:HOST:PORT, gdb:qemu, "
    "openocd:HOST:PORT.",
)


class Seconds(click.FloatRange):
    """A time: a finite number, 0 or more."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(0)

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        """As click does, but NaN and infinity are rejected."""
        number = float(super().convert(value, param, context))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number of seconds.", param, context)
        return number


def _shapes_by_name(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, tuple[int, ...]]:
    """Each is NAME=1,3,32,32; nothing after the sign is the shape of a scalar."""
    found: dict[str, tuple[int, ...]] = {}
    for value in given:
        name, sign, text = value.rpartition("=")
        try:
            extents = tuple(int(part) for part in text.split(",")) if text.strip() else ()
        except ValueError:
            extents = (-1,)
        if not (sign and name) or any(not 0 <= extent < 2**31 for extent in extents):
            wrong = f"{value!r:.80} is not of the form NAME=1,3,32,32."
            raise click.BadParameter(wrong, context, option)
        if name in found:
            raise click.BadParameter(f"the shape of {name} is given twice.", context, option)
        found[name] = extents
    return found


shapes = click.option(
    "--shape",
    "shapes",
    multiple=True,
    callback=_shapes_by_name,
    metavar="NAME=N,...",
    help="The shape of an input that an ONNX file leaves open; once for each.",
)


def _pairs(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    """Each is INPUT=OUTPUT."""
    found: dict[str, str] = {}
    for value in given:
        before, _, after = value.partition("=")
        if not (before and after):
            wrong = f"{value!r:.80} is not of the form INPUT=OUTPUT."
            raise click.BadParameter(wrong, context, option)
        if before in found:
            raise click.BadParameter(f"the state {before} is given twice.", context, option)
        found[before] = after
    return found


states = click.option(
    "--state",
    "states",
    multiple=True,
    callback=_pairs,
    metavar="INPUT=OUTPUT",
    help="The output is the input of the next inference; the network keeps it. Once for each.",
)
streaming = click.option(
    "--streaming",
    is_flag=False,
    flag_value=1,
    default=None,
    type=click.IntRange(1),
    callback=lambda context, parameter, rows: rows or 0,
    metavar="[N]",
    help="Take N new rows of a stream (default: 1) instead of a whole window, compute what is new.",
)
inputs = click.option(
    "--input", "inputs", multiple=True, metavar="FILE.npy", help="One for each input."
)
accelerators = click.option(
    "-a",
    "--accel",
    "accelerators",
    multiple=True,
    metavar="ACCEL",
    help="A name from `covp accelerators` or file.py:Class, with :key=value,...; "
    "NAME=ACCEL names the instance.",
)
allow_slower = click.option(
    "--allow-slower",
    is_flag=True,
    help="Give accelerators also the layers that the core does more than twice as fast.",
)
overlap = click.option(
    "--overlap",
    is_flag=True,
    help="Let the core go on with other layers, or other rows of them, while accelerators work.",
)
toolchain = click.option(
    "--toolchain", type=click.Choice(["zig", "gcc"]), default="zig", show_default=True
)
seed = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of random inputs."
)
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
optimize = click.option(
    "--optimize",
    type=click.Choice(["speed", "balanced", "size"]),
    default="speed",
    show_default=True,
    help="Which of the tuned schedules to take.",
)
max_scratch = click.option(
    "--max-scratch",
    type=click.IntRange(0),
    metavar="BYTES",
    help="Leave out schedules that take more working memory for a layer.",
)
check = click.option(
    "--check",
    type=click.Choice(["none", "output", "layers", "source"]),
    help="Compare with the reference: nothing, the outputs of this run, each layer's tensor over "
    "several inputs, or (source) these, and all beside onnxruntime or LiteRT executing the file. "
    "Default: output on slow devices; else layers, and the file where that takes a second.",
)
sanitize = click.option(
    "--sanitize",
    is_flag=True,
    help="Check every load and store of the layers, as they run one by one: a layer may access its "
    "own tensors, scratch memory and stack, and use what was written.",
)
ubsan = click.option(
    "--ubsan",
    is_flag=True,
    help="Compile the layers that are run one by one with the compiler's checks for undefined "
    "behaviour of C: overflows, shifts, alignment, bounds.",
)
flash_trade = click.option(
    "--flash-trade",
    type=click.IntRange(1),
    default=FLASH_TRADE,
    show_default=True,
    metavar="BYTES",
    help="Flash that --optimize speed pays at most for a thousand instructions (or cycles) saved.",
)
tuned = click.option("--tuned/--untuned", default=True, help="Use the tuner's records.")


def _load_operators(
    context: click.Context, option: click.Parameter, files: tuple[str, ...]
) -> None:
    from covp.codegen.intrinsics import dot_products
    from covp.graph.user_operators import load_operator_file

    def registered() -> object:
        # a file that registers converters has imported them; others shall not wait for onnx
        onnx = sys.modules.get("covp.graph.onnx.converters.registry")
        return dot_products(), {} if onnx is None else dict(onnx.CONVERTERS)

    for file in files:
        load_operator_file(file, also=registered)


operators = click.option(
    "--operators",
    multiple=True,
    metavar="FILE.py",
    callback=_load_operators,
    expose_value=False,
    help="Registers operators, converters or instructions that covp does not know.",
)


def bundle(
    name: str, value: Callable[..., object], keys: tuple[str, ...], *parts: Callable[..., Any]
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Several options, listed as they stand here; the command gets one value, made of ``keys``."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def call(**given: Any) -> int:
            made = value(**{key: given.pop(key) for key in keys})
            return command(**given, **{name: made})

        for option in reversed(parts):
            option(call)
        return call

    return decorate


class Interface(TypedDict):
    """What a model file leaves open, in the words of `covp.evaluation.build`."""

    shapes: dict[str, tuple[int, ...]]
    states: dict[str, str]
    streaming: int


interface = bundle(
    "interface", Interface, tuple(Interface.__annotations__), operators, shapes, states, streaming
)


@dataclass(frozen=True)
class ScheduleChoice:
    """Which of the tuner's records a command takes, as `covp.evaluation.recorded_schedules`."""

    optimize: Objective
    max_scratch: int | None
    flash_trade: int
    tuned: bool

    def recorded(
        self, platform: Platform, toolchain: str, device: str = "virtual"
    ) -> RecordedSchedules | None:
        """The schedules; None with --untuned."""
        from covp.evaluation import recorded_schedules

        if not self.tuned:
            return None
        return recorded_schedules(
            platform, toolchain, self.optimize, device, self.max_scratch, self.flash_trade
        )


schedules = bundle(
    "schedules",
    ScheduleChoice,
    tuple(field.name for field in fields(ScheduleChoice)),
    *(optimize, max_scratch, flash_trade, tuned),
)
