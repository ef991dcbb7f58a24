"""``covp show``: a model's graph as the passes leave it, and its layers as compiled."""

from __future__ import annotations

import click

from covp.base.debug import follow_environment
from covp.base.request import BuildOptions
from covp.building.builder import Build, build
from covp.cli import options
from covp.cli.groups import GroupedCommand, option
from covp.cli.output import echo, print_code, print_json, print_table, warn
from covp.errors import UsageError
from covp.evaluation.show import Shown, describe, operators_of
from covp.graph.graph import Graph
from covp.graph.models import as_graph
from covp.graph.passes import PASSES, graph_after
from covp.report.quantities import operator_label
from covp.report.table import Table, Value, numbers, texts


@click.command(cls=GroupedCommand)
@options.model
@option(
    "--after",
    metavar="PASS",
    heading="Model and inputs",
    shell_complete=options.completer(lambda: ["all", *(run.__name__ for run in PASSES)]),
    help="The graph after this pass (its last run), or after all; default: as it was read.",
)
@options.platform_to_compile
@options.accelerators
@options.build_options()
@option(
    "--layer",
    type=click.IntRange(0),
    metavar="N",
    heading="Report",
    help="This layer alone, by its number in `covp run`.",
)
@option(
    "--c",
    "code",
    is_flag=True,
    heading="Report",
    help="The generated C instead: the layer's files, or all.",
)
@options.as_json
def show(
    model: str,
    after: str | None,
    platform: str | None,
    accelerators: tuple[str, ...],
    build_options: BuildOptions,
    layer: int | None,
    code: bool,
    as_json: bool,
) -> int:
    """Print the graph of MODEL, and with -p its layers as they are compiled.

    With -p the graph itself is printed with --after only.
    """
    if platform is None and (code or accelerators):
        raise UsageError(f"{'--c' if code else '--accel'}: name the platform too, with -p")
    if code and after is not None:
        raise UsageError("--c is the C of the program; leave out --after")
    follow_environment()
    graph = None
    if platform is None or after is not None:
        graph = as_graph(model, build_options)
        graph = graph if after is None else graph_after(graph, after)
    made = build(model, platform, accelerators, build_options) if platform is not None else None
    if made is not None:
        warn(made.program.warnings)
    shown = describe(graph, made, after=after, layer=layer, with_code=code)
    if as_json:
        print_json(shown.document())
    elif code:
        for file in shown.files:
            print_code(f"/* {file.name} */\n{file.text}")
    else:
        if graph is not None:
            _print_graph(graph, layer)
        if made is not None:
            _print_layers(made, shown)
    return 0


def _print_graph(graph: Graph, layer: int | None) -> None:
    if layer is None:
        print_code(str(graph))
    else:
        print_code("\n".join(str(op) for op in operators_of(graph, layer)))


def _print_layers(made: Build, shown: Shown) -> None:
    echo(f"{shown.headline}; {made.schedules}")
    rows = [
        [f"{one.layer}", operator_label(one.kind, one.name), one.target, one.schedule, one.function]
        for one in shown.layers
    ]
    print_table(Table("", texts("layer", "operator", "on", "schedule", "function"), rows))
    index = [layer.index for layer in made.program.layers] or [0]
    places: list[list[Value]] = [
        [one.name, one.kind, f"{index[one.first]}", f"{index[one.last]}", one.offset, one.bytes]
        for one in shown.memory
    ]
    columns = [*texts("tensor", "kind"), *numbers("from layer", "to layer", "offset", "bytes")]
    print_table(Table("the arena", columns, places))
