"""Accelerators in a program: their graph passes, demands on them, bus addresses, drivers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import NO_COSTS, CoreCosts
from covp.accelerator.partition import Partition, partition, plan_accelerators
from covp.base.c_names import c_prefix
from covp.base.plugins import call_hook
from covp.base.request import DEFAULT_BUILD, BuildOptions
from covp.chip.platform_file import Platform
from covp.errors import AcceleratorError, PlatformError, UsageError
from covp.graph.graph import Graph
from covp.graph.passes import demand_states
from covp.graph.pattern import Pattern

_NO_CACHE = {"COVP_DATA_CACHE_LINE": "0"}
_DRIVER_FILE = re.compile(r"\w[\w.-]*\.[cSh]")


def demand_architecture(backend: AcceleratorBackend, platform: Platform) -> None:
    """Raise UsageError: the accelerator cannot be beside this platform's core."""
    core = platform.core
    if backend.architectures and core.architecture not in backend.architectures:
        raise UsageError(
            f"accelerator {backend.name} is for {' or '.join(backend.architectures)} cores; "
            f"{platform.name} has a {core.name} ({core.architecture})"
        )


def split_graph(
    graph: Graph,
    backends: Sequence[AcceleratorBackend],
    costs: CoreCosts = NO_COSTS,
    options: BuildOptions = DEFAULT_BUILD,
) -> tuple[Graph, Partition]:
    """Return the partition, with the graph passes of the backends before and after it.

    Args:
        graph: after covp's own passes.
        backends, costs, options: as for `covp.accelerator.partition.partition`.
    """
    for backend in backends:
        graph = _graph_pass(backend, "before_partitioning", backend.before_partitioning, graph)
    split = partition(graph, backends, costs, options)
    for backend in backends:
        own = [p.match for p in split.placements if p.backend is backend and p.match is not None]
        after = partial(backend.after_partitioning, own=own)
        changed = _graph_pass(backend, "after_partitioning", after, graph)
        if changed is not graph:
            graph = changed
            split = partition(graph, backends, costs, options)
    return graph, plan_accelerators(split, backends)


def _graph_pass(
    backend: AcceleratorBackend, name: str, run: Callable[[Graph], Graph], graph: Graph
) -> Graph:
    changed: object = call_hook(f"accelerator {backend.name}", name, run, graph)
    if not isinstance(changed, Graph):
        raise AcceleratorError(
            f"accelerator {backend.name}: {name}() must return a Graph, not {changed!r}"
        )
    demand_states(graph, changed, f"accelerator {backend.name}: {name}()", AcceleratorError)
    return changed


def demand_use(
    split: Partition,
    backends: Sequence[AcceleratorBackend],
    options: BuildOptions = DEFAULT_BUILD,
) -> None:
    """Refuse a requested accelerator that gets no layer: it is a mistake, not a silent fallback.

    Args:
        split: of the layers.
        backends: that were requested.
        options: with ``overlap`` equal units share the layers that one of them got.
    """
    used = {placement.target for placement in split.placements}
    for backend in backends:
        if backend.name in used:
            continue
        equal = [b.name for b in backends if b.name in used and b.is_equal(backend)]
        if equal and options.overlap:
            continue
        if equal:
            raise UsageError(
                f"accelerator {backend.name!r} gets no layer: {equal[0]} is equal and gets all; "
                "they share layers with --overlap"
            )
        reasons = split.reasons(backend.name)
        why = f"; {reasons[0].layer}: {reasons[0].reason}" if reasons else ""
        accepted = sum(reason.accepted for reason in reasons)
        lost = f": of the {accepted} that it accepts others get all" if accepted else ""
        raise UsageError(f"accelerator {backend.name!r} gets no layer of this model{lost}{why}")


def unmatched_patterns(
    graph: Graph, split: Partition, backends: Sequence[AcceleratorBackend]
) -> Iterator[str]:
    """Yield a warning for each pattern without a match though the model has its root kind."""
    for backend in backends:
        for pattern in backend.patterns:
            roots = [op for op in graph.ops if op.kind in _root_kinds(pattern)]
            if roots and not any(pattern.match(graph, op) for op in roots):
                yield (
                    f"accelerator {backend.name}: pattern {pattern.name} matches nothing, though "
                    f"the model has {len(roots)} {roots[0].kind}"
                )


def _root_kinds(pattern: Pattern) -> set[str]:
    """Return the kinds of operators that a match can end with."""
    return {option.kind for option in pattern.node.options() if hasattr(option, "kind")}


def accelerator_places(platform: Platform, count: int) -> list[tuple[int, int | None]]:
    """Return each accelerator's bus address and interrupt line, in the order of their names."""
    if count == 0:
        return []
    slot = platform.accelerators
    if slot is None:
        raise PlatformError(
            f"platform {platform.name} has no place for accelerators; add the key accelerators.base"
        )
    lines = [None if slot.irq is None else slot.irq + i for i in range(count)]
    return [(slot.base + i * slot.stride, line) for i, line in enumerate(lines)]


def place_header(name: str, base: int, irq: int | None, defines: Mapping[str, str]) -> str:
    """Return the C header ``NAME_place.h``: where an accelerator is on this platform.

    Args:
        name, base, irq: of the accelerator.
        defines: of covp_cache.h, see `Platform.cache_defines`.
    """
    caches = "".join(f"#define {macro} {value}\n" for macro, value in defines.items())
    prefix = c_prefix(name)
    line = f"#define {prefix}_IRQ {irq}u\n" if irq is not None else ""
    return (
        f"/* Where {name} is on this platform. Generated by covp. */\n"
        f"#ifndef {prefix}_PLACE_H\n#define {prefix}_PLACE_H\n"
        f"#define {prefix}_BASE 0x{base:08x}u\n{line}{caches}#endif\n"
    )


def cache_line(platform: Platform, backends: Sequence[AcceleratorBackend]) -> int:
    """Return the bytes of a cache line that accelerators on the bus bypass, or 0."""
    line = platform.data_cache_line
    return line if line and any(backend.is_on_bus for backend in backends) else 0


def checked_driver(
    backend: AcceleratorBackend, base: int, irq: int | None, platform: Platform
) -> Mapping[str, str]:
    """Return a driver's files and ``NAME_place.h``, name to C text.

    Raises:
        AcceleratorError: ``driver`` returns something else.
        UsageError: it waits for an interrupt, and the platform has no line for it.
    """
    if irq is None and backend.values.get("wait") == "sleep":
        raise UsageError(
            f"accelerator {backend.name}: wait=sleep needs an interrupt line, and the platform has "
            "none for accelerators; add the key accelerators.irq or take wait=poll"
        )
    files: object = call_hook(f"accelerator {backend.name}", "driver", backend.driver, base)
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
    defines = platform.cache_defines if cache_line(platform, [backend]) else _NO_CACHE
    return {place: place_header(backend.name, base, irq, defines), **files}
