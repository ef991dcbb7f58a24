"""`TiledAccelerator`: an array with memories of its own that takes commands, in one class.

What the array needs for a tile is all that has to be said::

    class Array(TiledAccelerator):
        '''A weight-stationary systolic array of 16 x 16.'''

        name = "array"

        def cycles(self, tile):
            folds = -(-tile.depth // 16) * -(-tile.channels // 16)
            return tile.groups * folds * (tile.pixels + 46)

The compiler cuts a layer into tiles that the memories have room for (`tiling`), writes the commands
(`commands`) and gives them to the unit as a table. The unit executes them: it loads, multiplies
and stores, and its time is that of its engines, each with what it has to wait for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.call import Argument
from covp.accelerator.declared import KEEP, TECHNOLOGY, TIMING, WAIT, Accelerator
from covp.accelerator.layer_registers import product_values
from covp.accelerator.limits import Limit
from covp.accelerator.parameters import Parameter
from covp.accelerator.tiled.commands import (
    ENGINES,
    MOST_ARRAYS,
    MOST_BANKS,
    NAMES,
    NONE,
    OPERANDS,
    Memory,
    Queue,
    Stream,
)
from covp.accelerator.tiled.engines import EngineTime, Port, stored_channels, time_commands
from covp.accelerator.tiled.nest import LoopNest, Tile, loop_nest
from covp.accelerator.tiled.tile_program import Tiling, describe_tiling, make_commands
from covp.accelerator.tiled.tiling import ORDERS, Rules, best_tiling
from covp.errors import AcceleratorError, ModelError
from covp.graph.graph import Op
from covp.graph.pattern import Match
from covp.graph.typed import QuantizedMatMul, named_values, typed
from covp.graph.typed_convolution import CONVOLUTIONS
from covp.hardware.arithmetic import requantize
from covp.hardware.job import Job, JobValues, number, result, table, tensor
from covp.hardware.job_timing import JobSteps, JobTiming, Traffic, rounded_up
from covp.hardware.job_unit import JobError

_WHOLE = 1 << 24
_LONGEST_TILE = 1 << 40


class TilePlan(NamedTuple):
    """How a layer is done: its tiles, and the words of its commands."""

    tiling: Tiling
    words: NDArray[np.uint32]


@dataclass(frozen=True)
class TiledLayer:
    """A layer as `registers` and `accepts` of a tiled accelerator get it.

    Attributes:
        op: its operator.
        typed: it as plain numbers, see `covp.graph.typed.typed`.
        nest: its loops; a text: why it has none.
    """

    op: Op
    typed: Any
    nest: LoopNest | str


TILING = (
    Parameter("scratchpad", 65536, "bytes for tiles of input and weights", 64, 1 << 24),
    Parameter("accumulators", 16384, "bytes for sums of 32 bits", 64, 1 << 24),
    Parameter("banks", 4, "banks of the scratchpad, one engine at a time in each; 0: no limit",
              0, MOST_BANKS),
    Parameter("arrays", 1, "equal arrays, which take tiles as they are free", 1, MOST_ARRAYS),
    Parameter("buffers", 2, "tiles of an operand in the unit: 2 load one while one is used", 1, 2),
    Parameter("stationary", "any", "operand whose tile stays while others change",
              choices=("any", *ORDERS)),
    Parameter("tile_pixels", 0, "most pixels of a tile; 0: as many as pay", 0, _WHOLE),
    Parameter("tile_channels", 0, "most output channels of a tile; 0: as many as pay", 0, _WHOLE),
    Parameter("tile_depth", 0, "most products of a sum in a tile; 0: as many as pay", 0, _WHOLE),
    Parameter("queue", 16, "commands under way at a time", 1, 64),
    Parameter("issue_cycles", 1, "cycles from one command to the next", 0, 1 << 16),
    Parameter("transfer_cycles", 4, "cycles of a load or store before its first byte", 0, 1 << 16),
    Parameter("dma_axes", 2, "axes that one load or store walks through", 1, 6),
)  # fmt: skip
"""Parameters of tiled accelerators beside those of the memory port."""
_PORT = tuple(replace(p, timing=False) for p in TIMING[1:])  # they decide how layers are cut


class TiledAccelerator(Accelerator):
    """An array of multipliers with memories of its own. Subclasses set `name` and `cycles`.

    It computes int8 convolutions, depthwise ones, fully connected layers and products of two
    tensors. Three engines execute the commands of a layer: one loads tiles, one multiplies them,
    one requantizes and stores sums. Each takes its commands in order, and waits for another where
    they touch the same bytes of a memory.

    Attributes:
        memories: the parameter that has the bytes of the memory of INPUT, WEIGHTS and OUTPUT (its
            sums); operands with the same parameter share a memory.
    """

    operators: ClassVar[tuple[str, ...]] = (*CONVOLUTIONS, "BATCH_MATMUL")
    keeps: ClassVar[str] = "WEIGHTS"
    memories: ClassVar[Mapping[str, str]] = {
        "INPUT": "scratchpad",
        "WEIGHTS": "scratchpad",
        "OUTPUT": "accumulators",
    }
    parameters: ClassVar[tuple[Parameter, ...]] = (*TILING, *_PORT, WAIT, TECHNOLOGY)
    job: ClassVar[Job] = Job(
        tensor("INPUT", "int8", lambda job: job.INPUT_ELEMENTS, "The activations."),
        tensor(
            "SECOND",
            "int8",
            lambda job: job.WEIGHT_ELEMENTS,
            "In the place of WEIGHTS, where they come at run time.",
            optional=True,
        ),
        table(
            "WEIGHTS",
            "int8",
            lambda job: job.WEIGHT_ELEMENTS,
            "As the model has them.",
            optional=True,
        ),
        table("BIAS", "int32", lambda job: job.CHANNELS),
        table("MULTIPLIER", "int32", lambda job: job.CHANNELS),
        table("SHIFT", "int32", lambda job: job.CHANNELS, "-31 to 30, positive to the left."),
        table("COMMANDS", "uint32", lambda job: job.COMMAND_WORDS, "What is executed."),
        result("OUTPUT", "int8", lambda job: job.OUTPUT_ELEMENTS),
        number("INPUT_ELEMENTS", 1, _WHOLE),
        number("WEIGHT_ELEMENTS", 1, _WHOLE),
        number("OUTPUT_ELEMENTS", 1, _WHOLE),
        number("COMMAND_WORDS", 1, _WHOLE),
        number("CHANNELS", 1, 0xFFFF, "Those of a row of the result."),
        number("INPUT_ZERO_POINT", -128, 127),
        number("WEIGHT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127, "Lowest result."),
        number("HIGH", -128, 127, "Highest result."),
    )

    # -- what a subclass says --------------------------------------------------------------------

    @abstractmethod
    def cycles(self, tile: Tile) -> int:
        """Return the cycles of the array for a tile, whose operands are in its memories.

        Args:
            tile: a matrix product, or several one after the other.
        """

    def multipliers(self) -> int | None:
        """Return how many products an array computes in a cycle, at most; None: it is not said.

        A tile for which `cycles` gives fewer than its products need is an error.
        """
        return None

    # -- the unit --------------------------------------------------------------------------------

    def check(self, job: JobValues) -> str | None:
        """The result consists of whole rows of channels."""
        if job.OUTPUT_ELEMENTS % job.CHANNELS:
            return "size"
        return "range" if job.LOW > job.HIGH else None

    def compute(self, job: Any) -> NDArray[Any]:
        """Execute the commands; requantize all sums."""
        if (job.WEIGHTS is None) == (job.SECOND is None):
            raise JobError("address", "one of WEIGHTS and SECOND is needed, and not both")
        weights = job.WEIGHTS if job.SECOND is None else job.SECOND
        zero_points = (job.INPUT_ZERO_POINT, job.WEIGHT_ZERO_POINT)
        sums, stored = self.stream(job).execute((job.INPUT, weights), zero_points)
        if not stored.all():
            raise JobError("size", f"no command stores element {int(stored.argmin())} of OUTPUT")
        rows = sums.reshape(-1, job.CHANNELS) + job.BIAS
        return requantize(rows, job.MULTIPLIER, job.SHIFT, job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH)

    def macs(self, job: Any) -> int:
        """Return the products of all commands, those with padding included."""
        return self.stream(job).products()

    def traffic(self, job: Any, declared: Traffic) -> Traffic:
        """Return what the commands move: tiles, and the channels' numbers with each store.

        Args:
            job: its numbers, and COMMANDS as an array.
            declared: not looked at.
        """
        stream = self.stream(job)
        channels = int(stored_channels(stream, job.CHANNELS).sum())
        moved = {
            "INPUT": stream.moved(0),
            "WEIGHTS" if getattr(job, "SECOND", None) is None else "SECOND": stream.moved(1),
            **dict.fromkeys(("BIAS", "MULTIPLIER", "SHIFT"), 4 * channels),
            "COMMANDS": 4 * job.COMMAND_WORDS,
        }
        registers = 4 * len(self.job.image)
        return Traffic(registers + sum(moved.values()), stream.moved(2), moved)

    def timing(self, job: Any, nbytes: int) -> JobTiming:
        """Return the time of a job: from the first command to the end of the last engine.

        Args:
            job: its numbers, and COMMANDS as an array.
            nbytes: not looked at: the commands say what is moved.
        """
        time = self.engine_time(job)
        registers = int(self._port().cycles(4 * len(self.job.image)))
        port = registers + time.port
        startup = rounded_up(self._of("startup_cycles") * self._real("clock_ratio"))
        gaps = registers + time.total - max(time.array, port)
        return JobTiming(time.array, port, startup, gaps)

    def steps(self, job: Any) -> JobSteps:
        """Return when each engine executes which command."""
        time = self.timing(job, 0)
        commands = self.stream(job).commands
        commands = commands[commands["engine"] != NONE]
        first = time.startup + int(self._port().cycles(4 * len(self.job.image)))
        engine = commands["engine"].astype(np.int64)
        further = commands["array"] > 0
        engine[further] = len(ENGINES) - 1 + commands["array"][further]
        others = [f"array {n}" for n in range(2, self._of("arrays") + 1)]
        return JobSteps(
            (*ENGINES, *others),
            NAMES,
            engine,
            commands["opcode"].astype(np.int64),
            commands["start"].astype(np.int64) + first,
            commands["end"].astype(np.int64) + first,
        )

    def engine_time(self, job: Any) -> EngineTime:
        """Return how long the commands of a job take, and each engine.

        Args:
            job: its numbers, and COMMANDS as an array.
        """
        queue = Queue(self._of("queue"), self._of("issue_cycles"), self._of("arrays"))
        kept = bool(getattr(job, "KEPT", 0))
        return time_commands(
            self.stream(job), self._tile_cycles, self._port(), queue, job.CHANNELS, kept
        )

    def _port(self) -> Port:
        slowdown = 1 + self._real("contention")
        return Port(self._of("bytes_per_cycle"), slowdown, self._of("transfer_cycles"))

    def hardware_size(self) -> tuple[int, float] | None:
        """Return the multipliers, and the memories in KB; None where the former are not known."""
        multipliers = self._checked_multipliers()
        total = self.kept_bytes + sum(memory.nbytes for memory in self._memory_set())
        return None if multipliers is None else (multipliers * self._of("arrays"), total / 1024)

    def _checked_multipliers(self) -> int | None:
        found: object = self.multipliers()
        if found is None or (isinstance(found, int | np.integer) and found >= 1):
            return None if found is None else int(found)
        raise AcceleratorError(f"{self.name}: multipliers() gave {found!r:.80}, not a count")

    def _tile_cycles(self, tile: Tile) -> int:
        """Return the cycles of the core for a tile.

        Raises:
            AcceleratorError: they are no count, or too few for the multipliers.
        """
        cycles: Any = self.cycles(tile)
        is_number = isinstance(cycles, Real) and not isinstance(cycles, bool | np.bool_)
        if not is_number or not 0 <= cycles <= _LONGEST_TILE:
            raise AcceleratorError(f"{self.name}: cycles() gave {cycles!r:.80}, not a count")
        multipliers = self._checked_multipliers()
        if multipliers is not None and cycles * multipliers < tile.products:
            raise AcceleratorError(
                f"{self.name}: cycles() gave {cycles} for {tile}, whose {tile.products} products "
                f"take {-(-tile.products // multipliers)} with {multipliers} multipliers"
            )
        return int(rounded_up(cycles * self._real("clock_ratio")))

    def stream(self, job: Any) -> Stream:
        """Return the decoded commands of a job.

        Args:
            job: its numbers, and COMMANDS as an array.
        """
        sizes = (job.INPUT_ELEMENTS, job.WEIGHT_ELEMENTS, job.OUTPUT_ELEMENTS)
        return _decode(job.COMMANDS.tobytes(), sizes, tuple(self._memories().items()))

    def _memories(self) -> dict[str, Memory]:
        if set(self.memories) != set(OPERANDS):
            raise AcceleratorError(
                f"{self.name}: `memories` is of {', '.join(self.memories)}; {', '.join(OPERANDS)} "
                "are needed"
            )
        banks = {self.memories["INPUT"], self.memories["WEIGHTS"]}
        return {
            name: Memory(own, self._of(own), self._of("banks") if own in banks else 0)
            for name, own in self.memories.items()
        }

    def _memory_set(self) -> list[Memory]:
        return list(dict.fromkeys(self._memories().values()))

    def _of(self, parameter: str) -> int:
        if parameter not in self.values:
            raise AcceleratorError(
                f"{self.name}: it needs a parameter {parameter!r}: one that `memories` names, or "
                "of TiledAccelerator.parameters"
            )
        return int(self.values[parameter])

    def _real(self, parameter: str) -> float:
        return float(self.values[parameter])

    # -- the compiler ----------------------------------------------------------------------------

    def layer(self, match: Match) -> TiledLayer:
        """Return the layer with its loops."""
        return TiledLayer(match.op, typed(match.op), loop_nest(match.op))

    def accepts(self, layer: TiledLayer) -> Iterable[Limit]:
        """Layers that are sums of products, and tiles of which the memories have room for."""
        if isinstance(layer.nest, str):
            yield Limit("loops", layer.nest, one_of=("a sum of products",))
            return
        memories = ", ".join(f"{memory.nbytes} B of {memory.name}" for memory in self._memory_set())
        tiles = "too small or too many" if self._find_plan(layer) is None else "known"
        yield Limit(f"tiles for {memories}", tiles, one_of=("known",))

    def registers(self, layer: TiledLayer) -> Mapping[str, Any]:
        """Return the layer's numbers, and the commands of its tiles."""
        known = self._values(layer.typed)
        plan = self._find_plan(layer)
        commands = np.zeros(0, np.uint32) if plan is None else plan.words
        own = {
            "INPUT_ELEMENTS": layer.op.input(0).size,
            "WEIGHT_ELEMENTS": layer.op.input(1).size,
            "OUTPUT_ELEMENTS": layer.op.output.size,
            "COMMAND_WORDS": len(commands),
            "COMMANDS": commands,
            "CHANNELS": layer.typed.out_channels,
            KEEP: self.place_of(layer.op.name),
        }
        names = [part.name for part in self.job.image]
        return {name: own[name] if name in own else known[name] for name in names}

    def _values(self, layer: Any) -> dict[str, Any]:
        """Return the values of a layer under the names that registers have."""
        known = named_values(layer)
        if isinstance(layer, QuantizedMatMul):
            return {**known, **product_values(layer)}
        return {**known, "WEIGHT_ZERO_POINT": 0}

    def tensors(self, match: Match) -> list[Argument]:
        """Return the activations; of a product of two tensors both."""
        first, second = match.op.input(0), match.op.input(1)
        return [first, second if isinstance(typed(match.op), QuantizedMatMul) else 0]

    def estimate(self, match: Match) -> int | None:
        """Return the cycles of the layer's commands; None where it cannot be cut into tiles."""
        try:
            layer = self.layer(match)
        except ModelError:
            return None
        if isinstance(layer.nest, str) or not all(limit.holds for limit in self.types(match)):
            return None
        if self._find_plan(layer) is None:
            return None
        given = self.registers(layer)
        job = JobValues(**{number.name: given[number.name] for number in self.job.numbers})
        job.COMMANDS, job.KEPT = given["COMMANDS"], int(self.is_kept(layer.op.name))
        return self.timing(job, 0).cycles

    def schedule(self, match: Match) -> str:
        """Return the tiles of a layer."""
        layer = self.layer(match)
        plan = self._find_plan(layer)
        if plan is None or isinstance(layer.nest, str):
            return ""
        nbytes = 4 * len(plan.words)
        kept = "; weights stay" if self.is_kept(layer.op.name) else ""
        return f"{describe_tiling(layer.nest, plan.tiling)}; commands of {nbytes:,} B{kept}"

    def _find_plan(self, layer: TiledLayer) -> TilePlan | None:
        assert isinstance(layer.nest, LoopNest)
        kept = self.is_kept(layer.op.name)
        return _find_plan(_Planner(self), layer.nest, layer.typed.out_channels, kept)

    def plan(self, nest: LoopNest, channels: int, kept: bool = False) -> TilePlan | None:
        """Return the tiles and commands of a layer; None: none fit the memories.

        Args:
            nest: of the layer.
            channels: of its output.
            kept: its weights are in a memory of the unit's own.
        """
        sizes = [int(np.prod([axis.extent for axis in axes], initial=1)) for axes in nest.operands]
        words: dict[Tiling, NDArray[np.uint32]] = {}

        def measure(tiling: Tiling) -> float:
            made = make_commands(nest, tiling, self._memories(), self._of("dma_axes"))
            words[tiling] = np.array(made, np.uint32)
            job = JobValues(
                INPUT_ELEMENTS=sizes[0],
                WEIGHT_ELEMENTS=sizes[1],
                OUTPUT_ELEMENTS=sizes[2],
                CHANNELS=channels,
                COMMANDS=words[tiling],
                KEPT=int(kept),
            )
            return self.timing(job, 0).cycles

        best = best_tiling(nest, self._rules(kept), self._tile_cycles, measure)
        return None if best is None else TilePlan(best, words[best])

    def _rules(self, kept: bool) -> Rules:
        stationary = str(self.values["stationary"])
        return Rules(
            self._memories(),
            self._of("buffers") + self._of("arrays") - 1,
            self._of("arrays"),
            "" if stationary == "any" else stationary,
            {
                "pixels": self._of("tile_pixels"),
                "channels": self._of("tile_channels"),
                "groups": self._of("tile_channels"),
                "depth": self._of("tile_depth"),
            },
            self._port(),
            self._of("dma_axes"),
            kept,
        )


@lru_cache(maxsize=16)
def _decode(
    words: bytes, sizes: tuple[int, ...], memories: tuple[tuple[str, Memory], ...]
) -> Stream:
    return Stream(
        np.frombuffer(words, "<u4"), dict(zip(OPERANDS, sizes, strict=True)), dict(memories)
    )


class _Planner:
    """A key of the cache of commands: an accelerator by its class and parameters."""

    def __init__(self, unit: TiledAccelerator) -> None:
        self.unit = unit
        self._key = (type(unit), tuple(sorted(unit.values.items())))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Planner) and self._key == other._key


@lru_cache(maxsize=256)
def _find_plan(planner: _Planner, nest: LoopNest, channels: int, kept: bool) -> TilePlan | None:
    return planner.unit.plan(nest, channels, kept)
