"""`Accelerator`: a whole accelerator in one class - registers, acceptance, function and time.

From a declared job come the register map, the C driver, the hardware model on the bus and the
limits that the compiler respects::

    class Mac(Accelerator):
        '''Fully connected layers on 16 multipliers.'''

        name = "mac"
        operators = ("FULLY_CONNECTED",)
        job = Job(
            tensor("INPUT", "int8", lambda job: job.IN_CHANNELS),
            table("WEIGHTS", "int8", lambda job: job.IN_CHANNELS * job.OUT_CHANNELS),
            result("OUTPUT", "int32", lambda job: job.OUT_CHANNELS),
            number("IN_CHANNELS", 1, 1024),
            number("OUT_CHANNELS", 1, 1024),
        )

        def compute(self, job):
            return job.WEIGHTS.reshape(job.OUT_CHANNELS, -1).astype(np.int32) @ job.INPUT

        def macs(self, job):
            return job.IN_CHANNELS * job.OUT_CHANNELS

The methods of `AcceleratorBackend` can be overridden as well.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import Argument, CCall, Constant, RegisterImage, Step
from covp.accelerator.job_driver import driver_files
from covp.accelerator.layer_registers import (
    check_tensors,
    checked_registers,
    checked_table,
)
from covp.accelerator.limits import Limit
from covp.accelerator.parameters import Parameter
from covp.accelerator.rtl.choice import RTL, chosen_rtl, with_rtl
from covp.accelerator.rtl.exact_unit import ExactRtlUnit
from covp.accelerator.rtl.library import UnitModel, UnitWave, build_unit
from covp.accelerator.rtl.sources import UnitRtl
from covp.accelerator.rtl.unit import RtlUnit
from covp.chip.energy.technology import NONE, component_file, technology_names
from covp.compilers.verilator import WAVES
from covp.errors import AcceleratorError, ModelError, UsageError
from covp.graph.graph import Tensor
from covp.graph.pattern import Match, Pattern, op
from covp.graph.typed import named_values, typed
from covp.hardware.declared_unit import DeclaredUnit
from covp.hardware.job import Job, JobValues, Operand, number
from covp.hardware.job_timing import JobSteps, JobTiming, Traffic, UnitTiming
from covp.hardware.kept_tables import PLACE_BYTES

_LARGEST = {
    "macs_per_cycle": (1, 1 << 20, "multiply-accumulates a cycle"),
    "bytes_per_cycle": (1, 1 << 10, "bytes a cycle through the memory port"),
    "startup_cycles": (0, 1 << 20, "cycles from the start bit to the first operation"),
    "contention": (0, 100, "cycles waited for the bus for each cycle on it"),
    "clock_ratio": (0.01, 1000, "cycles of the core for each cycle of the unit"),
}
TIMING = tuple(
    Parameter(name, getattr(UnitTiming, name), text, least, most, timing=True)
    for name, (least, most, text) in _LARGEST.items()
)
"""Parameters of the default timing model, `covp.hardware.job_timing.UnitTiming`."""

WAIT = Parameter(
    "wait", "poll", "how the driver waits: poll STATUS, or WFI until the interrupt",
    choices=("poll", "sleep"),
)  # fmt: skip

TECHNOLOGY = Parameter(
    "technology", NONE, "whose figures energy and area are estimated with, or a component file",
    choices=technology_names(), other=component_file,
)  # fmt: skip


MOST_KEPT = 1 << 26
WEIGHT_MEMORY = Parameter(
    "weight_memory", 0, "bytes of a memory in which weights stay over inferences", 0, MOST_KEPT
)
KEEP = "KEEP"
"""The number of a job with the place of the table that stays."""

RTL_MODE = Parameter(
    "rtl_mode", "fast", "its RTL runs job by job, or exactly beside the core, access by access",
    choices=("fast", "exact"),
)  # fmt: skip
RTL_CHECK = Parameter(
    "rtl_check",
    False,
    "its model computes each job of its RTL, too: a difference is an error",
)


def _wave_file(text: str) -> str:
    path = Path(text)
    if path.suffix not in WAVES:
        raise ValueError("is no file that ends in .fst or .vcd")
    return str(path.absolute())


RTL_WAVE = Parameter(
    "rtl_wave", "", "file .fst or .vcd of its RTL's signals, 100,000 cycles from the first job on",
    choices=("",), other=_wave_file,
)  # fmt: skip


def unit_timing(values: Mapping[str, Any]) -> UnitTiming:
    """Return the timing model with an accelerator's values, and defaults for those it lacks."""
    names = {field.name for field in fields(UnitTiming)}
    return UnitTiming(**{name: value for name, value in values.items() if name in names})


class Accelerator(AcceleratorBackend):
    """An accelerator, described once. Subclasses set `name`, `job`, `operators` or `patterns`.

    Attributes:
        operators: TFLite's names of the operators it accepts; `patterns` follow from them.
        job: the operands and numbers of one start.
        keeps: name of a table that may stay in a memory of the unit's own over inferences, usually
            its weights; the parameter ``weight_memory`` says how large that is. The job gets the
            number KEEP, its place there, which `registers` need not give. Where the table was
            there already, `timing` finds 1 in ``job.KEPT``, and its bytes are not moved.
        rtl: its Verilog, for the parameter ``rtl=yes``; None: there is none.

    `registers` and `accepts` get the layer as `covp.graph.typed.typed` gives it.
    """

    job: ClassVar[Job]
    operators: ClassVar[tuple[str, ...]] = ()
    patterns: ClassVar[Sequence[Pattern]] = ()
    keeps: ClassVar[str] = ""
    rtl: ClassVar[UnitRtl | None] = None
    peripheral = DeclaredUnit
    parameters: ClassVar[Sequence[Parameter]] = (*TIMING, WAIT, TECHNOLOGY)
    _places: Mapping[str, int] = MappingProxyType({})

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if isinstance(cls.operators, str):
            raise TypeError(f"operators must be a tuple: ({cls.operators!r},)")
        if cls.operators and "patterns" not in vars(cls):
            cls.patterns = tuple(Pattern(kind.lower(), op(kind)) for kind in cls.operators)
        if cls.make_peripheral is Accelerator.make_peripheral and RTL not in cls.parameters:
            cls.parameters = (*cls.parameters, RTL, RTL_MODE, RTL_CHECK, RTL_WAVE)
        if cls.keeps:
            _declare_kept(cls)
        if "work" in vars(cls):  # the hook's name and form in version 0.1
            cls.timing = _timing_by_work  # type: ignore[assignment]

    @property
    def kept_bytes(self) -> int:
        """The bytes of the memory in which the table `keeps` stays; 0: it is loaded by each job."""
        return int(self.values[WEIGHT_MEMORY.name]) if self.keeps else 0

    @property
    def timing_parameters(self) -> tuple[Parameter, ...]:
        """Parameters that change time alone; none where they decide whose tables stay."""
        return () if self.kept_bytes else super().timing_parameters

    def hardware_size(self) -> tuple[int, float] | None:
        """Return ``macs_per_cycle`` and the KB in which weights stay; None: unknown."""
        size = super().hardware_size()
        return None if size is None else (size[0], size[1] + self.kept_bytes / 1024)

    def for_layers(self, own: Sequence[Match]) -> Self:
        """Give the tables with which most cycles are saved, for their bytes, a place to stay.

        Args:
            own: the matches that became its layers.
        """
        if not self.kept_bytes:
            return self
        warm = copy.copy(self)
        warm._places = {match.op.name: 1 for match in own}
        offers = []
        for match in own:
            before, after = self.estimate(match), warm.estimate(match)
            nbytes = self._table_bytes(match)
            if nbytes and before is not None and after is not None and after < before:
                offers.append(((before - after) / nbytes, nbytes, match.op.name))
        planned = copy.copy(self)
        planned._places = place_tables(offers, self.kept_bytes)
        return planned

    def is_kept(self, layer: str) -> bool:
        """Return whether the table of a layer, by its operator's name, has a place to stay."""
        return self.place_of(layer) > 0

    def place_of(self, layer: str) -> int:
        """Return the value of KEEP for a layer, by its operator's name; 0: nothing stays."""
        return self._places.get(layer, 0)

    def _table_bytes(self, match: Match) -> int:
        """Return the size of the table that may stay; 0 where the layer has none."""
        given = self._registers(match, self.layer(match))
        table = self._kept_operand
        return 0 if given[table.name] is None else table.nbytes(self._numbers(given))

    @property
    def _kept_operand(self) -> Operand:
        return next(table for table in self.job.tables if table.name == self.keeps)

    def registers(self, layer: Any) -> Mapping[str, Any]:
        """Return the job's numbers and tables for a layer; tables as arrays, None for none.

        By default those that bear a name of `covp.graph.typed.named_values`; add the others. What
        comes at run time is not part of it: tensors are the match's inputs in their order
        (or those that the pattern gives the register's name, in lower case), the result its output.
        """
        known = named_values(layer)
        names = [part.name for part in (*self.job.image, *self.job.varying)]
        return {name: known[name] for name in names if name in known}

    @abstractmethod
    def compute(self, job: Any) -> NDArray[Any]:
        """Return the result of a job.

        ``job.NAME`` is an int or float for a number and a flat array for an operand (None for an
        optional one with the address 0). Only declared values may be used: the hardware has no
        others.
        """

    def accepts(self, layer: Any) -> Iterable[Limit]:
        """Return the requirements on a layer beyond the ranges of the job's numbers.

        Of a generator no limit after the first one that does not hold is read.
        """
        return ()

    def check(self, job: JobValues) -> str | None:
        """Return a key of `covp.hardware.job_unit.ERRORS` for inconsistent numbers, or None."""
        return None

    def macs(self, job: Any) -> int:
        """Return the multiply-accumulates of a job, or what ``macs_per_cycle`` counts."""
        return 0

    def traffic(self, job: Any, declared: Traffic) -> Traffic:
        """Return the bytes that a job moves: by default all operands, each once, and the result.

        Args:
            job: its numbers.
            declared: the bytes of the operands and the fetched registers, and of the result.

        Returns:
            With ``operands`` where it is not all of each: else the bytes' memory is not known.
        """
        return declared

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        """Return the time of a job: `covp.hardware.job_timing.UnitTiming` by default.

        It is called for jobs that run, for estimates and to time recorded jobs anew; so it may
        depend on nothing but the job's numbers, the bytes moved and the parameters.

        Args:
            job: ``job.NAME`` is an int or float for a number of the declared job.
            nbytes: moved through the memory port.
        """
        return self.unit_timing().job(self.macs(job), nbytes)

    def steps(self, job: Any) -> JobSteps | None:
        """Return what the unit's engines do in a job, for timelines; None: it is one engine."""
        return None

    def unit_timing(self) -> UnitTiming:
        """Return the default timing model with this instance's parameters, where it has them."""
        return unit_timing(self.values)

    def jobs(self, layer: Any, job: Any) -> Iterable[Any]:
        """Return the numbers of the jobs that the driver makes of a layer: one job by default.

        `lower`, `refine` or a driver that cut a layer into several need it for `estimate`;
        `JobValues.but` makes a job with other numbers.

        Args:
            layer: as `registers` gets it.
            job: the numbers of the whole layer.
        """
        return (job,)

    # -- called by the compiler; see `AcceleratorBackend` ---------------------------------------

    def layer(self, match: Match) -> Any:
        """Return the layer that `registers` and `accepts` get for a match.

        Raises:
            ModelError: the operator cannot be described.
            AcceleratorError: there are several operators; only the backend knows what they are
                together.
        """
        if len(match.ops) > 1:
            kinds = ", ".join(op.kind for op in match.ops)
            what = f"pattern {match.name} stands for {kinds}"
            raise self._wrong(match, f"{what}; override layer(match) to describe them as one")
        return typed(match.op)

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """Return the limits of `accepts` and of the registers."""
        try:
            layer = self.layer(match)
        except ModelError as error:
            return str(error)
        own: list[Limit] = []
        for limit in chain(self.types(match), self.accepts(layer)):
            own.append(limit)
            if not limit.holds:
                return own
        values = self._registers(match, layer)
        ranges = [
            Limit(
                number.name.lower().replace("_", " "),
                values[number.name],
                None if number.minimum == -np.inf else number.minimum,
                None if number.maximum == np.inf else number.maximum,
            )
            for number in self.job.numbers
        ]
        inside = all(limit.holds for limit in ranges)
        return own + ranges + (self._whole(match, values) if inside else [])

    def types(self, match: Match) -> Iterable[Limit]:
        """Check that tensors and result are of the types that the job declares."""
        given = zip(self.job.tensors, self.tensors(match), strict=True)
        for operand, tensor in (*given, (self.job.result, match.outputs[0])):
            if isinstance(tensor, Tensor):
                what = f"type of {operand.name}"
                yield Limit(what, tensor.dtype.name, one_of=(operand.dtype.name,))

    def _whole(self, match: Match, values: Mapping[str, Any]) -> list[Limit]:
        """Check that one job gives all of the layer, unless `lower` is overridden."""
        if type(self).lower is not Accelerator.lower:
            return []
        result = self.job.result
        try:
            count = result.count(self._numbers(values))
        except ValueError as error:
            raise self._wrong(match, str(error)) from error
        return [Limit(f"elements of {result.name}", match.outputs[0].size, at_most=count)]

    def estimate(self, match: Match) -> int | None:
        """Return the cycles of the layer's jobs by their `timing`; the driver's are not part of it.

        None where the layer has other types than the job, or states too little for its registers.
        """
        try:
            layer = self.layer(match)
        except ModelError:
            return None
        if not all(limit.holds for limit in self.types(match)):
            return None
        given = self.registers(layer)
        names = {part.name for part in (*self.job.image, *self.job.varying)} - {KEEP}
        if isinstance(given, Mapping) and not names <= set(given):
            return None
        given = self._check_registers(match, given)
        absent = {table.name for table in self.job.tables if given[table.name] is None}
        tensors = zip(self.job.tensors, self.tensors(match), strict=False)
        absent |= {operand.name for operand, tensor in tensors if isinstance(tensor, int)}
        if self.is_kept(match.op.name) and self.keeps not in absent:
            numbers = self._numbers(given).but(KEPT=1)
            return sum(self._cycles(job, absent) for job in self.jobs(layer, numbers))
        return sum(self._cycles(job, absent) for job in self.jobs(layer, self._numbers(given)))

    def _cycles(self, job: JobValues, absent: Collection[str]) -> int:
        """Return the cycles of a job without some of the optional operands."""
        traffic = self.traffic(job, self.job.traffic(job, absent))
        if getattr(job, "KEPT", 0):
            traffic = traffic.without(self.keeps, self._kept_operand.nbytes(job))
        return self.timing(job, traffic.nbytes).cycles

    def lower(self, match: Match) -> Step | Sequence[Step]:
        """Lower a layer to one call of the driver."""
        values = self._registers(match, self.layer(match))
        numbers = self._numbers(values)
        tensors = self.tensors(match)
        words: list[tuple[str, int | Constant]] = []
        try:
            for part in self.job.image:
                if isinstance(part, Operand):
                    table = checked_table(part, numbers, values[part.name])
                    words.append((part.name, _table_word(part, table)))
                else:
                    words.append((part.name, part.word(values[part.name])))
            operands = (*self.job.tensors, self.job.result)
            check_tensors(operands, numbers, [*tensors, match.outputs[0]])
        except ValueError as error:
            raise self._wrong(match, str(error)) from error
        image = RegisterImage("image", tuple(words))
        varying = [number.word(values[number.name]) for number in self.job.varying]
        arguments: list[Argument] = [image, *tensors, match.outputs[0], *varying]
        return CCall(f"{self.name}_run", f"{self.name}.h", tuple(arguments))

    def driver(self, base: int) -> Mapping[str, str]:
        """Generate the driver's files from the register map."""
        sleep = self.values.get("wait") == "sleep"
        return driver_files(self.name, self.job.registers, self.job, base, sleep)

    def overlaps(self, function: str) -> tuple[str, str] | None:
        """Return the functions that start the generated driver and wait for it."""
        own = type(self).driver is Accelerator.driver and function == f"{self.name}_run"
        return (f"{self.name}_begin", f"{self.name}_end") if own else None

    def make_peripheral(self) -> DeclaredUnit:
        """Return a new hardware model with this instance's parameters, or its RTL.

        Raises:
            UsageError: there is no such Verilog, or no module in it.
            AcceleratorError: its ports are not understood.
            ToolchainError: Verilator is missing or rejects it.
        """
        chosen = chosen_rtl(self, self.rtl)
        if chosen is None:
            return DeclaredUnit(self)
        file = Path(str(self.values[RTL_WAVE.name]))
        library = build_unit(self.name, *chosen, wave=file.suffix)
        wave = UnitWave(file) if file.suffix else None
        ratio = float(self.values.get("clock_ratio", 1.0))
        checks = bool(self.values[RTL_CHECK.name])
        is_exact = self.values[RTL_MODE.name] == "exact"
        if is_exact and checks:
            raise UsageError(f"accelerator {self.name}: rtl_check is for rtl_mode=fast")
        kind = ExactRtlUnit if is_exact else RtlUnit
        return kind(self, UnitModel(library, chosen[0].latency, wave), ratio, checks)

    def against_rtl(self) -> Self:
        """Return the same unit as its RTL, each of whose jobs is compared with the model."""
        return with_rtl(self, rtl_mode="fast", rtl_check=True)

    def _numbers(self, values: Mapping[str, Any]) -> JobValues:
        return JobValues(**{number.name: values[number.name] for number in self.job.numbers})

    def _registers(self, match: Match, layer: Any) -> Mapping[str, Any]:
        """Return the result of `registers`, checked."""
        return self._check_registers(match, self.registers(layer))

    def _check_registers(self, match: Match, given: object) -> Mapping[str, Any]:
        if self.keeps and isinstance(given, Mapping):
            given = {**given, KEEP: self.place_of(match.op.name)}
        try:
            return checked_registers(self.job, given)
        except ValueError as error:
            raise self._wrong(match, str(error)) from error

    def _wrong(self, match: Match, what: str) -> AcceleratorError:
        return AcceleratorError(f"accelerator {self.name}, layer {match.op.name}: {what}")

    def tensors(self, match: Match) -> list[Argument]:
        """Return the arguments of the driver for the job's tensors: by name or else by position.

        An address of 0 is for optional ones that a layer does not have.
        """
        op_inputs = [tensor for tensor in match.op.inputs if tensor is not None]
        values = op_inputs if len(match.ops) == 1 else match.inputs
        found: list[Argument] = []
        for position, operand in enumerate(self.job.tensors):
            tensor = match.bindings.get(operand.name.lower())
            if tensor is None and position < len(values):
                tensor = values[position]
            if tensor is None and not operand.optional:
                raise self._wrong(match, f"nothing in the match stands for {operand.name}")
            found.append(0 if tensor is None else tensor)
        return found


def _declare_kept(cls: type[Accelerator]) -> None:
    """Give a class whose table may stay the number and the parameter for it."""
    if cls.keeps not in {table.name for table in cls.job.tables}:
        raise TypeError(f"keeps is {cls.keeps!r}, which is not a table of the job")
    if KEEP not in {number.name for number in cls.job.numbers}:
        what = f"Place at which {cls.keeps} stays, counted from 1 in words; 0: it does not stay."
        cls.job = cls.job.with_number(number(KEEP, 0, MOST_KEPT // PLACE_BYTES, what))
    if WEIGHT_MEMORY not in cls.parameters:
        cls.parameters = (*cls.parameters, WEIGHT_MEMORY)
    cls.caches_constants = True


def place_tables(offers: Iterable[tuple[float, int, str]], room: int) -> dict[str, int]:
    """Return the place of each table that stays: the best ones for which there is room.

    Args:
        offers: cycles saved for each byte, bytes, name.
        room: bytes of the memory.
    """
    places: dict[str, int] = {}
    first = 0
    for _, nbytes, name in sorted(offers, key=lambda offer: (-offer[0], offer[1], offer[2])):
        if first + nbytes <= room:
            places[name] = first // PLACE_BYTES + 1
            first += -(-nbytes // PLACE_BYTES) * PLACE_BYTES
    return places


def _table_word(operand: Operand, table: NDArray[Any] | None) -> int | Constant:
    return 0 if table is None else Constant(operand.name.lower(), table)


def _timing_by_work(unit: Any, job: Any, nbytes: int) -> JobTiming:
    """Time jobs by ``work(job, nbytes, port)``, for a class that overrides that."""
    timing: JobTiming = unit.work(job, nbytes, unit.unit_timing().port)
    return timing
