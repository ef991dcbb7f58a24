"""Find the set-ups and platforms that have a sweep's parameters; check names and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.parameters import Value
from covp.accelerator.registry import find_backends
from covp.chip.platform_file import Platform, load_platform
from covp.device.rtl.cores import has_rtl
from covp.device.timing.model import core_timing
from covp.errors import CovpError, UsageError
from covp.evaluation.core_variants import check_parameters
from covp.evaluation.varied import CORE_PARAMETER, PLATFORM, vary_design
from covp.exploration.sweep.spec import Spec

Setup = tuple[str, ...]
_OF_ALL = ("clock_hz", "core", "timing")


@contextmanager
def locate_errors(where: str, name: str = "") -> Iterator[None]:
    """Turn errors of covp into those of the sweep's file; ``where`` begins them.

    Where they begin with the ``name`` of a parameter, that is dropped.
    """
    try:
        yield
    except CovpError as error:
        raise UsageError(f"{where}{str(error).removeprefix(f'{name}: ')}") from None


@dataclass(frozen=True, eq=False)
class Owners:
    """The platforms and set-ups of a sweep, found.

    Attributes:
        boards: by the texts of the sweep.
        setups: the accelerators of each set-up.
        names: of the parameters that a platform with a set-up has, of those that vary.
    """

    boards: dict[str, Platform]
    setups: dict[Setup, list[AcceleratorBackend]]
    names: dict[tuple[str, Setup], frozenset[str]]

    @staticmethod
    def of(spec: Spec, where: str) -> Owners:
        """Return the owners of a sweep's parameters.

        Args:
            spec: the sweep.
            where: begins every error.

        Raises:
            UsageError: a platform or accelerator is not there, no one has a parameter, or its owner
                does not allow a value.
        """
        boards, setups = {}, {}
        for position, platform in enumerate(spec.platforms):
            with locate_errors(f"{where}platforms[{position}]: "):
                boards[platform] = load_platform(platform)
        for position, setup in enumerate(spec.accelerators):
            with locate_errors(f"{where}accelerators[{position}]: "):
                setups[setup] = find_backends(setup)
        names: dict[tuple[str, Setup], set[str]] = {key: set() for key in product(boards, setups)}
        for key, name, values in _given(spec):
            with locate_errors(f"{where}{key}: ", name):
                for owner in _owners(name, boards, setups):
                    names[owner].add(name)
                _check(name, values, boards, setups)
        return Owners(boards, setups, {key: frozenset(found) for key, found in names.items()})


def _given(spec: Spec) -> Iterator[tuple[str, str, tuple[Value, ...]]]:
    """Yield key in the file, name and values of each parameter."""
    for name, values in spec.axes().items():
        yield f"vary.{name}", name, values
    for position, entry in enumerate(spec.points):
        for name, value in entry.items():
            yield f"points[{position}].{name}", name, (value,)


def _owners(
    name: str, boards: Mapping[str, Platform], setups: Mapping[Setup, list[AcceleratorBackend]]
) -> list[tuple[str, Setup]]:
    """Return the owners of a parameter. Raises UsageError: there are none."""
    owner, _, parameter = name.partition(".")
    if owner == PLATFORM:
        found = [key for key in product(boards, setups) if _has(boards[key[0]], parameter)]
    else:
        having = {
            setup
            for setup, units in setups.items()
            if any(unit.name == owner and parameter in unit.values for unit in units)
        }
        found = [key for key in product(boards, setups) if key[1] in having]
    if not found:
        # the one that is nearest says what is wrong with the name
        units = [unit for each in setups.values() for unit in each]
        own = [unit for unit in units if unit.name == owner] or _distinct(units)
        vary_design(
            next(iter(boards.values())), own[:1] if owner != PLATFORM and own else [], {name: 0}
        )
        raise UsageError(f"{name}: no platform and no set-up has it")
    return found


def _distinct(units: list[AcceleratorBackend]) -> list[AcceleratorBackend]:
    return list({unit.name: unit for unit in units}.values())


def _has(platform: Platform, parameter: str) -> bool:
    regions = (region.name for region in platform.memory)
    of_caches = (f"{cache.name}.size" for cache in platform.caches)
    if f"{PLATFORM}.{parameter}".startswith(CORE_PARAMETER):
        return has_rtl(platform.core)
    return parameter in (*_OF_ALL, *of_caches) or any(
        parameter.startswith(f"{name}.") for name in regions
    )


def _check(
    name: str,
    values: tuple[Value, ...],
    boards: Mapping[str, Platform],
    setups: Mapping[Setup, list[AcceleratorBackend]],
) -> None:
    """Raise CovpError if an owner does not allow one of the values."""
    owner, _, parameter = name.partition(".")
    for value in values:
        if name.startswith(CORE_PARAMETER):
            for board in boards.values():
                if _has(board, parameter):  # whether it runs shows with the other values
                    check_parameters(board.core, {name.removeprefix(CORE_PARAMETER): value})
            continue
        if owner == PLATFORM:
            for board in boards.values():
                if _has(board, parameter):
                    core_timing(vary_design(board, (), {name: value})[0].core)
            continue
        board = next(iter(boards.values()))
        for unit in (unit for units in setups.values() for unit in units if unit.name == owner):
            if parameter in unit.values:
                vary_design(board, [unit], {name: value})
