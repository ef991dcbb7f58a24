"""`TimingModel`: the cycles of a core's instructions, read from data files.

The file ``timing.yaml`` of a core (`covp.chip.cores`) describes an in-order pipeline by a few
numbers for classes of instructions (`covp.device.timing.instructions`); ``pipeline.h`` applies them
to straight-line code. Every figure that comes of it carries the model's name, what it assumes and
its known error.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from covp.base import plugins
from covp.chip.cores import Core, timing_files
from covp.chip.platform_file.model import ZERO_WAITS
from covp.device.timing.instructions import (
    NO_INSTRUCTIONS,
    InstructionClass,
    InstructionPattern,
    InstructionSet,
    load_instructions,
    read_yaml,
)
from covp.errors import PlatformError, near_misses

Cycles = Annotated[int, msgspec.Meta(ge=0, le=1000)]
DataWait = Literal["access", "next", "use", "load"]
Correction = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]
Offset = Annotated[int, msgspec.Meta(ge=-30, le=30)]
MAX_AHEAD, MAX_UNITS, MOST_TARGETS = 7, 12, 16


@dataclass(frozen=True, eq=False)
class Rule:
    """The time of the instructions of one pattern. Compared by identity, which is quick.

    Attributes:
        kind: their class.
        pattern: which.
        cycles: until the next one can issue; one more for each register of the pattern's list.
        latency: further cycles until another instruction can use the result.
        early: cycles before its issue in which the operands are needed.
        late: cycles after its issue in which the operands of the letter u are needed.
        taken: extra cycles when a conditional branch is taken.
        mispredicted: extra cycles when it goes the way that was not predicted.
        alone: does not issue together with another one.
        decoded: it is done when it is decoded, while the one before it still executes.
        second: it may issue after another one in the same cycle.
        sooner: it is done a cycle sooner where its operands were there a cycle before it issues.
        forwards: those that take it get its result a cycle sooner.
        takes: it uses what such instructions forward.
        passes: it leaves while those before it are held up, and lets the next one follow.
        by_places: a cycle for every place of the constant of a shift.
        busy: cycles after its issue in which no other instruction on floats issues.
        settles: further cycles until a custom instruction can follow.
        unit, shares: numbers of the units, see `TimingModel.slots`.
    """

    kind: InstructionClass
    pattern: InstructionPattern
    cycles: int = 1
    latency: int = 0
    early: int = 0
    late: int = 0
    taken: int = 0
    mispredicted: int = 0
    alone: bool = False
    decoded: bool = False
    second: bool = True
    sooner: bool = False
    forwards: bool = False
    takes: bool = False
    passes: bool = False
    by_places: bool = False
    busy: int = 0
    settles: int = 0
    unit: int = 0
    shares: int = 0


class OperandCycles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Cycles that the values of operands add to those of the class, or take away: negative.

    From the sizes of the operands in bits: of a negative number with its sign.

    Attributes:
        constant: whatever they are.
        divisor_zeros: for every leading zero of the divisor.
        dividend_bits: for every bit of the dividend.
        quotient_bits: for every bit that the dividend has more than the divisor, and one.
        quotient: where there are such bits.
        quotient_step: one for each so many of them; 0: none.
        zero_divisor: instead of all these where the divisor is 0; None: no exception.
        amount: for every place of a shift by a register.
    """

    constant: Correction = 0
    divisor_zeros: Offset = 0
    dividend_bits: Offset = 0
    quotient_bits: Offset = 0
    quotient: Correction = 0
    quotient_step: Annotated[int, msgspec.Meta(ge=0, le=32)] = 0
    zero_divisor: Correction | None = None
    amount: Cycles = 0


class Fetch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The instruction fetch.

    Attributes:
        bytes: of one fetch, aligned to its size.
        ahead: fetches that are requested or held before their instructions issue; an instruction
            may lie in two.
        keeps: a fetch is held until its last bytes are decoded, not just its first.
        commits: a fetch that was requested is done, even if a jump comes before it.
        pairs: a short instruction in the second half of a fetch waits for the next fetch, unless it
            was jumped to.
        lingers: an instruction stays in the decoder until the next one comes; where it reads what
            it writes it waits there for its own result, and lets nothing in.
        counts: a fetch is requested while no whole instruction waits for the decoder, or one and
            no fetch is under way, however many fetches are ahead.
    """

    bytes: Literal[4, 8, 16]
    ahead: Annotated[int, msgspec.Meta(ge=2, le=MAX_AHEAD)]
    keeps: bool = False
    commits: bool = False
    pairs: bool = False
    lingers: bool = False
    counts: bool = False


@dataclass(frozen=True)
class TimingModel:
    """The timing model of a microarchitecture.

    Attributes:
        name: of its file.
        source: where the figures come from.
        assumes: what they leave out, beside what the platform says of its memory; e.g. "an ideal
            core".
        errors: the largest known relative error by the memory it was found with, in the words of
            `Platform.wait_states`: {"zero wait states": 0.003}; empty where it was never checked.
        instructions: classes of the instruction set.
        rules: the first one that matches an instruction decides; without one it takes a cycle.
        width: instructions that issue in a cycle.
        slots: ... of them for each unit, by number.
        fetch: None where instructions are always there in time.
        predicts: "backward": branches to lower addresses are predicted as taken, others not.
        pipelined_accesses: an access directly after a load that it does not depend on takes a
            cycle less.
        overwrites_wait: a result that is overwritten, but by a load, is waited for as if it were
            read.
        executes_later: instructions execute in a stage after the one in which they are decoded,
            with their operands read; the next one is decoded meanwhile.
        data_wait: a wait of data memory delays "access", the load or store itself; "next", the
            instruction after it; "use", the use of what is loaded; "load", the instruction after a
            load, but of stores only the next access.
        period: cycles from an instruction of a unit to the next one, at least, by number.
        requests: without a `fetch`, cycles from the issue of an instruction to the word after it,
            which it requests meanwhile: wait states pass with what it takes longer, unless it
            accesses memory, and before a branch can jump. 0: words are requested one by one.
        split: further cycles of an instruction that crosses a word.
        misaligned: further cycles of an access that crosses a word.
        aligned_parts: a misaligned access is made of aligned ones, of bytes and halfwords where it
            has to be: ``misaligned`` cycles for each but the first.
        transfers: registers of a list that are loaded or stored in a cycle.
        after_store: further cycles of a load directly after a store.
        reloads: ... of a load of what was stored up to two cycles before, in a data cache.
        targets: entries of a branch target buffer, which has the branches to lower addresses that
            were taken last: these are predicted as taken, and what they lead to is fetched as if it
            came next; all others as not taken.
        targets_later: a branch in the word that a jump leads to is none of these, where that is
            fetched without wait states.
        late_redirects: a jump to a register, a mispredicted branch and such a load take a cycle
            more where an instruction after them waits in the decoder.
        stands_still: an operand that comes later than the instruction after a multiplication, a
            division or a load that waits could issue comes as much later as these take.
        older_results: what reads a register waits for all results that are to be written to it.
        short_pairs: only instructions of two bytes issue together.
        operands: class to cycles by the values of operands.
    """

    name: str
    source: str
    assumes: str
    errors: Mapping[str, float] = field(hash=False)
    instructions: InstructionSet
    rules: tuple[Rule, ...]
    width: int = 1
    slots: tuple[int, ...] = ()
    fetch: Fetch | None = None
    predicts: Literal["", "backward"] = ""
    pipelined_accesses: bool = False
    overwrites_wait: bool = False
    executes_later: bool = False
    data_wait: DataWait = "access"
    period: tuple[int, ...] = ()
    requests: int = 0
    split: int = 0
    misaligned: int = 0
    aligned_parts: bool = False
    transfers: int = 1
    after_store: int = 0
    reloads: int = 0
    targets: int = 0
    targets_later: bool = False
    late_redirects: bool = False
    stands_still: bool = False
    older_results: bool = False
    short_pairs: bool = False
    operands: Mapping[str, OperandCycles] = field(default_factory=dict, hash=False)


class TimingFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of ``timing.yaml``: `TimingModel`, and per class of instructions `Rule`.

    ``name``: of the model; without it that of the core, of a file of another name this one.
    ``error``: the largest known one, with ``memory``; ``errors``: those with other memories. Those
    that benchmarks/accuracy.py finds are in ``accuracy.yaml`` beside the file.
    ``instructions``: the instruction set; None: all instructions take a cycle. ``slots``: unit to
    instructions that it takes in a cycle; others take any number. ``period``: unit to cycles.
    """

    source: str
    name: str = ""
    assumes: str = ""
    error: float | None = None
    memory: str = ZERO_WAITS
    errors: dict[str, float] = {}
    instructions: str | None = None
    cycles: dict[str, Cycles] = {}
    latency: dict[str, Cycles] = {}
    early: dict[str, Cycles] = {}
    late: dict[str, Cycles] = {}
    taken: dict[str, Cycles] = {}
    mispredicted: dict[str, Cycles] = {}
    alone: tuple[str, ...] = ()
    decoded: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    sooner: tuple[str, ...] = ()
    forwards: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    by_places: tuple[str, ...] = ()
    busy: dict[str, Cycles] = {}
    settles: dict[str, Cycles] = {}
    width: Annotated[int, msgspec.Meta(ge=1, le=4)] = 1
    slots: dict[str, Annotated[int, msgspec.Meta(ge=1, le=4)]] = {}
    fetch: Fetch | None = None
    predicts: Literal["", "backward"] = ""
    pipelined_accesses: bool = False
    overwrites_wait: bool = False
    executes_later: bool = False
    data_wait: DataWait = "access"
    period: dict[str, Cycles] = {}
    requests: Cycles = 0
    split: Cycles = 0
    misaligned: Cycles = 0
    aligned_parts: bool = False
    transfers: Annotated[int, msgspec.Meta(ge=1, le=4)] = 1
    after_store: Cycles = 0
    reloads: Cycles = 0
    targets: Annotated[int, msgspec.Meta(ge=0, le=MOST_TARGETS)] = 0
    targets_later: bool = False
    late_redirects: bool = False
    stands_still: bool = False
    older_results: bool = False
    short_pairs: bool = False
    operands: dict[str, OperandCycles] = {}

    @property
    def by_class(self) -> Mapping[str, Iterable[str]]:
        """The keys that name classes of instructions."""
        names = (
            "cycles",
            "latency",
            "early",
            "late",
            "taken",
            "mispredicted",
            "alone",
            "decoded",
            "second",
            "sooner",
            "forwards",
            "takes",
            "passes",
            "by_places",
            "busy",
            "settles",
            "operands",
        )
        return {name: getattr(self, name) for name in names}


_UNIT = TimingFile(source="one cycle per instruction", name="unit", assumes="an ideal core")


def model_names() -> list[str]:
    """Return the names of the timing models that come with covp."""
    return sorted([*timing_files(), _UNIT.name])


def load_timing(name: str) -> TimingModel:
    """Return a timing model by name, by the path of its YAML file, or "path/to/file.py:NAME".

    NAME is a `TimingModel` in a Python file, or a class or function without parameters that gives
    one.

    Raises:
        PlatformError: unknown name, unreadable file, or a wrong key; the text says which.
    """
    if ".py:" in name:
        return _of_python(*name.rsplit(":", 1))
    return read_model(Path(name)) if _is_path(name) else _load_timing(name)


def _of_python(path: str, name: str) -> TimingModel:
    """Return a user's own, see `load_timing`."""
    if not Path(path).is_file():
        raise PlatformError("no such timing model file", where=path)
    module = plugins.load_file(path, PlatformError)
    if not hasattr(module, name):
        known = near_misses(name, (one for one in vars(module) if not one.startswith("_")))
        raise PlatformError(f"there is no {name}: {known}", where=path)
    found = getattr(module, name)
    if callable(found):
        found = plugins.call_hook(path, name, found, error=PlatformError)
    if not isinstance(found, TimingModel):
        raise PlatformError(f"{name} is a {type(found).__name__}, not a TimingModel", where=path)
    return found


def load_file(name: str) -> TimingFile:
    """Return the content of a model's file, by name or path.

    Raises:
        PlatformError: unknown name, unreadable file, or a wrong key; the text says which.
    """
    if name == _UNIT.name:
        return _UNIT
    if not _is_path(name) and name not in timing_files():
        raise PlatformError(
            f"unknown timing model {name!r}:", hint=near_misses(name, model_names())
        )
    return read_yaml(Path(name) if _is_path(name) else timing_files()[name], TimingFile)


@functools.cache
def _load_timing(name: str) -> TimingModel:
    path = timing_files().get(name)
    return read_model(path) if path else make_model(name, load_file(name))


def _is_path(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def instruction_sets(core: Core) -> tuple[str, ...]:
    """Return the sets of classes that models of a core may use."""
    return ("thumb",) if core.architecture == "arm" else ("rv32", "rv32i")


def core_timing(core: Core) -> TimingModel:
    """Return the timing model of a core; one cycle per instruction where there is none.

    Raises:
        PlatformError: there is no such model, or it is of another instruction set.
    """
    model = load_timing(core.timing or _UNIT.name)
    if core.content and core.timing in timing_files():  # what is known is the error of another core
        model = replace(model, errors={})
    known = map(load_instructions, instruction_sets(core))
    if model.instructions not in (NO_INSTRUCTIONS, *known):
        raise PlatformError(
            f"timing: {core.timing}: this model is of another instruction set than {core.name}"
        )
    if model.instructions == NO_INSTRUCTIONS:
        model = replace(model, rules=_jump_rules(instruction_sets(core)[0]))
    return model


@functools.cache
def _jump_rules(known: str) -> tuple[Rule, ...]:
    """Return rules by which jumps take a cycle: their targets are jumped to with any model."""
    kinds = (
        msgspec.structs.replace(one, access="", cause="issue")
        for one in load_instructions(known).classes
        if one.jumps
    )
    return tuple(
        Rule(kind, replace(_pattern(text), list=0)) for kind in kinds for text in kind.patterns
    )


def read_model(path: Path) -> TimingModel:
    """Read and check the file of a timing model. Raises PlatformError."""
    file = read_yaml(path, TimingFile)
    of_core = path.name == "timing.yaml"
    model = make_model(file.name or (path.parent.name if of_core else path.stem), file, str(path))
    known = path.with_name("accuracy.yaml")
    if of_core and known.is_file():
        return replace(model, errors={**model.errors, **read_yaml(known, dict[str, float])})
    return model


def make_model(name: str, model: TimingFile, where: str = "") -> TimingModel:
    """Return the timing model that the content of a ``timing.yaml`` describes.

    Args:
        name: of the model.
        model: the content.
        where: for messages: the file; by default the name.

    Raises:
        PlatformError: it names an instruction set, a class or a unit that there is none of.
    """
    where = where or name
    try:
        known = load_instructions(model.instructions) if model.instructions else NO_INSTRUCTIONS
    except PlatformError as error:
        raise PlatformError(f"{where}: {error}") from None
    _check_names(where, model, known)
    if model.targets and model.predicts:
        raise PlatformError(f"{where}: targets and predicts are two ways to predict; leave one out")
    numbers = {unit: number for number, unit in enumerate(known.units, start=1)}
    rules = tuple(
        rule
        for position, one in enumerate(known.classes)
        for rule in _rules(
            model.instructions or "",
            position,
            (*_figures(model, one), numbers.get(one.unit, 0), numbers.get(one.shares, 0)),
        )
    )
    units = ("", *known.units)
    return TimingModel(
        name=name,
        source=model.source,
        assumes=model.assumes,
        errors=model.errors | ({} if model.error is None else {model.memory: model.error}),
        instructions=known,
        rules=rules,
        width=model.width,
        slots=tuple(model.slots.get(unit, model.width) for unit in units),
        fetch=model.fetch,
        predicts=model.predicts,
        pipelined_accesses=model.pipelined_accesses,
        overwrites_wait=model.overwrites_wait,
        executes_later=model.executes_later,
        data_wait=model.data_wait,
        period=tuple(model.period.get(unit, 0) for unit in units),
        requests=model.requests,
        split=model.split,
        misaligned=model.misaligned,
        aligned_parts=model.aligned_parts,
        transfers=model.transfers,
        after_store=model.after_store,
        reloads=model.reloads,
        targets=model.targets,
        targets_later=model.targets_later,
        late_redirects=model.late_redirects,
        stands_still=model.stands_still,
        older_results=model.older_results,
        short_pairs=model.short_pairs,
        operands=model.operands,
    )


def _check_names(where: str, model: TimingFile, known: InstructionSet) -> None:
    for key, names in model.by_class.items():
        for name in names:
            if name not in known.class_names:
                raise PlatformError(
                    f"{where}: {key}.{name}: no such class of instructions:",
                    hint=near_misses(name, known.class_names),
                )
    for key, units in (("slots", model.slots), ("period", model.period)):
        for unit in units:
            if unit not in known.units:
                raise PlatformError(
                    f"{where}: {key}.{unit}: no such unit:", hint=near_misses(unit, known.units)
                )


_pattern = functools.cache(InstructionPattern.of)


def _figures(model: TimingFile, one: InstructionClass) -> tuple[Any, ...]:
    """Return a class's fields of `Rule` from `cycles` to `settles`, as the model says."""

    def of(cycles: Mapping[str, int], default: int = 0) -> int:
        return cycles.get(one.name, cycles.get(one.like, default))

    def includes(classes: Collection[str]) -> bool:
        return one.name in classes or one.like in classes

    return (
        of(model.cycles, 1),
        of(model.latency),
        of(model.early),
        of(model.late),
        of(model.taken),
        of(model.mispredicted),
        includes(model.alone),
        includes(model.decoded),
        not model.second or includes(model.second),
        includes(model.sooner),
        includes(model.forwards),
        includes(model.takes),
        includes(model.passes),
        includes(model.by_places),
        of(model.busy),
        of(model.settles),
    )


@functools.lru_cache(maxsize=4096)
def _rules(known: str, position: int, figures: tuple[Any, ...]) -> tuple[Rule, ...]:
    """Return the rules of a class: the same objects for the same figures."""
    kind = load_instructions(known).classes[position]
    patterns = map(_pattern, kind.patterns)
    return tuple(Rule(kind, pattern, *figures) for pattern in patterns)
