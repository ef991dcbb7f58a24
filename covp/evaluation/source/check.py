"""`check_source`: what a device computes beside what another library makes of the model's file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import numpy as np

from covp.base.request import Shapes
from covp.evaluation.sample import Array, Sample
from covp.evaluation.source.oracle import NoAnswer, OracleLibrary
from covp.graph.arithmetic import is_tflm
from covp.graph.deviations import Deviation, deviations, expected_values
from covp.graph.equality import FLOAT_TOLERANCE, differences, relative_error
from covp.graph.graph import Graph, Op, Tensor
from covp.graph.models import load_model
from covp.graph.ops import macs
from covp.graph.passes.axis_orders import is_elementwise
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_all
from covp.graph.rounding_rules import Oracle

_VALUES = np.array(
    [np.nan, np.inf, -np.inf, 3.4028235e38, -3.4028235e38, 1e-40, -1e-40, 0.0, -0.0]
    + [sign * level for level in (0.49999997, 0.5, 1.5, 2.5, 3.0, 8388609.0) for sign in (1, -1)],
    np.float32,
)
_MOST_LEVELS = 1e6
_CHOOSING = frozenset(
    {
        *("QUANTIZE", "DEQUANTIZE", "REDUCE_MAX", "REDUCE_MIN", "MAX_POOL_2D", "MAX_POOL"),
        *("RESHAPE", "TRANSPOSE", "CONCATENATION", "GATHER", "SPLIT", "SPLIT_V", "STRIDED_SLICE"),
    }
)
"""Operators, beside elementwise ones, whose elements are not computed from several floats."""


def extreme_samples(graph: Graph, seed: int) -> list[Sample]:
    """Return an inference with NaN, infinities, subnormals and values next to half a step; or none.

    Where floats are added up, overflow depends on the order, so nothing can be expected.

    Args:
        graph: whose float inputs get such values.
        seed: of their places and of the other inputs.
    """
    floats = [tensor for tensor in graph.inputs if tensor.dtype == np.float32]
    if not floats or not all(map(_is_defined, graph.ops)):
        return []
    rng = np.random.default_rng(seed)
    inputs = random_inputs(graph.inputs, seed)
    drawn = [_drawn(graph, t, v, rng) for t, v in zip(graph.inputs, inputs, strict=True)]
    return [Sample.of(graph, drawn, "extremes of floats", seed)]


def _is_defined(op: Op) -> bool:
    tensors = (op.input(0), *op.outputs) if op.inputs else op.outputs
    if all(tensor.dtype.kind != "f" for tensor in tensors):
        return True
    return op.kind in _CHOOSING or is_elementwise(op)


def _drawn(graph: Graph, tensor: Tensor, value: Array, rng: np.random.Generator) -> Array:
    """Return probing values in steps of the QUANTIZE that reads the tensor, if one does."""
    if tensor.dtype != np.float32:
        return value
    read = [op for op in graph.consumers(tensor) if op.kind == "QUANTIZE"]
    step = np.float32(read[0].output.scale if read else 1)
    values = np.resize(rng.permutation(_VALUES), tensor.size)
    if any(is_tflm(op) for op in read):
        # levels beyond int32 are undefined in LiteRT's C
        values = np.where(np.abs(values) < _MOST_LEVELS, values, np.float32(_MOST_LEVELS))
    with np.errstate(all="ignore"):
        return np.asarray(values * step, np.float32).reshape(tensor.shape)


_OWN = "covp's interpreter, nothing fused"
_USUAL_MACS = 400_000_000
"""Limit of MACs of all inferences by default, which take less than about a second."""
_USUAL_SECONDS, _MOST_SECONDS = 3, 600
"""Limits of processor time: by default, and at most."""


@dataclass(frozen=True)
class Floats:
    """Comparison of floats.

    Attributes:
        elements: of all float tensors that both have, in all inferences.
        unequal: elements that are not equal.
        beyond: elements of which the tolerance does not allow the difference.
        worst: the largest difference, as a share of its tensor's largest magnitude.
    """

    elements: int = 0
    unequal: int = 0
    beyond: int = 0
    worst: float = 0.0

    def and_other(self, got: Array, wanted: Array, beyond: int) -> Floats:
        """Add a further tensor, of which ``beyond`` elements are not within the tolerance."""
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        return Floats(
            self.elements + wanted.size,
            self.unequal + int(wanted.size - np.count_nonzero(same)),
            self.beyond + beyond,
            max(self.worst, relative_error(got, wanted)),
        )

    def __str__(self) -> str:
        """Return text such as "floats within 1e-05, worst 2.1e-07, 8 of 10 elements not equal"."""
        if not self.unequal:
            return f"0 of {self.elements:,} floats differ"
        apart = f"floats within {FLOAT_TOLERANCE:g}"
        if self.beyond:
            apart = f"{self.beyond:,} floats beyond {FLOAT_TOLERANCE:g}"
        count = f"{self.unequal:,} of {self.elements:,} elements not equal"
        return f"{apart}, worst {self.worst:.1e}, {count}"


@dataclass(frozen=True)
class SourceCheck:
    """Result of the comparison with the model's file as it is.

    Attributes:
        oracle: that executed the file, such as "onnxruntime 1.32"; empty where nothing was.
        bytes: of all tensors of integers that both have, in all inferences.
        differ: bytes of their elements that are not equal.
        floats: of all tensors of floats that both have; None: there are none.
        inputs: inferences.
        seconds: host time.
        operators: that compute something else from the same values, one entry each.
        unlike: outputs that have another shape or type in the file's execution, a text each.
        skipped: why nothing was compared, one line; None where it was.
    """

    oracle: str = ""
    bytes: int = 0
    differ: int = 0
    floats: Floats | None = None
    inputs: int = 0
    seconds: float = 0.0
    operators: tuple[Deviation, ...] = ()
    unlike: tuple[str, ...] = ()
    skipped: str | None = None

    @property
    def holds(self) -> bool:
        """True if a documented rule allows every difference, and outputs have their form."""
        return not self.unlike and all(found.rule is not None for found in self.operators)

    def __str__(self) -> str:
        """Return text such as "equal to onnxruntime 1.32: 0 of 9,200 bytes differ"."""
        if self.skipped is not None:
            return f"not compared with the file as it is: {self.skipped}"
        if self.unlike:
            more = f"; {len(self.unlike) - 1} more outputs" if len(self.unlike) > 1 else ""
            return f"beside {self.oracle}: {self.unlike[0]}{more}"
        amounts = [f"{self.differ:,} of {self.bytes:,} bytes differ"] if self.bytes else []
        of = ", ".join(amounts + ([str(self.floats)] if self.floats else []))
        if self.operators:
            wrong = [str(found) for found in self.operators if found.rule is None]
            shown = [*wrong[:2], *([f"{len(wrong) - 2} more operators"] if len(wrong) > 2 else [])]
            return f"beside {self.oracle} {of}: {'; '.join(shown or self._list_allowed())}"
        if self.differ or (self.floats and self.floats.beyond):
            return f"as {self.oracle} within the tolerance of each operator: {of}"
        if self.floats and self.floats.unequal:
            return f"as {self.oracle}: {of}"
        return f"equal to {self.oracle}: {of}"

    def _list_allowed(self) -> list[str]:
        """Return a line on what each rule allows."""
        by_rule: dict[tuple[str, str], list[Deviation]] = {}
        for found in self.operators:
            if found.rule is not None:
                by_rule.setdefault((found.op, found.rule.name), []).append(found)
        return [
            f"{op} {reduce(Deviation.and_other, each).amount} of {len(each)} "
            f"layer{'s'[: len(each) > 1]}, allowed by the rule {rule!r}"
            for (op, rule), each in by_rule.items()
        ]


def check_model(model: str | Path, shapes: Shapes | None = None) -> SourceCheck:
    """Compare the reference of a model with its file, on random and probing inputs.

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
    unlike: dict[str, str] = {}
    for answer in answers:
        known = expected_values(graph, answer)
        for output in graph.outputs:
            if output.data is not None or output.name in known:
                continue
            if output.name not in answer:
                return SourceCheck(skipped=f"{name} has no {output.name}")
            unlike[output.name] = _other_form(graph, output, name, answer[output.name])
    found = compare(graph, given, outputs, answers, "LiteRT" if "LiteRT" in name else "onnxruntime")
    seconds = time.perf_counter() - start
    return replace(found, oracle=name, unlike=tuple(unlike.values()), seconds=seconds)


def _other_form(graph: Graph, output: Tensor, oracle: str, theirs: Array) -> str:
    """Say that an output has another shape or type in the file's execution."""
    made = next((f"{op.kind} {op.name} gives " for op in graph.ops if output in op.outputs), "")
    forms = [f"{dtype} {tuple(shape)}" for dtype, shape in
             ((output.dtype, output.shape), (theirs.dtype, theirs.shape))]  # fmt: skip
    return f"{made}{output.name} as {forms[0]}, {oracle} as {forms[1]}"


def _starts_fresh(graph: Graph, sample: Sample) -> bool:
    """Return whether an oracle can take the states before the inference as inputs of the file."""
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
    """Return the oracle's name, and the tensors by name of each sample."""
    assert graph.origin is not None
    inputs = [_inputs(graph, sample) for sample in samples]
    seconds = _MOST_SECONDS if wanted else _USUAL_SECONDS
    try:
        library = OracleLibrary.for_file(graph.origin.path)
        return str(library), library.answers(graph, graph.origin.path, inputs, seconds)
    except NoAnswer:
        if not _is_onnx(graph):
            raise
    source = _source(graph, defined=True)
    values = [run_all(source, [each[t.name] for t in source.inputs]) for each in inputs]
    return _OWN, values


def _inputs(graph: Graph, sample: Sample) -> dict[str, Array]:
    """Return values of the file's inputs by name, those of states as well."""
    states = {s.before.name: sample.states.get(s.name, s.initial) for s in graph.states}
    return {t.name: v for t, v in zip(graph.inputs, sample.inputs, strict=True)} | states


def _source(graph: Graph, defined: bool = False) -> Graph:
    """Return the graph of the file with nothing fused.

    Args:
        graph: that was read from it.
        defined: quantization, too, is what the standard defines, see `load_onnx`.
    """
    assert graph.origin is not None
    if not _is_onnx(graph):
        return graph
    from covp.graph.onnx.reader import load_onnx  # onnx takes a while to import

    return load_onnx(graph.origin.path, graph.origin.shapes, False, defined)


def compare(
    graph: Graph,
    samples: Sequence[Sample],
    outputs: Sequence[Array],
    answers: Sequence[Mapping[str, Array]],
    oracle: Oracle,
) -> SourceCheck:
    """Compare the samples with an oracle's answers.

    Args:
        graph, samples, outputs: as for `check_source`.
        answers: tensors by name for each sample.
        oracle: whose they are.
    """
    bytes_, differ, operators = 0, 0, dict[str, Deviation]()
    floats: Floats | None = None
    source: Graph | None = None
    for number, (sample, answer) in enumerate(zip(samples, answers, strict=True)):
        inputs = _inputs(graph, sample)
        wanted = {n: v for n, v in expected_values(graph, answer).items() if n not in inputs}
        ours = dict(sample.tensors)
        if number == 0:
            ours |= {t.name: value for t, value in zip(graph.outputs, outputs, strict=True)}
        wrong = {name: differences(ours[name], value).size for name, value in wanted.items()}
        for name, value in wanted.items():
            if value.dtype.kind == "f":
                floats = (floats or Floats()).and_other(ours[name], value, wrong[name])
            else:
                bytes_ += value.nbytes
                differ += wrong[name] * value.itemsize
        if any(wrong.values()):
            source = source or _source(graph)
            for found in deviations(graph, source, {**wanted, **inputs}, oracle):
                before = operators.get(found.tensor)
                operators[found.tensor] = found if before is None else found.and_other(before)
    return SourceCheck(
        bytes=bytes_,
        differ=differ,
        floats=floats,
        inputs=len(samples),
        operators=tuple(operators.values()),
    )
