"""The schedules of int8 CONV_2D and FULLY_CONNECTED: all that fit a layer, and the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from covp.chip.cores import Core
from covp.codegen.intrinsics import SINGLE_LOADS
from covp.codegen.kernels.convolution.folded_bytes import FoldedBytesCode
from covp.codegen.kernels.convolution.gemm import RegisterBlock
from covp.codegen.kernels.convolution.packed_channels import LOADS_AHEAD, PackedWeightsCode
from covp.codegen.kernels.convolution.packed_pixels import PackedBlock, PackedGemm
from covp.codegen.kernels.convolution.patches import rows_in_place
from covp.codegen.kernels.convolution.winograd import FOURS, WinogradCode
from covp.codegen.layer import KernelRequest
from covp.codegen.schedule import KnobSpace, Schedule, valid_schedules
from covp.errors import UsageError
from covp.graph.typed_convolution import QuantizedConv2D, resolve
from covp.hardware.intrinsics import DotProduct, dot_products, find_dot_product

_PACKED = KnobSpace("packed", {"pairs": (1, 2, 3, 4), "channels": (1, 2, 3), "unroll": (1, 2, 4)})
_THREES = KnobSpace(
    "packed_threes",
    {"threes": (1, 2, 3), "channels": (1, 2, 3, 4, 5), "unroll": (1, 2, 3, 4, 8, 9, 16)},
)
_PACKED_WEIGHTS = {"pairs": (1, 2, 3, 4, 5, 6, 7, 8), "unroll": (1, 2, 4), "peeled": (0, 1)}
_WINOGRAD = KnobSpace(
    "winograd", {"tiles": (1, 2, 3, 4), "channels": (1, 2, 3, 4), "unroll": (1, 2, 4)}
)
_FOURS = KnobSpace(FOURS, {"channels": (1, 2, 3, 4, 5), "unroll": (1, 2, 4)})
_FOLDED_BYTES = KnobSpace("folded_bytes", {"channels": (2, 3, 4), "unroll": (1, 2, 4, 8)})
_SMLAD = {"pixels": (1, 2, 3, 4), "channels": (1, 2, 3, 4), "unroll": (2, 4, 8), "weights": (8, 16)}
_SINGLE = (
    KnobSpace(f"smlad{SINGLE_LOADS}", _SMLAD),
    KnobSpace(f"winograd{SINGLE_LOADS}", _WINOGRAD.knobs),
    KnobSpace(f"folded_bytes{SINGLE_LOADS}", _FOLDED_BYTES.knobs),
)
_MOST_SUMS = 16
"""Sums beyond this spill on every core."""


@dataclass(frozen=True)
class _Finding:
    """A schedule that searches found best on a kind of core.

    Attributes:
        tile: of the schedule.
        knobs: of the schedule; ``channels`` is cut to those that the layer has.
        holds: for which cores.
    """

    tile: str
    knobs: dict[str, int]
    holds: Callable[[Core], bool] = lambda core: True

    def schedule(self, problem: QuantizedConv2D) -> Schedule:
        """Return the schedule for a layer."""
        knobs = dict(self.knobs)
        if "channels" in knobs:
            knobs["channels"] = min(knobs["channels"], problem.out_channels)
        return Schedule(self.tile, knobs)


def _dsp(core: Core) -> bool:
    return core.has("dsp")


def _riscv(core: Core) -> bool:
    return core.architecture == "riscv"


def _not_riscv(core: Core) -> bool:
    return not _riscv(core)


def _mull(core: Core) -> bool:
    return core.has("mull")


def _no_mull(core: Core) -> bool:
    return not core.has("mull")


def _four_lanes(dot: DotProduct) -> list[_Finding]:
    """Return the schedules for an instruction of four products, best first."""
    channels = 4 if dot.accumulators else 2
    return [
        _Finding(dot.name, {"pixels": 4, "channels": channels, "unroll": 4}),
        _Finding(dot.name, {"pixels": 1, "channels": 4, "unroll": 4}),
        _Finding(dot.name, {"pixels": 1, "channels": 1, "unroll": 4}),
    ]


_FINDINGS = (
    _Finding("smlad", {"pixels": 4, "channels": 1, "unroll": 8, "weights": 8}, _dsp),
    _Finding("folded_bytes", {"channels": 4, "unroll": 8}, _dsp),
    _Finding("smlad", {"pixels": 1, "channels": 4, "unroll": 8, "weights": 8}, _dsp),
    _Finding("packed_weights", {"pairs": 6, "unroll": 2, "peeled": 1, "weights": 8}, _riscv),
    _Finding("packed_weights", {"pairs": 6, "unroll": 1, "peeled": 1, "weights": 8}, _riscv),
    _Finding("packed_weights", {"pairs": 5, "unroll": 2, "peeled": 0, "weights": 8}, _not_riscv),
    _Finding("packed_weights", {"pairs": 5, "unroll": 1, "peeled": 0, "weights": 8}, _not_riscv),
    _Finding("packed_threes", {"threes": 2, "channels": 4, "unroll": 4}, _riscv),
    _Finding("packed", {"pairs": 3, "channels": 2, "unroll": 2}, _mull),
    _Finding("packed", {"pairs": 2, "channels": 2, "unroll": 2}, _mull),
    _Finding("packed", {"pairs": 1, "channels": 2, "unroll": 2}, _mull),
    # cores with eight low registers have none left for a second channel
    _Finding("packed_threes", {"threes": 2, "channels": 1, "unroll": 4}, _no_mull),
    _Finding("packed", {"pairs": 3, "channels": 1, "unroll": 2}, _no_mull),
    _Finding("packed", {"pairs": 2, "channels": 1, "unroll": 2}, _no_mull),
    _Finding("packed", {"pairs": 1, "channels": 1, "unroll": 2}, _no_mull),
    _Finding("mac", {"pixels": 4, "channels": 4, "unroll": 4}, _riscv),
    _Finding("mac", {"pixels": 3, "channels": 4, "unroll": 4}, _riscv),
    _Finding("mac", {"pixels": 2, "channels": 4, "unroll": 4}, _riscv),
    _Finding("mac", {"pixels": 2, "channels": 2, "unroll": 4}, _not_riscv),
    _Finding("mac", {"pixels": 1, "channels": 4, "unroll": 4}),
    # weights that need 16 bits
    _Finding("smlad", {"pixels": 4, "channels": 1, "unroll": 8, "weights": 16}, _dsp),
    _Finding("smlad", {"pixels": 1, "channels": 4, "unroll": 8, "weights": 16}, _dsp),
)
"""For all other instructions, best first."""


def conv2d_schedules(request: KernelRequest) -> list[Schedule]:
    """Return the valid schedules of a convolution or fully connected layer, the default first."""
    problem = resolve(request.op)
    default = default_schedule(problem, request.core)
    return valid_schedules(
        _spaces(request.core), default, lambda s: is_valid(problem, request.core, s)
    )


def _spaces(core: Core) -> Iterator[KnobSpace]:
    """Yield the register blocks of every instruction that the core has, and the packed forms."""
    for dot in filter(lambda dot: dot.fits(core), dot_products()):
        channels: tuple[int, ...] = (1, 2, 3, 4) if dot.lanes > 1 else (1, 2, 3, 4, 6, 8)
        if dot.accumulators:
            channels = (1, 2, 3, 4, 6, 8, 12, 16)
        knobs = {"pixels": (1, 2, 3, 4), "channels": channels, "unroll": (1, 2, 4, 8)}
        yield KnobSpace(dot.name, {**knobs, "weights": (8, 16)} if dot.lanes == 2 else knobs)
    if core.has("dsp"):
        yield from _SINGLE
    yield _PACKED
    yield _THREES
    yield _WINOGRAD
    yield _FOURS
    yield _FOLDED_BYTES
    # a core without long multiply comes with little flash; a model of 16-bit weights fills it
    weights = (8, 16) if core.has("mull") else (8,)
    yield KnobSpace("packed_weights", {**_PACKED_WEIGHTS, "weights": weights})
    if core.architecture == "riscv":
        yield KnobSpace(LOADS_AHEAD, _PACKED_WEIGHTS)


def is_valid(problem: QuantizedConv2D, core: Core, schedule: Schedule) -> bool:
    """Return whether the tile can compute the layer on the core."""
    pixels = problem.batch * problem.out_height * problem.out_width
    if problem.weights.dtype == np.int16 and not (
        schedule.tile == "mac" or (schedule.tile.startswith("smlad") and schedule["weights"] == 16)
    ):
        return False
    if schedule.tile in ("packed_weights", LOADS_AHEAD):
        one = rows_in_place(problem) and problem.in_height * problem.in_width == 1
        return not core.has("dsp") and one and PackedWeightsCode.fits(problem, schedule["unroll"])
    if schedule.tile.startswith("folded_bytes"):
        return FoldedBytesCode.fits(problem, core, schedule)
    if schedule.tile.startswith("winograd"):
        return WinogradCode.fits(problem, core, schedule)
    block = block_of(schedule)
    if block.pixels > pixels or block.channels > problem.out_channels:
        return False
    if isinstance(block, PackedBlock):
        if core.has("dsp") or block.registers > _MOST_SUMS:
            return False
        return block.together > 2 or PackedGemm.fits(problem, block)
    return block.dot.fits(core) and block.pixels * block.channels <= block.dot.most_sums


def default_schedule(problem: QuantizedConv2D, core: Core) -> Schedule:
    """Return a good choice without a search, from what searches found on each kind of core."""
    return next(s for s in _preferred_schedules(problem, core) if is_valid(problem, core, s))


def _preferred_schedules(problem: QuantizedConv2D, core: Core) -> Iterator[Schedule]:
    """Yield the findings that hold for the core, best first; some of them do not fit the layer."""
    four_lanes = [dot for dot in dot_products() if dot.lanes == 4 and dot.fits(core)]
    found = [finding for dot in four_lanes for finding in _four_lanes(dot)]
    for finding in (*found, *_FINDINGS):
        if finding.holds(core):
            yield finding.schedule(problem)


def block_of(schedule: Schedule) -> RegisterBlock | PackedBlock:
    """Return the register block of a schedule; not for tiles with a file of their own."""
    if schedule.tile == "packed":
        return PackedBlock(schedule["pairs"], schedule["channels"], schedule["unroll"])
    if schedule.tile == "packed_threes":
        return PackedBlock(schedule["threes"], schedule["channels"], schedule["unroll"], 3)
    single = schedule.tile.endswith(SINGLE_LOADS)
    dot = find_dot_product(schedule.tile.removesuffix(SINGLE_LOADS))
    if dot is None:
        raise UsageError(f"schedule {str(schedule)!r}: no instruction {schedule.tile!r} is known")
    shape = schedule["pixels"], schedule["channels"], schedule["unroll"]
    return RegisterBlock(*shape, dot, schedule.knobs.get("weights", 8), single)
