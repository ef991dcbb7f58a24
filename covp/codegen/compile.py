"""A model and a platform become a `Program`: passes, partition, C a layer, a memory plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import covp.codegen.kernels  # noqa: F401  (registers the kernels)
from covp.accelerator.backend import AcceleratorBackend, new_peripheral
from covp.accelerator.partition import Partition, Placement, partition
from covp.accelerator.registry import find_backend
from covp.codegen.c_text import c_name
from covp.codegen.calls import StartupCode, emit_calls
from covp.codegen.layer import KernelRequest, LayerCode, Scratch, emit_layer, prototype
from covp.codegen.planner import Buffer, plan
from covp.codegen.program import (
    AcceleratorInstance,
    Program,
    ProgramLayer,
    ProgramTensor,
)
from covp.codegen.schedule import Schedule
from covp.errors import AcceleratorError, CovpError, ModelError, PlatformError, UsageError
from covp.frontend import load_model
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.ops import definition
from covp.graph.pattern import Pattern
from covp.graph.reference import run_reference
from covp.passes import run_passes
from covp.platform_file import Platform, load_platform

ScheduleChoice = Callable[[Op], Schedule | None]
ALIASES = frozenset({"RESHAPE"})
"""Operators that only rename memory: their output is their input."""
_DRIVER_FILE = re.compile(r"\w[\w.-]*\.[cSh]")


def compile(
    model: Graph | str | Path,
    platform: Platform | str | Path,
    accelerators: Sequence[str | AcceleratorBackend] = (),
    *,
    allow_unused: bool = False,
    schedules: ScheduleChoice | None = None,
) -> Program:
    """Compile a model ahead of time for a platform.

    Args:
        model: a graph, a zoo name or the path of a model file.
        platform: a platform, its name or the path of its YAML file.
        accelerators: names ("qconv2d", "qconv2d:requantize=false", "file.py:Class") or backends;
            the first one that takes a layer gets it.
        allow_unused: whether an accelerator may end up without any layer; else that is an error.
        schedules: gives the schedule of an operator on the core, or None for the kernel's own
            choice; `covp.tune` makes such functions from its records.

    Raises:
        ModelError, PlatformError, UsageError, AcceleratorError: with one line each.
    """
    graph = model if isinstance(model, Graph) else load_model(model)
    platform = load_platform(platform)
    backends = [find_backend(a) if isinstance(a, str) else a for a in accelerators]
    for backend in backends:
        demand_architecture(backend, platform)
    lowered, split = split_graph(run_passes(graph), backends)
    if not allow_unused:
        _demand_use(split, backends)
    layers = [
        _emit(placement, platform, f"{c_name(graph.name)}_{index:02d}", schedules)
        for index, placement in enumerate(split.placements)
        if not _is_alias(placement)
    ]
    return _assemble(graph, lowered, platform, backends, split, layers)


def split_graph(graph: Graph, backends: Sequence[AcceleratorBackend]) -> tuple[Graph, Partition]:
    """The partition, with the graph passes of the backends in front of it and behind it."""
    for backend in backends:
        graph = _graph_pass(backend, "before_partitioning", backend.before_partitioning, graph)
    split = partition(graph, backends)
    for backend in backends:
        own = [p.match for p in split.placements if p.backend is backend and p.match is not None]
        behind = partial(backend.after_partitioning, own=own)
        changed = _graph_pass(backend, "after_partitioning", behind, graph)
        if changed is not graph:
            graph = changed
            split = partition(graph, backends)
    return graph, split


def _graph_pass(
    backend: AcceleratorBackend, name: str, run: Callable[[Graph], Graph], graph: Graph
) -> Graph:
    try:
        changed: object = run(graph)
    except CovpError:
        raise
    except Exception as error:
        raise AcceleratorError(
            f"accelerator {backend.name}: {name}() raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(changed, Graph):
        raise AcceleratorError(
            f"accelerator {backend.name}: {name}() must return a Graph, not {changed!r}"
        )
    return changed


def _is_alias(placement: Placement) -> bool:
    return placement.backend is None and placement.ops[-1].kind in ALIASES


def demand_architecture(backend: AcceleratorBackend, platform: Platform) -> None:
    """Raises UsageError: the accelerator cannot be beside this platform's core."""
    core = platform.core
    if backend.architectures and core.architecture not in backend.architectures:
        raise UsageError(
            f"accelerator {backend.name} is for {' or '.join(backend.architectures)} cores; "
            f"{platform.name} has a {core.name} ({core.architecture})"
        )


def _unmatched(
    graph: Graph, split: Partition, backends: Sequence[AcceleratorBackend]
) -> Iterator[str]:
    """Patterns that fit nothing although the model has their operators: mistakes, mostly."""
    for backend in backends:
        for pattern in backend.patterns:
            roots = [op for op in graph.ops if op.kind in _root_kinds(pattern)]
            if roots and not any(pattern.match(graph, op) for op in roots):
                yield (
                    f"accelerator {backend.name}: pattern {pattern.name} matches nothing, though "
                    f"the model has {len(roots)} {roots[0].kind}"
                )


def _root_kinds(pattern: Pattern) -> set[str]:
    """Operator kinds that a match can end with."""
    return {option.kind for option in pattern.node.options() if hasattr(option, "kind")}


def _demand_use(split: Partition, backends: Sequence[AcceleratorBackend]) -> None:
    """An accelerator that was asked for and gets no layer is a mistake, not a silent fallback."""
    for backend in backends:
        if any(placement.backend is backend for placement in split.placements):
            continue
        reasons = split.reasons(backend.name)
        why = f"; {reasons[0].layer}: {reasons[0].reason}" if reasons else ""
        raise UsageError(f"accelerator {backend.name!r} takes no layer of this model{why}")


def _emit(
    placement: Placement, platform: Platform, prefix: str, schedules: ScheduleChoice | None
) -> LayerCode:
    op = placement.ops[-1]
    function = f"{prefix}_{c_name(op.kind)}"
    if placement.backend is not None:
        return emit_calls(placement, platform.core, function)
    chosen = schedules(op) if schedules is not None else None
    return emit_layer(KernelRequest(op, platform.core, function, chosen))


def _assemble(
    graph: Graph,
    lowered: Graph,
    platform: Platform,
    backends: Sequence[AcceleratorBackend],
    split: Partition,
    layers: Sequence[LayerCode],
) -> Program:
    name = c_name(graph.name)
    memory = ArenaPlan(lowered, layers)
    # as the model states them, whatever the passes removed
    macs = {op.index: definition(op.kind).macs(op) for op in graph.ops}
    sources = {f"{name}.h": _header(name, memory.nbytes)}
    sources |= {f"{layer.function}.c": layer.source for layer in layers}
    startup = StartupCode.of(backends)
    sources[f"{name}.c"] = _run_source(name, memory, layers, startup)
    places = accelerator_places(platform, len(backends))
    drivers = []
    for backend, (base, irq) in zip(backends, places, strict=True):
        driver = checked_driver(backend, base, irq)
        for file in driver:
            if file in sources:
                raise AcceleratorError(
                    f"accelerator {backend.name}: the program has a file {file} already, from "
                    "another driver or the model; name it after the accelerator"
                )
        sources |= driver
        drivers.append(tuple(driver))
    return Program(
        name=name,
        platform=platform,
        sources=sources,
        run_function=f"{name}_run",
        startup_function=_startup_function(name) if startup.body else "",
        arena_symbol=f"{name}_arena",
        arena_bytes=memory.nbytes,
        inputs=tuple(memory.describe(t) for t in lowered.inputs),
        outputs=tuple(memory.describe(t) for t in lowered.outputs),
        layers=tuple(_describe(layer, memory, split, macs) for layer in layers),
        accelerators=tuple(
            AcceleratorInstance(
                backend.spec, partial(new_peripheral, backend), base, irq, files, type(backend)
            )
            for backend, (base, irq), files in zip(backends, places, drivers, strict=True)
        ),
        reference=lambda inputs: run_reference(graph, inputs),
        refusals=tuple(split.refusals),
        warnings=tuple(_unmatched(lowered, split, backends)),
        # kernels read bytes a word at a time
        flags=("-fno-strict-aliasing",),
    )


def accelerator_places(platform: Platform, count: int) -> list[tuple[int, int | None]]:
    """Bus address and interrupt line of the accelerators, in the order they were named."""
    if count == 0:
        return []
    slot = platform.accelerators
    if slot is None:
        raise PlatformError(
            f"platform {platform.name} has no place for accelerators; add the key accelerators.base"
        )
    lines = [None if slot.irq is None else slot.irq + i for i in range(count)]
    return [(slot.base + i * slot.stride, line) for i, line in enumerate(lines)]


def place_header(name: str, base: int, irq: int | None) -> str:
    """The C header ``NAME_place.h``: where an accelerator is on this platform."""
    prefix = c_name(name).upper()
    line = f"#define {prefix}_IRQ {irq}u\n" if irq is not None else ""
    return (
        f"/* Where {name} is on this platform. Generated by covp. */\n"
        f"#ifndef {prefix}_PLACE_H\n#define {prefix}_PLACE_H\n"
        f"#define {prefix}_BASE 0x{base:08x}u\n{line}#endif\n"
    )


def checked_driver(backend: AcceleratorBackend, base: int, irq: int | None) -> Mapping[str, str]:
    """A driver's files and ``NAME_place.h``, name to C text.

    Raises:
        AcceleratorError: what ``driver`` returns is something else.
        UsageError: it shall sleep until an interrupt, and there is no line for it.
    """
    if irq is None and backend.values.get("wait") == "sleep":
        raise UsageError(
            f"accelerator {backend.name}: wait=sleep needs an interrupt line, and the platform has "
            "none for accelerators; add the key accelerators.irq or take wait=poll"
        )
    try:
        files: object = backend.driver(base)
    except CovpError:
        raise
    except Exception as error:
        raise AcceleratorError(
            f"accelerator {backend.name}: driver() raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(files, Mapping) or not all(isinstance(t, str) for t in files.values()):
        raise AcceleratorError(
            f"accelerator {backend.name}: driver() must return file names with C text, "
            f"not {files!r:.80}"
        )
    place = f"{backend.name}_place.h"
    for file in files:
        if not (isinstance(file, str) and _DRIVER_FILE.fullmatch(file)) or file == place:
            raise AcceleratorError(
                f"accelerator {backend.name}: driver() named a file {file!r}; a name without "
                f"folders that ends with .c, .S or .h is needed, and {place} is covp's"
            )
    return {place: place_header(backend.name, base, irq), **files}


def _describe(
    layer: LayerCode, memory: ArenaPlan, split: Partition, macs: Mapping[int, int]
) -> ProgramLayer:
    placement = next(p for p in split.placements if p.ops[-1] is layer.op)
    return ProgramLayer(
        index=layer.op.index,
        name=layer.op.name,
        op=layer.op.kind,
        target=layer.target,
        macs=sum(macs[op.index] for op in placement.ops),
        function=layer.function,
        schedule=layer.schedule,
        arguments=tuple(memory.offset(argument) for argument in layer.arguments.values()),
        outputs=tuple(memory.describe(tensor) for tensor in layer.op.outputs),
    )


class ArenaPlan:
    """Where every tensor and scratch buffer of a program lies in its arena."""

    def __init__(self, graph: Graph, layers: Sequence[LayerCode]) -> None:
        self._buffers: dict[int, Buffer] = {}
        self._scratch: dict[int, Buffer] = {}
        written = {id(t): step for step, layer in enumerate(layers) for t in layer.op.outputs}
        for tensor in graph.inputs:
            self._own(tensor, 0)
        for op in graph.ops:
            self._allocate(op, layers, written)
        self._extend(graph, layers)
        self._share_in_place(layers)
        for step, layer in enumerate(layers):
            for argument in layer.arguments.values():
                if isinstance(argument, Scratch):
                    name = f"scratch of {layer.function}"
                    self._scratch[id(argument)] = Buffer(name, argument.nbytes, step, step)
        unique = {id(b): b for b in (*self._buffers.values(), *self._scratch.values())}
        self.nbytes = plan(list(unique.values())) if unique else 0

    def offset(self, item: Tensor | Scratch) -> int:
        """Bytes from the start of the arena."""
        table = self._scratch if isinstance(item, Scratch) else self._buffers
        return table[id(item)].offset

    def describe(self, tensor: Tensor) -> ProgramTensor:
        """The tensor as the session needs it."""
        if id(tensor) not in self._buffers:
            raise ModelError(f"output {tensor.name} is a constant; nothing is left to compute")
        return ProgramTensor(
            tensor.name, tensor.shape, tensor.dtype, self.offset(tensor), tensor.quantization
        )

    def _own(self, tensor: Tensor, step: int) -> None:
        self._buffers[id(tensor)] = Buffer(tensor.name, tensor.nbytes, step, step)

    def _allocate(self, op: Op, layers: Sequence[LayerCode], written: dict[int, int]) -> None:
        """A buffer for each output that a layer writes; an alias takes over its input's."""
        for tensor in op.outputs:
            if id(tensor) in written:
                self._own(tensor, written[id(tensor)])
            elif op.kind in ALIASES:
                self._buffers[id(tensor)] = self._buffers[id(op.input(0))]

    def _extend(self, graph: Graph, layers: Sequence[LayerCode]) -> None:
        """Keep every buffer until its last reader, the outputs until the end."""
        for step, layer in enumerate(layers):
            for argument in layer.arguments.values():
                if isinstance(argument, Tensor):
                    buffer = self._buffers[id(argument)]
                    buffer.last = max(buffer.last, step)
        for tensor in graph.outputs:
            if id(tensor) in self._buffers:
                self._buffers[id(tensor)].last = len(layers)

    def _share_in_place(self, layers: Sequence[LayerCode]) -> None:
        """Let an output take over the memory of an input that nobody reads afterwards."""
        for step, layer in enumerate(layers):
            output = self._buffers[id(layer.op.output)]
            for tensor in layer.in_place:
                source = self._buffers[id(tensor)]
                if source is output or source.last != step or source.nbytes < output.nbytes:
                    continue
                source.last = output.last
                for key, buffer in self._buffers.items():
                    if buffer is output:
                        self._buffers[key] = source
                break


def _header(name: str, arena_bytes: int) -> str:
    return (
        f"/* {name}: a network compiled ahead of time. Generated by covp. */\n"
        f"#ifndef {name.upper()}_H\n#define {name.upper()}_H\n#include <stdint.h>\n\n"
        f"#define {name.upper()}_ARENA_BYTES {arena_bytes}\n"
        f"extern uint8_t {name}_arena[{max(arena_bytes, 1)}];\n\n"
        f"/* Inference: reads the inputs from the arena, leaves the outputs there. */\n"
        f"void {name}_run(void);\n\n#endif\n"
    )


def _startup_function(name: str) -> str:
    return f"{name}_startup"


def _run_source(
    name: str,
    memory: ArenaPlan,
    layers: Sequence[LayerCode],
    startup: StartupCode,
) -> str:
    prepare = f"void {_startup_function(name)}(void)"
    declarations = "\n".join(
        f"{prototype(layer.function, layer.op, layer.arguments)};" for layer in layers
    )
    calls = [f"    {_startup_function(name)}();"] if startup.body else []
    for layer in layers:
        calls.append(f"    /* {layer.op.name} on {layer.target} */")
        pointers = ", ".join(
            f"(void *)({name}_arena + {memory.offset(argument)})"
            for argument in layer.arguments.values()
        )
        calls.append(f"    {layer.function}({pointers});")
    body = "\n".join(calls)
    prepared = "\n".join([f"{prepare};\n{prepare}\n{{", *startup.body, "}\n\n"])
    return (
        f'#include "{name}.h"\n{startup.includes}\n{startup.definitions}{declarations}\n\n'
        f"uint8_t {name}_arena[{max(memory.nbytes, 1)}] __attribute__((aligned(16)));\n\n"
        f"{prepared if startup.body else ''}void {name}_run(void)\n{{\n{body}\n}}\n"
    )
