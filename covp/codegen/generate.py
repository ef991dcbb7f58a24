"""`generate`: a model and a platform to a `Program`, by passes, partition, C and a memory plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import covp.codegen.kernels  # noqa: F401  (registers the kernels)
from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import NO_COSTS
from covp.accelerator.placement import Placement
from covp.accelerator.registry import find_backends
from covp.base.arguments import shown
from covp.base.c_names import c_name
from covp.base.request import DEFAULT_BUILD, BuildOptions
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.aliases import aliases
from covp.codegen.assembly import assemble
from covp.codegen.calls import emit_calls
from covp.codegen.core_costs import Measure, SimulatedCosts, layer_function
from covp.codegen.layer import KernelRequest, LayerCode, emit_layer
from covp.codegen.offload import demand_architecture, demand_use, split_graph
from covp.codegen.overlap import OverlapPlan
from covp.codegen.parts import emit_in_parts
from covp.codegen.program import Program
from covp.codegen.schedule import Schedule
from covp.codegen.strips import SharedFunctions, strip_schedule
from covp.errors import CapacityError, UsageError
from covp.graph.graph import Graph, Op
from covp.graph.models import as_graph
from covp.graph.passes import run_passes

_MUCH_FLASH = 2**22
_MUCH_RAM = 2**24
ScheduleChoice = Callable[[Op], Schedule | None]


def generate(
    model: Graph | str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    options: BuildOptions = DEFAULT_BUILD,
    *,
    schedules: ScheduleChoice | None = None,
    passes: Sequence[Callable[[Graph], Graph]] = (),
    name: str = "",
    plan: OverlapPlan | None = None,
    measure: Measure | None = None,
) -> Program:
    """Generate the C of a model, as `covp.compile` does with the schedules and plan it finds.

    Args:
        model: a graph, a zoo name or the path of a model file.
        platform: a platform, its name or the path of its YAML file.
        accelerators: as of `covp.accelerator.registry.find_backends`.
        options: those of them that change the graph and the placement of its layers.
        schedules: gives the schedule of an operator on the core, or None for the kernel's own
            choice; `covp.building.tune` makes such functions from its records.
        passes: graph passes after covp's own; see `covp.compile`.
        name: what names in C begin with; empty: the model's.
        plan: cuts layers into bands, and says when each is begun and waited for.
        measure: gives the cycles of each layer of a program without accelerators. Without it
            nothing is known of the core, and accelerators get whatever they accept.

    Raises:
        ModelError, PlatformError, UsageError, AcceleratorError: with one line each.
    """
    if name and c_name(name) != name:
        raise UsageError(f"{name!r} is not a lower-case C identifier, such as {c_name(name)!r}")
    platform = load_platform(platform)
    if schedules is not None and not callable(schedules):
        raise UsageError(f"schedules must be a function of an operator, not {shown(schedules)}")
    # before the model: their files may register its operators
    backends = find_backends(accelerators)
    graph = as_graph(model, options)
    if name:
        graph = replace(graph, name=name)
    for backend in backends:
        demand_architecture(backend, platform)
    prepared = run_passes(graph, passes)
    _demand_flash(prepared, platform)
    prefix = c_name(graph.name)

    @cache
    def choose(op: Op) -> Schedule | None:
        return schedules(op) if schedules is not None else None

    def emit_alone(op: Op, function: str) -> LayerCode:
        schedule = strip_schedule(op, platform.core, choose)
        return emit_layer(KernelRequest(op, platform.core, function, schedule))

    emit = cache(SharedFunctions(emit_alone).emit)

    def emit_placement(placement: Placement, function: str) -> LayerCode:
        op, on_core = placement.ops[-1], placement.backend is None
        if plan is not None:
            chosen, rows = choose(op) if on_core else None, plan.rows.get(op.name)
            named = {unit.name: unit for unit in backends}
            if placement.backend is not None:  # which may know more than the one that was named
                named[placement.target] = placement.backend
            units = [named[name] for name in plan.units.get(op.name, ())]
            return emit_in_parts(placement, platform.core, function, chosen, rows, units)
        return emit(op, function) if on_core else emit_calls(placement, platform.core, function)

    costs = NO_COSTS if measure is None else SimulatedCosts(prefix, platform, emit, measure)
    lowered, split = split_graph(prepared, backends, costs, options)
    if not options.allow_unused:
        demand_use(split, backends, options)
    renamed = aliases(lowered)
    layers = [
        emit_placement(placement, layer_function(prefix, index, placement.ops[-1]))
        for index, placement in enumerate(split.placements)
        if placement.backend is not None or placement.ops[-1] not in renamed
    ]
    program = assemble(graph, lowered, platform, backends, split, layers, plan)
    _demand_ram(program, lowered)
    return program


def _demand_ram(program: Program, lowered: Graph) -> None:
    """Raise CapacityError where activations are far too large to be computed at all.

    What does not fit by less is found when the program is linked, with what may help.
    """
    ram = sum(region.bytes for region in program.platform.own_memory if region.kind == "ram")
    if program.arena_bytes > max(ram, _MUCH_RAM):
        largest = max(lowered.tensors(), key=lambda t: 0 if t.constant else t.nbytes)
        raise CapacityError(
            f"{program.name} needs {program.arena_bytes:,} bytes for activations, the RAM of "
            f"{program.platform.name} has {ram:,}; the largest tensor is {largest.name} "
            f"{largest.shape}: make the inputs smaller, or name another platform",
            program.arena_bytes,
            ram,
            "ram",
        )


def _demand_flash(graph: Graph, platform: Platform) -> None:
    """Raise CapacityError where constants are far too large for C to be written at all.

    What does not fit by less is found when the program is linked.
    """
    needed = sum(tensor.nbytes for tensor in graph.tensors() if tensor.constant)
    flash = sum(region.bytes for region in platform.own_memory if region.kind == "flash")
    if needed > 4 * max(flash, _MUCH_FLASH):
        raise CapacityError(
            f"{graph.name} has {needed} bytes of constants, the flash of {platform.name} {flash}",
            needed,
            flash,
            "flash",
        )
