"""`advice`: what a run shows that its user can change, each with what to do; the dearest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from covp.building.ram_weights import constant_bytes
from covp.chip.platform_file import parse_size
from covp.codegen.lifetimes import arena_tensors, live_bytes
from covp.codegen.program import AcceleratorInstance, Program
from covp.graph.graph import Op
from covp.runtime.profile import LayerProfile, MemoryUse, Profile

MOST = 2
"""So many are printed."""
_LEAST_FLOAT = 0.05
_LEAST_DYNAMIC = 0.1
_LEAST_LIMIT = 0.1
_LEAST_EMULATED = 0.5
"""Shares of the cycles from which something is worth a line."""
_LEAST_WAITS = 0.03
"""Share of the cycles that loads of weights wait for flash, from which RAM for them is named."""
_PIXELS = 8
"""Outputs for which a weight is loaded once, at most."""
_LEAST_RAM = 0.5
"""Share of a platform's RAM from which the layer that sets the peak is named."""


@dataclass(frozen=True)
class Advice:
    """Something that a run shows.

    Attributes:
        seen: what it is, with its figure.
        do: what would change it.
        cycles: that it is about; 0 where it is about memory.
    """

    seen: str
    do: str
    cycles: int = 0

    def __str__(self) -> str:
        return f"{self.seen}: {self.do}"


def advice(program: Program, profile: Profile, memory: MemoryUse) -> tuple[Advice, ...]:
    """Return the advice on a run, that about the most cycles first.

    Args:
        program: what ran.
        profile, memory: what it took.
    """
    found = [*_floats(program, profile), *_dynamic(program, profile), *_ports(program, profile)]
    found += _advise_on_emulation(program, profile)
    found += _advise_on_flash(program, profile)
    return (*sorted(found, key=lambda one: -one.cycles), *_peak(program, memory))


def _cost(entry: LayerProfile) -> int:
    return (entry.instructions if entry.cycles is None else entry.cycles) or 0


def _is_float(entry: LayerProfile, ops: Mapping[str, Op]) -> bool:
    """Return whether a layer computes floats of floats."""
    kinds = [output.dtype.kind for output in entry.layer.outputs]
    return bool(kinds) and all(kind == "f" for kind in kinds) and not _is_conversion(entry, ops)


def _is_conversion(entry: LayerProfile, ops: Mapping[str, Op]) -> bool:
    """Return whether a layer makes floats of integers, or the reverse."""
    op = ops.get(entry.layer.name)
    first = op.inputs[0] if op and op.inputs else None
    made = entry.layer.outputs
    if first is None or not made:
        return False
    return (first.dtype.kind == "f") != (made[0].dtype.kind == "f")


def _floats(program: Program, profile: Profile) -> Iterator[Advice]:
    """Yield float layers of a network that is otherwise of integers."""
    layers = profile.layers
    ops = {op.name: op for op in (program.lowered or program.graph).ops}
    if not any(entry.macs and not _is_float(entry, ops) for entry in layers):
        return
    dynamic = _is_dynamic(layers)  # its scaling is float, and `_dynamic` names it
    costs: Counter[str] = Counter()
    for entry in layers:
        if _is_float(entry, ops) and (entry.macs or not dynamic):
            costs[entry.op] += _cost(entry)
    total = sum(map(_cost, layers))
    for kind, cost in costs.most_common(1):
        if cost >= _LEAST_FLOAT * total:
            seen = f"{cost / total:.0%} of the cycles are {kind}, which stayed float"
            yield Advice(seen, _how(next(e for e in layers if e.op == kind), ops), cost)
            return
    for around in zip(layers, layers[1:], layers[2:], strict=False):
        before, entry, after = around
        ends = _is_conversion(before, ops) and _is_conversion(after, ops)
        if ends and _is_float(entry, ops):
            seen = f"{entry.op} stays float and its neighbours are integers"
            yield Advice(seen, _how(entry, ops), sum(map(_cost, around)))
            return


def _advise_on_emulation(program: Program, profile: Profile) -> Iterator[Advice]:
    """Yield a network of floats on a core that computes them in software."""
    layers = profile.layers
    ops = {op.name: op for op in (program.lowered or program.graph).ops}
    done = [e for e in layers if e.macs and e.target == "cpu"]
    if program.platform.core.has("fpu") or not done or not all(_is_float(e, ops) for e in done):
        return
    cost = sum(map(_cost, done))
    if cost >= _LEAST_EMULATED * sum(map(_cost, layers)):
        yield Advice(
            f"the network is float32 and {program.platform.core.name} has no floating-point unit",
            "quantize it to int8 (docs/onnx-quantized.md), or choose a core with one (`covp fits`)",
            cost,
        )


def _advise_on_flash(program: Program, profile: Profile) -> Iterator[Advice]:
    """Yield weights that are loaded from slow flash while RAM is free.

    The cycles are fewer than those that loads wait: each constant is loaded once for as many
    outputs as kernels compute at once, in whole lines of a cache that is smaller than a layer's.
    """
    platform = program.platform
    flash = platform.region_of(platform.flash.start)
    kept = ('section(".data.' in text for text in program.sources.values())
    if flash is None or platform.core.timing is None or any(kept):
        return
    caches = [c for c in platform.caches if c.name in flash.caches and c.has_data]
    waits = flash.waits.data - platform.ram.waits.data
    line, held = 4, 0
    if caches:
        line, held = caches[0].line, parse_size(caches[0].size)
        waits = caches[0].transfer_cycles(flash.waits.data) - 1
    waited = size = 0
    for entry, layer in zip(profile.layers, program.layers, strict=True):
        constants = constant_bytes(program, layer)
        size += constants
        if constants > held and waits > 0:
            waited += max(constants, (entry.macs or 0) // _PIXELS) // line * waits
    free = program.ram_left([region for region in platform.own_memory if region.kind == "ram"])
    if waited >= _LEAST_WAITS * sum(map(_cost, profile.layers)) and free > size // 4:
        yield Advice(
            f"{size:,} B of weights are loaded from flash, which is slower than RAM, and {free:,} "
            "B of RAM are free",
            "--ram-weights keeps those there that gain by it",
            waited,
        )


def _how(entry: LayerProfile, ops: Mapping[str, Op]) -> str:
    from covp.graph.ops.recurrent import Recurrent  # a small model does not need the family

    op = ops.get(entry.layer.name)
    if op is not None and isinstance(op.attributes, Recurrent):
        return (
            "onnxruntime's static quantization leaves it so; TensorFlow Lite has an integer LSTM, "
            "and convolutions over time (docs/streaming.md) are quantized by both"
        )
    return "quantize it too (onnxruntime: op_types_to_quantize; TensorFlow: full integer)"


def _is_dynamic(layers: Sequence[LayerProfile]) -> bool:
    """Return whether activations are quantized by their range in each inference.

    Their products are the only ones whose sums leave a layer as int32.
    """
    return any(e.macs and any(o.dtype == np.int32 for o in e.layer.outputs) for e in layers)


def _dynamic(program: Program, profile: Profile) -> Iterator[Advice]:
    if program.graph.expanded_bytes:
        yield Advice(
            "int8 weights run as float32, as activations are float (dynamic range)",
            "quantize these too: full integer quantization with representative data",
            sum(map(_cost, profile.layers)),
        )
    layers = profile.layers
    if not _is_dynamic(layers):
        return
    total = sum(map(_cost, layers))
    cost = sum(_cost(entry) for entry in layers if not entry.macs)
    if cost >= _LEAST_DYNAMIC * total:
        yield Advice(
            f"{cost / total:.0%} of the cycles find ranges and scale by them in each inference "
            "(dynamic quantization)",
            "quantize statically: onnxruntime.quantization.quantize_static, docs/onnx-quantized.md",
            total,
        )


def _ports(program: Program, profile: Profile) -> Iterator[Advice]:
    """Yield what limits each accelerator: its memory port or its multipliers."""
    total = sum(map(_cost, profile.layers))
    for unit in program.accelerators:
        # units that share a layer save what they do at the same time only once
        own = [
            (e.offload, len(e.layer.units))
            for e in profile.layers
            if e.offload and e.target == unit.name
        ]
        port = sum((max(o.compute, o.memory) - max(o.compute, o.memory // 2)) // n for o, n in own)
        macs = sum((max(o.compute, o.memory) - max(o.compute // 2, o.memory)) // n for o, n in own)
        if not _is_busy(unit, profile):  # it computes for other reasons than its multipliers
            macs = 0
        is_rtl = unit.backend.values.get("rtl", "no") != "no"  # whose time no parameter changes
        if is_rtl or max(port, macs) < _LEAST_LIMIT * total:
            continue
        known = {parameter.name for parameter in unit.backend.parameters}
        if port > macs:
            limit, saved = "memory port", port
            change = "bytes_per_cycle" if "bytes_per_cycle" in known else "the width of the port"
        else:
            limit, saved = "multipliers", macs
            change = "macs_per_cycle" if "macs_per_cycle" in known else "their number"
        spare = ", more multipliers nothing" if limit == "memory port" and not macs else ""
        yield Advice(
            f"{unit.name} is limited by its {limit}",
            f"twice {change} saves about {saved / total:.0%} of the cycles{spare}",
            saved,
        )


def _is_busy(unit: AcceleratorInstance, profile: Profile) -> bool:
    """Return whether a unit's multipliers are in use for half of the time that it computes."""
    size = unit.backend.hardware_size()
    layers = [entry for entry in profile.layers if entry.offload and entry.target == unit.name]
    computing = sum(entry.offload.compute for entry in layers if entry.offload)
    own_cycles = computing / float(unit.backend.values.get("clock_ratio", 1.0))
    return size is None or 2 * sum(e.offloaded_macs for e in layers) >= size[0] * own_cycles


def _peak(program: Program, memory: MemoryUse) -> Iterator[Advice]:
    """Yield the layer that sets the peak of RAM, where RAM is scarce."""
    ram = sum(r.bytes for r in program.platform.own_memory if r.kind == "ram")
    lives = live_bytes(arena_tensors(program), len(program.layers))
    if not lives or memory.ram_bytes < _LEAST_RAM * ram:
        return
    layer = program.layers[lives.index(max(lives))]
    strips = "" if program.accelerators else "try --patches auto; "  # which accelerators refuse
    yield Advice(
        f"layer {layer.index} {layer.op} sets the peak of RAM, {max(lives):,} B of tensors, on "
        f"{ram // 1024:,} KB",
        f"{strips}a smaller input or stride there lowers it; --max-scratch limits working memory",
    )
