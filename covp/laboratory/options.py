"""The options of the pytest plugin, checked before the first test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from covp.errors import CovpError, UsageError, near_misses
from covp.laboratory.target import Target
from covp.runtime.devices import DEVICES, scheme_of

if TYPE_CHECKING:
    from covp.chip.platform_file import Platform

DEFAULT_PLATFORM = "riscv32"


@dataclass(frozen=True)
class LaboratoryOptions:
    """The options that the user chose.

    Attributes:
        targets: where kernels run, each once.
        sanitize, ubsan: of all sessions.
        coverage: a file for the coverage of device code.
        baseline: stored figures of kernels; ``update`` writes them.
        threshold: by how many percent figures may be worse.
        summary: a file for the table in Markdown.
    """

    targets: tuple[Target, ...] = (Target(DEFAULT_PLATFORM),)
    sanitize: bool = False
    ubsan: bool = False
    coverage: Path | None = None
    baseline: Path | None = None
    update: bool = False
    threshold: float = 1.0
    summary: Path | None = None


def add_options(parser: pytest.Parser) -> None:
    """Declare the options of covp on ``parser``."""
    group = parser.getgroup("covp", "C kernels on emulated cores")
    group.addoption(
        "--covp-platform",
        action="append",
        metavar="NAME[:DEVICE]",
        help="Run tests that use covp_device there; repeatable. A name from `covp platforms` or "
        f"a YAML file, and what it runs on: virtual (default), rtl, gdb:qemu, gdb:HOST:PORT, "
        f"openocd:HOST:PORT. Default: {DEFAULT_PLATFORM}.",
    )
    group.addoption("--covp-sanitize", action="store_true", help="Report memory errors of kernels.")
    group.addoption(
        "--covp-ubsan", action="store_true", help="Report undefined behaviour of kernels."
    )
    group.addoption(
        "--covp-coverage",
        metavar="FILE",
        help="Write the coverage of device code: FILE.info for lcov, FILE.xml for Cobertura.",
    )
    group.addoption(
        "--covp-baseline",
        metavar="FILE",
        help="Fail when a kernel needs more instructions, cycles or code bytes than stored there.",
    )
    group.addoption(
        "--covp-update",
        action="store_true",
        help="Store the figures of this run in the baseline instead.",
    )
    group.addoption(
        "--covp-threshold",
        metavar="PERCENT",
        default="1",
        help="By how much a figure may be worse than the baseline's. Default: 1.",
    )
    group.addoption(
        "--covp-summary", metavar="FILE.md", help="Write the table of kernels in Markdown."
    )


def read_options(config: pytest.Config) -> LaboratoryOptions:
    """Read the options of this run. Raises pytest.UsageError with one line."""
    try:
        options = LaboratoryOptions(
            targets=_targets(config.getoption("--covp-platform")),
            sanitize=config.getoption("--covp-sanitize"),
            ubsan=config.getoption("--covp-ubsan"),
            coverage=_output(config, "--covp-coverage"),
            baseline=_output(config, "--covp-baseline"),
            update=config.getoption("--covp-update"),
            threshold=_percent(config.getoption("--covp-threshold")),
            summary=_output(config, "--covp-summary"),
        )
        _demand_sense(options)
    except CovpError as error:
        raise pytest.UsageError(str(error)) from None
    return options


def device_name(target: Target) -> str:
    """Name the target in test ids and tables: a YAML file without folder and suffix."""
    path = Path(target.platform)
    name = path.stem if path.suffix in (".yaml", ".yml") else target.platform
    return str(Target(name, target.device))


def _targets(given: list[str] | None) -> tuple[Target, ...]:
    if not given:
        return (Target(DEFAULT_PLATFORM),)
    targets = tuple(dict.fromkeys(Target.parse(text) for text in given))
    for target in targets:
        _check_device(target)
    return targets


def _check_device(target: Target) -> None:
    """Raise CovpError if there is no such platform or device."""
    from covp.chip.platform_file import load_platform

    load_platform(target.platform)
    scheme = scheme_of(target.device)
    if scheme not in DEVICES:
        raise UsageError(
            f"--covp-platform {target}: unknown device {target.device!r}:",
            hint=near_misses(scheme, DEVICES),
        )


def _output(config: pytest.Config, option: str) -> Path | None:
    """Return the path of a file that is written at the end, in a folder that exists."""
    text = config.getoption(option)
    if text is None:
        return None
    path = Path(config.invocation_params.dir, text)
    if not text or path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{option} {text}: must be a file in a folder that exists")
    return path


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"--covp-threshold {text}: must be a number of percent, at least 0")
    return value


def _demand_sense(options: LaboratoryOptions) -> None:
    if options.update and options.baseline is None:
        raise UsageError("--covp-update: name the file to write with --covp-baseline FILE")
    if options.baseline is not None and options.ubsan:
        raise UsageError(
            "--covp-baseline: the checks of --covp-ubsan are instructions too; use one of the two"
        )
    uncounted = [
        target for target in options.targets if not DEVICES[scheme_of(target.device)].traces
    ]
    if options.coverage is not None and uncounted:
        raise UsageError(
            f"--covp-coverage: blocks of code are counted on virtual devices, not on {uncounted[0]}"
        )
    if options.coverage is not None and options.coverage.suffix not in (".info", ".xml"):
        raise UsageError(
            f"--covp-coverage {options.coverage.name}: must end in .info (lcov) or .xml (Cobertura)"
        )


def missing_features(platform: Platform, wanted: tuple[str, ...]) -> list[str]:
    """List the wanted features that a platform's core lacks.

    Features are those of `covp.chip.cores.Core`, the extensions and profile of its instruction set
    and its architecture.

    Raises:
        UsageError: no core at all has one of them.
    """
    from covp.chip.cores import Core, all_cores

    def has(core: Core) -> frozenset[str]:
        return core.features | core.isa.extensions | {core.isa.profile, core.architecture}

    known = frozenset().union(*map(has, all_cores()))
    for feature in wanted:
        if feature not in known:
            raise UsageError(
                f"covp_feature: unknown {feature!r}:", hint=near_misses(feature, known)
            )
    present = has(platform.core)
    return [feature for feature in wanted if feature not in present]
