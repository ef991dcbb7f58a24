"""`check_source`: what a device computes beside what another library makes of the model's file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from covp.base.request import Shapes
from covp.evaluation.sample import Sample
from covp.evaluation.source.oracle import Library, NoAnswer
from covp.graph.deviations import Deviation, deviations, expected_values
from covp.graph.equality import differences
from covp.graph.graph import Graph
from covp.graph.models import load_model
from covp.graph.ops import macs
from covp.graph.reference import run_all
from covp.graph.rounding_rules import Oracle

Array = NDArray[Any]
_OWN = "covp's interpreter, nothing fused"
_USUAL_MACS = 400_000_000
"""Of all inferences: what is judged by default takes less than about a second."""
_USUAL_SECONDS, _MOST_SECONDS = 3, 600
"""Of processor time: by default, and at most."""


@dataclass(frozen=True)
class SourceCheck:
    """What was compared with the file as it is.

    Attributes:
        oracle: that executed the file, such as "onnxruntime 1.32"; empty where nothing was.
        bytes: of all tensors that both have, in all inferences.
        differ: bytes of elements that are not equal; floats within the usual tolerance are.
        inputs: inferences.
        seconds: host time.
        operators: that compute something else from the same values, one entry each.
        skipped: why nothing was compared, one line; None where it was.
    """

    oracle: str = ""
    bytes: int = 0
    differ: int = 0
    inputs: int = 0
    seconds: float = 0.0
    operators: tuple[Deviation, ...] = ()
    skipped: str | None = None

    @property
    def holds(self) -> bool:
        """Whether a documented rule allows every difference."""
        return all(found.rule is not None for found in self.operators)

    def record(self) -> dict[str, Any] | None:
        """The key ``source`` of a run's ``check``."""
        if self.skipped is not None:
            return None
        return {
            "oracle": self.oracle,
            "bytes": self.bytes,
            "differ": self.differ,
            "inputs": self.inputs,
            "operators": [
                {
                    "layer": found.layer,
                    "op": found.op,
                    "tensor": found.tensor,
                    "differ": found.differ,
                    "elements": found.elements,
                    "steps": None if found.is_float else found.steps,
                    "rule": found.rule.name if found.rule else None,
                }
                for found in self.operators
            ],
        }

    def __str__(self) -> str:
        """Such as "equal to onnxruntime 1.32: 0 of 9,200 bytes differ"."""
        if self.skipped is not None:
            return f"not compared with the file as it is: {self.skipped}"
        of = f"{self.differ:,} of {self.bytes:,} bytes differ"
        if not self.differ:
            return f"equal to {self.oracle}: {of}"
        if not self.operators:
            return f"as {self.oracle} within the tolerance of each operator: {of}"
        wrong = [str(found) for found in self.operators if found.rule is None]
        shown = [*wrong[:2], *([f"{len(wrong) - 2} more operators"] if len(wrong) > 2 else [])]
        return f"beside {self.oracle} {of}: {'; '.join(shown or self._allowed())}"

    def _allowed(self) -> list[str]:
        """What each rule allows."""
        by_rule: dict[tuple[str, str], list[Deviation]] = {}
        for found in self.operators:
            if found.rule is not None:
                by_rule.setdefault((found.op, found.rule.name), []).append(found)
        return [
            f"{op} {reduce(Deviation.and_other, each).amount} of {len(each)} "
            f"layer{'s'[: len(each) > 1]}, allowed by the rule {rule!r}"
            for (op, rule), each in by_rule.items()
        ]


def judged(model: str | Path, shapes: Shapes | None = None) -> SourceCheck:
    """The reference of a model beside its file, on random and probing inputs.

    Args:
        model, shapes: as for `covp.load_model`.

    Raises:
        CovpError: there is no such model, or it cannot be read.
    """
    graph = load_model(model, shapes)
    sample = Sample.random(graph)
    return check_source(graph, sample.and_probes(graph), sample.outputs, wanted=False)


def check_source(
    graph: Graph,
    samples: Sequence[Sample],
    outputs: Sequence[Array],
    wanted: bool,
) -> SourceCheck:
    """Compare all tensors that the file's graph and an oracle have, over several inputs.

    The oracle is onnxruntime for .onnx files and LiteRT with its reference kernels for .tflite
    files; for .onnx files without onnxruntime covp's own interpreter of the nodes as they stand.

    Args:
        graph: as it was read from a file.
        samples: whose outputs and tensors the device has, see `covp.evaluation.check`.
        outputs: of the device for the first sample.
        wanted: it was requested, so it may take long.
    """
    start = time.perf_counter()
    given = [sample for sample in samples if _starts_fresh(graph, sample)]
    reason = _why_not(graph, given, wanted)
    if reason is not None:
        return SourceCheck(skipped=reason)
    try:
        name, answers = _answers(graph, given, wanted)
    except NoAnswer as error:
        return SourceCheck(skipped=str(error))
    for answer in answers:
        known = expected_values(graph, answer)
        for output in graph.outputs:
            if output.data is None and output.name not in known:
                return SourceCheck(skipped=f"{name} has no {output.name} of its shape and type")
    found = compare(graph, given, outputs, answers, "LiteRT" if "LiteRT" in name else "onnxruntime")
    return replace(found, oracle=name, seconds=time.perf_counter() - start)


def _starts_fresh(graph: Graph, sample: Sample) -> bool:
    """Whether an oracle can be given the states before the inference: as inputs of the file."""
    return not sample.states or _is_onnx(graph)


def _is_onnx(graph: Graph) -> bool:
    return graph.origin is not None and graph.origin.path.suffix.lower() == ".onnx"


def _why_not(graph: Graph, samples: Sequence[Sample], wanted: bool) -> str | None:
    if graph.origin is None:
        return f"{graph.name} was not read from a file"
    if graph.streaming is not None:
        return "the file's network takes whole windows"
    if not samples or not samples[0].tensors:
        return "nothing is expected of these inputs"
    work = macs(graph) * len(samples)
    if not wanted and work > _USUAL_MACS:
        return f"{work:,} multiply-accumulates; --check source does it"
    return None


def _answers(
    graph: Graph, samples: Sequence[Sample], wanted: bool
) -> tuple[str, list[dict[str, Array]]]:
    """Whose they are, and the tensors by name of each sample."""
    assert graph.origin is not None
    inputs = [_inputs(graph, sample) for sample in samples]
    seconds = _MOST_SECONDS if wanted else _USUAL_SECONDS
    try:
        library = Library.for_file(graph.origin.path)
        return str(library), library.answers(graph, graph.origin.path, inputs, seconds)
    except NoAnswer:
        if not _is_onnx(graph):
            raise
    source = _source(graph)
    assert source is not None
    values = [run_all(source, [each[t.name] for t in source.inputs]) for each in inputs]
    return _OWN, values


def _inputs(graph: Graph, sample: Sample) -> dict[str, Array]:
    """Values of the file's inputs by name, those of states as well."""
    states = {s.before.name: sample.states.get(s.name, s.initial) for s in graph.states}
    return {t.name: v for t, v in zip(graph.inputs, sample.inputs, strict=True)} | states


def _source(graph: Graph) -> Graph:
    """The graph of the file with nothing fused."""
    assert graph.origin is not None
    if not _is_onnx(graph):
        return graph
    from covp.graph.onnx.reader import load_onnx  # onnx takes a while to import

    return load_onnx(graph.origin.path, graph.origin.shapes, fused=False)


def compare(
    graph: Graph,
    samples: Sequence[Sample],
    outputs: Sequence[Array],
    answers: Sequence[Mapping[str, Array]],
    oracle: Oracle,
) -> SourceCheck:
    """The samples beside an oracle's answers.

    Args:
        graph, samples, outputs: as for `check_source`.
        answers: tensors by name for each sample.
        oracle: whose they are.
    """
    bytes_, differ, operators = 0, 0, dict[str, Deviation]()
    source: Graph | None = None
    for number, (sample, answer) in enumerate(zip(samples, answers, strict=True)):
        inputs = _inputs(graph, sample)
        wanted = {n: v for n, v in expected_values(graph, answer).items() if n not in inputs}
        ours = dict(sample.tensors)
        if number == 0:
            ours |= {t.name: value for t, value in zip(graph.outputs, outputs, strict=True)}
        wrong = {name: differences(ours[name], value).size for name, value in wanted.items()}
        bytes_ += sum(value.nbytes for value in wanted.values())
        differ += sum(count * wanted[name].itemsize for name, count in wrong.items())
        if any(wrong.values()):
            source = source or _source(graph)
            for found in deviations(graph, source, {**wanted, **inputs}, oracle):
                before = operators.get(found.tensor)
                operators[found.tensor] = found if before is None else found.and_other(before)
    return SourceCheck("", bytes_, differ, len(samples), 0.0, tuple(operators.values()))
