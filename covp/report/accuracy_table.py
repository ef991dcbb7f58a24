"""`accuracy_table`: how good the model is on the samples of ``--data``, and others beside it."""

from __future__ import annotations

from covp.evaluation.data.quality import BesideRecord, DataRecord
from covp.report.page import Cell, Column, Table
from covp.report.table import Value

Row = list[Value | Cell]


def accuracy_table(data: DataRecord) -> Table:
    """Return the model, the float model and LiteRT on the same samples, as far as they ran."""
    where = "on the device" if data.on == "device" else "by the bit-exact reference"
    others = ((data.float, "the float model"), (data.litert, "LiteRT"))
    found = [_row(f"this model, {where}", data)]
    found += [_row(f"{name} ({one.what})", one) for one, name in others if one is not None]
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


def _row(name: str, scores: BesideRecord | DataRecord) -> Row:
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
