"""`AcceleratorBackend`: what the compiler may send to an accelerator, and how."""

from __future__ import annotations

import copy
import importlib
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from covp.accelerator.call import CCall, Requantize, Step
from covp.accelerator.limits import Limit
from covp.accelerator.parameters import Parameter, Value, read_parameters
from covp.base.plugins import call_hook
from covp.chip.energy.technology import NONE, area_in, energy_in
from covp.chip.energy.units import UnitArea, UnitEnergy
from covp.errors import AcceleratorError, UsageError, near_misses
from covp.graph.graph import Graph
from covp.graph.pattern import Match, Pattern

_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DRIVER_CYCLES = 60
"""Cycles of the core for one call of a driver that starts a job and waits for it."""


@dataclass(frozen=True)
class TimingCheck:
    """A comparison of an accelerator's cycles with those of something else.

    Attributes:
        beside: the other side, e.g. "its RTL, 327 layers".
        error: largest relative error of a layer or job, e.g. 0.003.
        values: parameters that have to have these values, or nothing was compared.
    """

    beside: str
    error: float
    values: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.error:.1%} off at most beside {self.beside}"


class AcceleratorBackend(ABC):
    """An accelerator as the compiler sees it. Subclasses set the class attributes.

    Attributes:
        name: as users write it after ``-a``. An instance may have another name of its own, see
            `with_name`: the C names of its driver and the target that reports show.
        patterns: what the accelerator looks for; earlier ones go first.
        peripheral: the hardware model: a class, or "module:Class" imported when a device needs it.
        parameters: settings after the name: ``name:key=value,key=value``. The keywords of the
            peripheral's constructor must be among them; those are passed on to it.
        architectures: of the cores it can be beside ("arm", "riscv"); empty: any.
        energy: of its operations and bytes; None: that of its parameter ``technology``, if any.
        area: likewise, of its multipliers and memory.
        timing_check: what its cycles were compared with; None: with nothing.
        caches_constants: driver or unit may keep constants (weights, tables) and know them again by
            their addresses, as the constants of firmware never change. A reset, or `startup`, ends
            that where other constants may come to the same addresses.
        values: the parameters of this instance, each of its declared type.
    """

    name: str
    patterns: ClassVar[Sequence[Pattern]]
    peripheral: ClassVar[str | type[Any]]
    parameters: ClassVar[Sequence[Parameter]] = ()
    architectures: ClassVar[tuple[str, ...]] = ()
    energy: ClassVar[UnitEnergy | None] = None
    area: ClassVar[UnitArea | None] = None
    timing_check: ClassVar[TimingCheck | None] = None
    caches_constants: ClassVar[bool] = False

    def __init__(self, values: Mapping[str, str | Value] | None = None) -> None:
        """Set parameters, given as text or as values; the others keep their defaults.

        Raises:
            UsageError: an unknown parameter, a wrong type or a value outside its limits.
            AcceleratorError: the class's name is not a C identifier.
        """
        wrong = name_problem(self.name)
        if wrong:
            raise AcceleratorError(f"accelerator {self.name!r}: {wrong}")
        self.values = read_parameters(self.name, self.parameters, values or {})

    def with_name(self, name: str) -> Self:
        """Return the same accelerator as an instance with a name of its own.

        Raises:
            UsageError: the name cannot be a part of C names.
        """
        wrong = name_problem(name)
        if wrong:
            raise UsageError(f"accelerator {name!r}: {wrong}")
        other = copy.copy(self)
        other.name = name
        return other

    @classmethod
    def description(cls) -> str:
        """Return the first line of the class's docstring."""
        return (inspect.getdoc(cls) or "").partition("\n")[0]

    def is_equal(self, other: AcceleratorBackend) -> bool:
        """Return whether the other one is the same hardware with the same parameters."""
        return type(self) is type(other) and self.values == other.values

    @property
    def spec(self) -> str:
        """The text that `find_backend` makes this instance of: names and changed parameters."""
        changed = [
            f"{p.name}={p.text(self.values[p.name])}"
            for p in self.parameters
            if self.values[p.name] != p.default
        ]
        kind = type(self).name
        instance = f"{self.name}=" if self.name != kind else ""
        return f"{instance}{kind}{':' if changed else ''}{','.join(changed)}"

    @property
    def timing_parameters(self) -> tuple[Parameter, ...]:
        """Parameters that change nothing but how long the hardware takes, with these values."""
        return tuple(parameter for parameter in self.parameters if parameter.timing)

    @property
    def known_timing(self) -> TimingCheck | None:
        """Comparison of the cycles that holds for these values; None: there is none."""
        if self.values.get("rtl", "no") != "no":
            return TimingCheck("its own RTL", 0.0)
        check = self.timing_check
        if check is None or any(self.values.get(n) != v for n, v in check.values.items()):
            return None
        return check

    @abstractmethod
    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """Accept or reject a match.

        Accepted: True, or limits that all hold. Rejected: False, the reason as a text, or limits of
        which one does not hold; reports print those with the value seen.
        """

    @abstractmethod
    def lower(self, match: Match) -> Step | Sequence[Step]:
        """Return the driver calls, and the work of the core around them, that compute a match."""

    @abstractmethod
    def driver(self, base: int) -> Mapping[str, str]:
        """Return the driver's files, name to C text, for registers at bus address ``base``.

        A file ``NAME_place.h`` with ``NAME_BASE`` and, where the platform has one for it,
        ``NAME_IRQ`` lies beside them.
        """

    # -- hooks that most accelerators do not need ----------------------------------------------

    def before_partitioning(self, graph: Graph) -> Graph:
        """Transform a graph before the search for patterns: return a new graph, or the same one."""
        return graph

    def after_partitioning(self, graph: Graph, own: Sequence[Match]) -> Graph:
        """Transform a graph after it; ``own``: the matches that became this accelerator's layers.

        Patterns are searched for once more in the graph that it returns.
        """
        return graph

    def for_layers(self, own: Sequence[Match]) -> Self:
        """Return the accelerator as it lowers these layers: this one, or a copy that knows more.

        Args:
            own: all matches that became its layers, in order: what has to be decided for all of
                them together, such as whose weights stay in its memory, is decided here.
        """
        return self

    def is_kept(self, layer: str) -> bool:
        """Return whether constants of a layer, by its operator's name, stay in the unit."""
        return False

    def refine(self, match: Match, steps: Sequence[Step]) -> Sequence[Step]:
        """Transform the ``steps`` of a lowered ``match``, e.g. tile to the unit's own memory."""
        return steps

    def startup(self) -> Sequence[CCall]:
        """Return driver calls, of constant arguments, to make at the start of every inference."""
        return ()

    def overlaps(self, function: str) -> tuple[str, str] | None:
        """Return the functions that ``overlap`` uses to let the core go on while the unit works.

        Args:
            function: of the driver, which `lower` calls; it starts the unit and waits for it.

        Returns:
            Names of a function that starts the unit for the same arguments and comes back at once,
            and of one without arguments that waits for it. Between the two calls the driver is
            not called otherwise. None: there are none, and the core waits.
        """
        return None

    def estimate(self, match: Match) -> int | None:
        """Return the cycles that the accelerator itself would need for a match; None: unknown.

        With `driver_estimate` it decides who gets a layer, and it is the potential saving of
        a rejected one; so it has to answer for matches that `supports` rejects, too.
        """
        return None

    def driver_estimate(self, match: Match) -> int:
        """Return the cycles of the core in the driver around the jobs of an accepted ``match``.

        By default those of one call; drivers of this repository take 50 to 65 in simulation.
        """
        return DRIVER_CYCLES

    def schedule(self, match: Match) -> str:
        """Return how a match is cut and ordered, in a few words for reports; "": nothing to say."""
        return ""

    def requantizes(self, match: Match) -> Sequence[Requantize]:
        """Return the steps of `lower` in which the core requantizes; their cycles are simulated."""
        return ()

    def unit_energy(self) -> UnitEnergy | None:
        """Return the energy of operations and bytes; None where it is not given."""
        return self.energy or energy_in(str(self.values.get("technology", NONE)))

    def unit_area(self) -> UnitArea | None:
        """Return the area of the unit; None where neither class nor parameters give it."""
        return self.area or area_in(str(self.values.get("technology", NONE)))

    def hardware_size(self) -> tuple[int, float] | None:
        """Return the unit's multiply-accumulators and its memory in KB (1024 bytes); None: unknown.

        By default its parameter ``macs_per_cycle``, and no memory.
        """
        macs = self.values.get("macs_per_cycle")
        return (int(macs), 0.0) if isinstance(macs, int) else None

    def cases(self) -> Mapping[str, Any]:
        """Return, for `covp verify`, a Hypothesis strategy of `covp.testing.Case` by operator name.

        Empty: those of `covp.testing.layers.STRATEGIES` for the operators of the patterns.
        """
        return {}

    def peripheral_class(self) -> type[Any]:
        """Return the class of the hardware model.

        Raises:
            AcceleratorError: ``peripheral`` names no class that can be imported.
        """
        if isinstance(self.peripheral, type):
            return self.peripheral
        module, _, attribute = self.peripheral.partition(":")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise AcceleratorError(
                f"accelerator {self.name}: peripheral {self.peripheral!r} cannot be imported "
                f"as module:Class: {error}"
            ) from error
        if not isinstance(found, type):
            raise AcceleratorError(
                f"accelerator {self.name}: peripheral {self.peripheral!r} is not a class"
            )
        return found

    @property
    def is_on_bus(self) -> bool:
        """True if the unit's hardware reaches memory by itself, beside the core's caches."""
        from covp.hardware.custom_instruction import InstructionUnit

        return not issubclass(self.peripheral_class(), InstructionUnit)

    def make_peripheral(self) -> Any:
        """Return a new hardware model with the parameters that its constructor takes.

        Raises:
            AcceleratorError: the constructor takes one that is not a parameter of the accelerator.
        """
        model = self.peripheral_class()
        taken = inspect.signature(model).parameters.values()
        names = [p.name for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for name in names:
            if name not in self.values:
                raise AcceleratorError(
                    f"accelerator {self.name}: {model.__name__}() takes {name!r}, which is not "
                    f"one of `parameters`:",
                    hint=f"{near_misses(name, self.values)} (or override make_peripheral)",
                )
        return model(**{name: self.values[name] for name in names})


def name_problem(name: object) -> str:
    """Return the reason why an accelerator cannot have a name; empty where it can."""
    if not (isinstance(name, str) and _C_NAME.fullmatch(name)):
        return (
            "its name becomes a part of C names; only letters, digits and _ can be in it, the "
            "first one no digit"
        )
    return "cpu is the core itself" if name == "cpu" else ""


def new_peripheral(backend: AcceleratorBackend) -> Any:
    """Return a new hardware model of an accelerator.

    Raises:
        AcceleratorError: ``make_peripheral`` raised, or gave something else.
    """
    from covp.hardware.custom_instruction import InstructionUnit
    from covp.hardware.peripheral import Peripheral

    where = f"accelerator {backend.name}"
    made = call_hook(where, "make_peripheral", backend.make_peripheral)
    if not isinstance(made, (Peripheral, InstructionUnit)):
        raise AcceleratorError(
            f"{where}: make_peripheral() gave {made!r:.80}, not a Peripheral or an InstructionUnit"
        )
    return made
