"""Options that several commands share; those of builds and runs are read from their structures."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

import click
from click.shell_completion import CompletionItem

from covp.base.request import BuildOptions, Option, RunOptions, Shapes, list_options
from covp.cli.groups import option
from covp.errors import UsageError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def size(text: str) -> int:
    """Return the bytes of a number, or of one with K, M or G, which are powers of 1024.

    Raises:
        UsageError: it is no such number.
    """
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number = text.upper().removesuffix("B").removesuffix("I")
    digits, unit = (number[:-1], units[number[-1:]]) if number[-1:] in units else (number, 1)
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        raise UsageError(f"{text!r:.40} is not a size; write bytes or such as 64K, 500M, 2G")
    return int(digits) * unit


def hertz(text: str) -> int:
    """Return the frequency of a number, or of one with k, M or G, which are powers of 1000.

    Raises:
        UsageError: it is no such number.
    """
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([kMG]?)(?:Hz)?", text.replace("_", ""))
    if match is None:
        raise UsageError(f"{text!r:.40} is not a frequency; write hertz or such as 84M, 32.768k")
    found = round(float(match[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]])
    if found < 1000:
        raise UsageError(f"{text!r:.40} is less than a kilohertz; write such as 84M")
    return found


def completer(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Return what completes a word in a shell: one of the names, else a file."""

    def complete(context: object, parameter: object, begun: str) -> list[CompletionItem]:
        found = [CompletionItem(name) for name in names() if name.startswith(begun)]
        return found or [CompletionItem(begun, type="file")]

    return complete


def _with_all(
    context: click.Context, option: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Put each platform that comes with covp in the place of "all"; each name stands once."""
    from covp.chip.platform_file import every_platform

    each = {"all": [board.name for board in every_platform()]} if "all" in names else {}
    return tuple(dict.fromkeys(one for name in names for one in each.get(name, [name])))


def _model_names() -> list[str]:
    from covp.graph.zoo.catalog import CATALOG

    return list(CATALOG)


def _accelerator_names() -> list[str]:
    from covp.accelerator.registry import built_in_names

    return list(built_in_names())


def _platform_names() -> list[str]:
    from covp.chip.platform_file import platform_names

    return platform_names()


_of_platforms = completer(_platform_names)
model = click.argument("model", shell_complete=completer(_model_names))
models = click.argument("models", nargs=-1, required=True, shell_complete=completer(_model_names))
platform = option(
    "-p",
    "--platform",
    required=True,
    metavar="PLATFORM",
    heading="Target",
    shell_complete=_of_platforms,
    help="A name from `covp platforms`, or the path of a YAML file.",
)
DEFAULT_PLATFORM = "riscv32"
platform_or_default = option(
    "-p",
    "--platform",
    metavar="PLATFORM",
    heading="Target",
    shell_complete=_of_platforms,
    help="A name from `covp platforms`, or the path of a YAML file.  "
    f"[default: {DEFAULT_PLATFORM}]",
)
platform_to_compile = option(
    "-p",
    "--platform",
    metavar="PLATFORM",
    heading="Target",
    shell_complete=_of_platforms,
    help="Compile for it: a name from `covp platforms`, or the path of a YAML file.",
)
platforms = option(
    "-p",
    "--platform",
    "platforms",
    required=True,
    multiple=True,
    metavar="PLATFORM",
    heading="Target",
    shell_complete=_of_platforms,
    callback=_with_all,
    help="A name from `covp platforms`, the path of a YAML file, or all; once or several times.",
)
platforms_or_all = option(
    "-p",
    "--platform",
    "platforms",
    multiple=True,
    default=("all",),
    metavar="PLATFORM",
    heading="Target",
    shell_complete=_of_platforms,
    callback=_with_all,
    help="A name from `covp platforms`, or the path of a YAML file; once or several times.  "
    "[default: all that come with covp]",
)
accelerators = option(
    "-a",
    "--accel",
    "accelerators",
    multiple=True,
    metavar="ACCEL",
    heading="Target",
    shell_complete=completer(_accelerator_names),
    help="A name from `covp accelerators` or file.py:Class, with :key=value,...; "
    "NAME=ACCEL names the instance.",
)
inputs = option(
    "--input",
    "inputs",
    multiple=True,
    metavar="FILE.npy",
    heading="Model and inputs",
    help="Input values, one file for each input.",
)
as_json = option(
    "--json", "as_json", is_flag=True, heading="Report", help="One JSON document on stdout."
)
jobs = option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Processes; default: one per CPU core."
)


class Seconds(click.FloatRange):
    """A time: a finite number, 0 or more."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(0)

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        """Convert as click does, but reject NaN and infinity."""
        number = float(super().convert(value, param, context))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number of seconds.", param, context)
        return number


def _shapes_by_name(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, tuple[int, ...]]:
    """Parse NAME=1,3,32,32 options; nothing after the sign is the shape of a scalar."""
    found: dict[str, tuple[int, ...]] = {}
    for value in given:
        name, sign, text = value.rpartition("=")
        try:
            extents = tuple(int(part) for part in text.split(",")) if text.strip() else ()
        except ValueError:
            extents = (-1,)
        if not (sign and name) or any(not 0 < extent < 2**31 for extent in extents):
            wrong = f"{value!r:.80} is not of the form NAME=1,3,32,32."
            raise click.BadParameter(wrong, context, option)
        if name in found:
            raise click.BadParameter(f"the shape of {name} is given twice.", context, option)
        found[name] = extents
    return found


def _pairs(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    """Parse INPUT=OUTPUT options."""
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


def _load_operators(
    context: click.Context, option: click.Parameter, files: tuple[str, ...]
) -> None:
    from covp.graph.user_operators import load_operator_file
    from covp.hardware.intrinsics import dot_products

    def current_registrations() -> object:
        # a file that registers converters has imported them; others shall not wait for onnx
        onnx = sys.modules.get("covp.graph.onnx.converters.registry")
        return dot_products(), {} if onnx is None else dict(onnx.CONVERTERS)

    for file in files:
        load_operator_file(file, also=current_registrations)


operators = option(
    "--operators",
    heading="Model and inputs",
    multiple=True,
    metavar="FILE.py",
    callback=_load_operators,
    expose_value=False,
    help="Registers operators, converters or instructions that covp does not know.",
)


def bundle(
    name: str, value: Callable[..., object], keys: tuple[str, ...], *parts: Callable[..., Any]
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Bundle options in this order; the command gets one value, made of ``keys``."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def call(**given: Any) -> int:
            made = value(**{key: given.pop(key) for key in keys})
            return command(**given, **{name: made})

        for part in reversed(parts):
            part(call)
        return call

    return decorate


class _Bytes(click.IntRange):
    """A number of bytes, or a size such as 64K."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the bytes; fail where the text is neither."""
        if isinstance(value, str) and not value.isdigit():
            from covp.chip.platform_file import parse_size  # quick start of the command line

            try:
                value = parse_size(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


def _value_of(hint: Any, about: Option, default: Any) -> dict[str, Any]:
    """Return the arguments of click's option for a type of field."""
    if hint is bool:
        return {"is_flag": True, "default": default}
    if hint == Shapes:
        return {"multiple": True, "callback": _shapes_by_name}
    if hint == Mapping[str, str]:
        return {"multiple": True, "callback": _pairs}
    if hint == Sequence[str]:
        return {"multiple": True}
    is_size = "BYTES" in (about.metavar or "")
    number = _Bytes(about.least) if is_size else click.IntRange(about.least)
    if about.bare is not None:
        return {
            "type": number,
            "is_flag": False,
            "flag_value": about.bare,
            "callback": lambda context, parameter, number: number or default,
        }
    kind = click.Choice(about.choices) if about.choices else str
    return {
        "type": kind if about.least is None else number,
        "default": default,
        "show_default": default not in (None, ""),
    }


def _options_of(kind: type[BuildOptions] | type[RunOptions]) -> Iterator[tuple[str, Decorator]]:
    """Name and click option of each field that commands have."""
    defaults = kind()
    for name, hint, about in list_options(kind):
        if about.heading:
            yield (
                name,
                option(
                    about.names or "--" + name.replace("_", "-"),
                    name,
                    metavar=about.metavar,
                    heading=about.heading,
                    help=about.text,
                    **_value_of(hint, about, getattr(defaults, name)),
                ),
            )


_BUILD = dict(_options_of(BuildOptions))
_RUN = dict(_options_of(RunOptions))
MODEL = ("shapes", "states", "streaming")
"""Options for what a model file leaves open."""
shapes, streaming, toolchain = _BUILD["shapes"], _BUILD["streaming"], _BUILD["toolchain"]
seed = _RUN["seed"]


def build_options(*names: str, without: tuple[str, ...] = ()) -> Decorator:
    """Return the options of a build; the command gets them as ``build_options``.

    Args:
        names: those that the command has; by default all.
        without: those that it does not have.
    """
    chosen = [name for name in names or _BUILD if name not in without]
    parts = [_BUILD[name] for name in chosen]
    if "shapes" in chosen:
        parts.append(operators)
    return bundle("build_options", BuildOptions, tuple(chosen), *parts)


def run_options(*names: str) -> Decorator:
    """Return the options of a run, by default all; the command gets them as ``run_options``."""
    chosen = tuple(names or _RUN)
    return bundle("run_options", RunOptions, chosen, *(_RUN[name] for name in chosen))
