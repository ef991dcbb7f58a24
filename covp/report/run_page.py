"""The page of runs: each with its figures and tables, several beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from covp.evaluation.data.quality import BesideRecord, DataRecord
from covp.evaluation.documents import Run
from covp.report.comparison_tables import by_layer_table, totals_table
from covp.report.figures.comparison import Named, by_layer_figure, totals_figure
from covp.report.figures.costs import causes_figure, energy_figure, traffic_figure
from covp.report.figures.layers import layers_figure
from covp.report.figures.memory import arena_figure, memory_figure
from covp.report.figures.roofline import roofline_figure
from covp.report.layer_tables import layers_table, work_table
from covp.report.model_graph import ModelGraph
from covp.report.page import (
    Cell,
    Column,
    Facts,
    Figure,
    FigureTile,
    Note,
    PagePart,
    Section,
    Table,
    Tiles,
    write_page,
)
from covp.report.quantities import certainty
from covp.report.run_tables import (
    arena_table,
    causes_table,
    certainty_table,
    energy_table,
    energy_text,
    memory_table,
    time_text,
    traffic_by_layer,
    traffic_table,
)
from covp.report.table import Value

_AGAIN = "this document is of an older covp; run it again"


def write_run_page(path: Path, runs: Sequence[Named]) -> None:
    """Write the page of one run, or of several.

    Args:
        path: of the HTML file.
        runs: each with its name.

    Raises:
        UsageError: the file cannot be written.
    """
    title = runs[0][1].title if len(runs) == 1 else f"{len(runs)} runs"
    versions = ", ".join(sorted({run.covp_version for _, run in runs if run.covp_version}))
    subtitle = f"covp {versions}".strip()
    if len(runs) > 1:
        subtitle += f": {', '.join(name for name, _ in runs)}"
    write_page(path, title, run_sections(runs), subtitle)


def run_sections(runs: Sequence[Named]) -> list[Section]:
    """Return all sections of the page.

    Args:
        runs: each with its name; of one the sections are its subjects, of several they are a
            comparison and the runs.
    """
    if len(runs) == 1:
        return list(_sections(runs[0][1]))
    return [
        Section("Comparison", list(_comparison(runs))),
        *(
            Section(name, [_number_part(p, i) for s in _sections(run) for p in s.parts])
            for i, (name, run) in enumerate(runs, 1)
        ),
    ]


def _number_part(part: PagePart, number: int) -> PagePart:
    return replace(part, name=f"{number}-{part.name}") if isinstance(part, Figure) else part


def _comparison(runs: Sequence[Named]) -> Iterator[PagePart]:
    figures = (totals_figure(runs), by_layer_figure(runs))
    tables = (totals_table(runs), by_layer_table(runs))
    for figure, table in zip(figures, tables, strict=True):
        if figure is not None:
            yield figure
        if table is not None:
            yield table


def _sections(run: Run) -> Iterator[Section]:
    facts: list[PagePart] = [_limit(run), _tiles(run), _facts(run)]
    yield Section("What ran", [*facts, *_warnings(run), certainty_table(run)])
    if run.data is not None:
        yield Section("Accuracy", [_accuracy_table(run.data)])
    yield Section("Layers", list(_layers(run)))
    yield Section("Causes", list(_causes(run)))
    yield Section("Roofline", list(_roofline(run)))
    yield Section("Memory", list(_memory(run)))
    yield Section("Traffic", list(_traffic(run)))
    yield Section("Energy", list(_energy(run)))


def _limit(run: Run) -> Note:
    """Return what limits the run, and what would change it, as a paragraph."""
    causes = run.cycles_by_cause
    sentences = [f"{one.seen}: {one.do}." for one in run.advice]
    costs = [(layer.cycles or 0, layer) for layer in run.layers]
    if run.cycles and costs:
        most, layer = max(costs, key=lambda pair: pair[0])
        share = f"{most / run.cycles:.0%}"
        sentences.append(f"Layer {layer.index} {layer.op} takes {share} of the cycles.")
    if run.cycles and causes:
        cause = max(causes, key=lambda name: causes[name])
        share = f"{causes[cause] / run.cycles:.0%}"
        sentences.append(f"{share} of all cycles have the cause {cause!r} (see Causes).")
    return Note(" ".join(sentences) or "Nothing is known of what limits this run.")


def _tiles(run: Run) -> Tiles:
    known = certainty(run)
    source = run.cycles_source
    kind = f"{source.kind} ({source.model})" if source else ""
    tiles = []
    if run.seconds is not None:
        tiles.append(
            FigureTile("time of an inference", time_text(run.seconds), known or "measured")
        )
    if run.cycles is not None:
        detail = kind if known in kind else f"{kind}, {known}"
        tiles.append(FigureTile("cycles", f"{run.cycles:,}", detail))
    if run.instructions is not None:
        tiles.append(FigureTile("instructions", f"{run.instructions:,}", "exact"))
    if run.energy_j is not None:
        tiles.append(FigureTile("energy", energy_text(run.energy_j), "estimated, see Energy"))
    tiles.append(FigureTile("flash", f"{run.memory.flash_bytes:,} B", "as linked"))
    arena = f"arena {run.memory.arena_bytes:,} B"
    tiles.append(FigureTile("RAM", f"{run.memory.ram_bytes:,} B", arena))
    if run.coverage:
        tiles.append(FigureTile("MACs on units", f"{run.coverage:.1%}", "as they report"))
    return Tiles(tiles)


def _facts(run: Run) -> Facts:
    core = run.core
    clock = f", {core.clock_hz / 1e6:,.6g} MHz" if core and core.clock_hz and run.cycles else ""
    tuned = run.schedules
    schedules = (
        f"{tuned.layers} tuned for {', '.join(tuned.cores)} with {', '.join(tuned.compilers)}"
        if tuned.layers
        else "the kernels' own"
    )
    facts = [
        ("model", f"{run.model} ({run.model_source})" if run.model_source else run.model),
        ("platform", run.platform),
        ("core", f"{core.name}{clock}" if core else ""),
        ("device", run.device),
        ("compiler", run.toolchain),
        ("accelerators", ", ".join(run.accelerators) or "none"),
        ("schedules", schedules),
        ("check", _verdict(run)),
    ]
    return Facts([(name, value) for name, value in facts if value])


def _verdict(run: Run) -> str:
    check = run.check
    if run.matches_reference is None:
        return "not checked"
    if not run.matches_reference:
        return "DIFFERS from the reference"
    amount = f"{check.layers} layers × " if check.level == "layers" else ""
    inputs = f"{check.inputs} input{'s' if check.inputs > 1 else ''}"
    word = "bit-exact" if check.worst_error is None else f"worst error {check.worst_error:.1e}"
    return f"{word}: {amount}{inputs}"


def _warnings(run: Run) -> list[Note]:
    notes = [Note(warning, "warning") for warning in run.warnings]
    if run.matches_reference is False:
        notes.insert(0, Note("The outputs are not those of the reference.", "warning"))
    return notes


def _missing_note(text: str) -> Note:
    return Note(text, "missing")


def _layers(run: Run) -> Iterator[PagePart]:
    figure = layers_figure(run)
    if figure is not None:
        yield figure
    elif not run.layers:
        yield _missing_note(f"Device {run.device} gives no cost by layer: run with --profile.")
        return
    else:
        yield _missing_note(
            f"Device {run.device} gave no cycles by layer: --device virtual estimates them, "
            "--profile runs the layers one by one where a device has a counter."
        )
    yield ModelGraph(run)
    yield layers_table(run)
    yield work_table(run)


def _causes(run: Run) -> Iterator[PagePart]:
    figure = causes_figure(run)
    if figure is None or run.cycles_by_cause is None:
        yield _missing_note(
            f"Device {run.device} cannot tell what its cycles passed with: use --device virtual."
        )
        return
    yield figure
    yield causes_table(run)


def _roofline(run: Run) -> Iterator[PagePart]:
    figure = roofline_figure(run)
    if figure is not None:
        yield figure
    elif run.bytes is None:
        yield _missing_note("The roofline needs the bytes of each layer: run with --traffic.")
    else:
        yield _missing_note("No layer has MACs, bytes and cycles.")


def _memory(run: Run) -> Iterator[PagePart]:
    figure, arena = memory_figure(run), arena_figure(run)
    if figure is None:
        yield _missing_note(f"There is no memory map: {_AGAIN}.")
    else:
        yield from (figure, memory_table(run))
    if arena is None:
        yield _missing_note("Nothing is known of the arena: the device gives no layers.")
    else:
        yield from (arena, arena_table(run))


def _traffic(run: Run) -> Iterator[PagePart]:
    figure = traffic_figure(run)
    if figure is None:
        yield _missing_note("Bytes were not counted: run with --traffic (--device virtual).")
        return
    yield from (figure, traffic_table(run), traffic_by_layer(run))


def _energy(run: Run) -> Iterator[PagePart]:
    figure = energy_figure(run)
    if figure is None:
        yield _missing_note(
            "The energy is not known. It needs cycles, `energy` in the platform file (covp "
            "platforms lists which have it), and of each accelerator its technology, such as "
            "-a gemm:technology=horowitz-45nm."
        )
        return
    yield from (figure, energy_table(run))


def _accuracy_table(data: DataRecord) -> Table:
    """Return the model, the float model and LiteRT on the same samples, as far as they ran."""
    where = "on the device" if data.on == "device" else "by the bit-exact reference"
    others = ((data.float, "the float model"), (data.litert, "LiteRT"))
    found = [_accuracy_row(f"this model, {where}", data)]
    found += [_accuracy_row(f"{name} ({one.what})", one) for one, name in others if one is not None]
    columns = [
        Column("model"),
        Column("top-1", "%", ".2f"),
        Column("top-5", "%", ".2f"),
        Column("AUC", format=".4f"),
        Column("mean absolute error", format="~4"),
        Column("mean squared error", format="~4"),
        Column("other classes", "samples", ",", "samples of which it says another class"),
        Column("other outputs", "samples", ",", "samples whose output bytes differ"),
    ]
    said = [f"{data.samples:,} samples"]
    if data.saturated:
        said.append(
            f"{data.saturated:.2%} of the inputs' values are beyond what the input can hold"
        )
    if data.litert_reason:
        said.append(f"no LiteRT: {data.litert_reason}")
    return Table("Accuracy", columns, found, caption=f"{'; '.join(said)}.")


def _accuracy_row(name: str, scores: BesideRecord | DataRecord) -> list[Value | Cell]:
    error = scores.mean_error  # LiteRT and the float model are compared with the model as it ran
    return [
        name,
        None if scores.top1 is None else 100 * scores.top1,
        None if scores.top5 is None else 100 * scores.top5,
        scores.auc,
        error.absolute if error else None,
        error.squared if error else None,
        *(
            (scores.other_classes, scores.other_bytes)
            if isinstance(scores, BesideRecord)
            else (None, None)
        ),
    ]
