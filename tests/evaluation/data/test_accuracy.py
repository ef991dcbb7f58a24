"""Many samples on cores and on the reference, beside LiteRT and what numpy says of the labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.evaluation import Build, Runner, Sample, build
from covp.evaluation.data.accuracy import Data, accuracy_of, first_inputs
from covp.evaluation.data.stored import quantize, real
from covp.graph.graph import Graph
from covp.graph.reference import ReferenceExecutor, run_reference
from covp.graph.zoo.tflite_writer import write_tflite

from .networks import classifier, dense, floats, summing

Array = NDArray[Any]
Litert = Callable[[bytes, Sequence[Array]], list[Array]]


@pytest.fixture(scope="module")
def made() -> Build:
    return build(classifier(), "riscv32")


def saved(path: Path, array: Array) -> Path:
    np.save(path, array)
    return path


def stored(graph: Graph, values: Array) -> Array:
    return quantize(values, graph.inputs[0])


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m4"])
def test_accuracy_is_that_of_litert(platform: str, tmp_path: Path, litert: Litert) -> None:
    graph = classifier()
    x = floats((40, 6, 6, 2))
    model = write_tflite(graph)
    outputs = [litert(model, [stored(graph, sample[None])])[0][0] for sample in x]
    labels = np.random.default_rng(1).integers(0, 12, 40)
    order = [np.argsort(-row.astype(int), kind="stable").tolist() for row in outputs]
    top1 = np.mean([row[0] == label for row, label in zip(order, labels, strict=True)])
    top5 = np.mean([label in row[:5] for row, label in zip(order, labels, strict=True)])
    assert 0 < top1 < top5 < 1
    data = Data(saved(tmp_path / "x.npy", x), saved(tmp_path / "y.npy", labels))
    made = build(graph, platform)
    on_device = accuracy_of(made, data)
    assert on_device.scores.top1 == top1 == on_device.accuracy and on_device.scores.top5 == top5
    assert (on_device.samples, on_device.on) == (40, "device")
    limited = accuracy_of(made, Data(data.samples, data.labels, limit=10))
    assert limited.samples == 10
    by_reference = accuracy_of(made, Data(data.samples, data.labels, on="reference"))
    assert by_reference.scores == on_device.scores and by_reference.cycles is None


def test_cycles_are_those_of_single_runs(made: Build, tmp_path: Path) -> None:
    x = stored(made.graph, floats((6, 1, 6, 6, 2)) * np.arange(6).reshape(-1, 1, 1, 1, 1))
    cycles = []
    for sample in x:
        with Runner(made) as runner:
            cycles.append(runner.run(Sample.of(made.graph, [sample])).profile.cycles or 0)
    assert len(set(cycles)) > 1
    found = accuracy_of(made, Data(saved(tmp_path / "x.npy", x))).cycles
    assert found is not None
    assert (found.min, found.max) == (min(cycles), max(cycles))
    assert found.mean == np.mean(cycles)


def test_area_under_the_curve_and_errors(tmp_path: Path) -> None:
    labels = np.array([0, 1, 1, 0, 1, 0])
    score, auto = dense(8, 1), dense(8, 8)
    x = floats((6, 8), 3)

    def of(graph: Graph) -> Array:
        outputs = [run_reference(graph, [stored(graph, row[None])])[0] for row in x]
        return real(np.concatenate(outputs), graph.outputs[0])

    def auc(scores: Array) -> float:
        pairs = [(a > b) + (a == b) / 2 for a in scores[labels == 1] for b in scores[labels == 0]]
        return float(np.mean(pairs))

    samples, classes = saved(tmp_path / "x.npy", x), saved(tmp_path / "y.npy", labels)
    found = accuracy_of(build(score, "riscv32"), Data(samples, classes, "reference"))
    assert found.scores.auc == found.accuracy == pytest.approx(auc(of(score)[:, 0]))
    found = accuracy_of(build(auto, "riscv32"), Data(samples, classes, "reference"))
    distance = np.mean((of(auto).astype(np.float64) - x) ** 2, axis=1)
    assert found.scores.auc == pytest.approx(auc(distance)) and found.scores.top1 is None
    wanted = floats((6, 8), 9)
    targets = saved(tmp_path / "targets.npy", wanted)
    error = accuracy_of(build(auto, "riscv32"), Data(samples, targets)).scores.mean_error
    assert error is not None
    assert error.absolute == pytest.approx(np.mean(np.abs(of(auto) - wanted)))
    assert error.squared == pytest.approx(np.mean((of(auto) - wanted) ** 2))


def test_files_of_all_kinds_are_the_same_samples(made: Build, tmp_path: Path) -> None:
    x = floats((5, 6, 6, 2))
    labels = [3, 1, 4, 1, 5]
    for name in ("floats", "raw", "raw_floats"):
        (tmp_path / name).mkdir()
    for index, sample in enumerate(x):
        np.save(tmp_path / "floats" / f"{index}.npy", sample[None] if index else sample)
        (tmp_path / "raw" / f"{index}.bin").write_bytes(stored(made.graph, sample).tobytes())
        (tmp_path / "raw_floats" / f"{index}.raw").write_bytes(sample.astype("<f4").tobytes())
    (tmp_path / "readme.txt").write_text("no sample")
    np.savez(tmp_path / "x.npz", input_0=x)
    saved(tmp_path / "x.npy", x)
    saved(tmp_path / "double.npy", x.astype(np.float64))
    saved(tmp_path / "stored.npy", stored(made.graph, x[:, None]))
    np.save(tmp_path / "y.npy", labels)
    (tmp_path / "y.txt").write_text("\n".join(map(str, labels)))
    rows = "".join(f"{i}.npy,{label}\n" for i, label in reversed(list(enumerate(labels))))
    (tmp_path / "named.csv").write_text(f"file,class\n{rows}")
    pairs = [("x.npy", "y.npy"), ("x.npz", "y.txt"), ("double.npy", "y.txt"), ("raw", "y.txt"),
             ("stored.npy", "y.npy"), ("raw_floats", "y.npy"), ("floats", "named.csv")]  # fmt: skip
    found = []
    for samples, answers in pairs:
        data = Data(tmp_path / samples, tmp_path / answers, "reference")
        found.append(accuracy_of(made, data).scores)
        (first,) = first_inputs(data, made.graph)
        np.testing.assert_array_equal(first, stored(made.graph, x[:1]))
    assert set(found) == {found[0]}


def test_several_inputs_come_from_one_archive(tmp_path: Path) -> None:
    from covp.graph.attributes import Elementwise
    from covp.graph.zoo.builder import GraphBuilder

    builder = GraphBuilder("sum")
    a, b = builder.input((1, 4), scale=0.5), builder.input((1, 4), scale=0.25)
    graph = builder.graph(builder.add("ADD", a, b, attributes=Elementwise(), scale=0.25))
    x, y = floats((9, 4), 1), floats((9, 4), 2)
    np.savez(tmp_path / "x.npz", input_1=y, input_0=x)
    sums = np.clip(np.round(x * 2) / 2 + np.round(y * 4) / 4, -32, 31.75)
    targets = saved(tmp_path / "y.npy", sums)
    made = build(graph, "cortex-m4")
    error = accuracy_of(made, Data(tmp_path / "x.npz", targets)).scores.mean_error
    assert error is not None and error.absolute == 0
    with pytest.raises(UsageError, match="is one array, sum has the inputs input_0, input_1"):
        accuracy_of(made, Data(saved(tmp_path / "x.npy", x)))
    np.savez(tmp_path / "x.npz", input_1=y, input0=x)
    with pytest.raises(UsageError, match="no array 'input_0': did you mean input"):
        accuracy_of(made, Data(tmp_path / "x.npz"))


@pytest.mark.parametrize("on", ["device", "reference"])
def test_a_sequence_starts_from_a_reset(on: Any, tmp_path: Path) -> None:
    made = build(summing(), "riscv32")
    x = np.random.default_rng(0).integers(-9, 20, (7, 5, 3)).astype(np.int8)
    wanted = []
    for sequence in x:
        executor = ReferenceExecutor(made.graph)
        wanted.append([executor.run(step[None])[0][0] for step in sequence][-1] * np.float32(0.1))
    targets = saved(tmp_path / "y.npy", np.array(wanted, np.float32))
    found = accuracy_of(made, Data(saved(tmp_path / "x.npy", x), targets, on))
    assert found.scores.mean_error is not None and found.scores.mean_error.squared < 1e-12
    assert (found.samples, found.steps) == (7, 5)


def test_rows_of_a_stream_end_in_the_answer_of_the_window(tmp_path: Path) -> None:
    made = build("sww", "riscv32", streaming=2)
    plain = made.graph.streaming
    assert plain is not None
    source = plain.plain.inputs[0]
    x = np.random.default_rng(0).integers(-128, 128, (6, *source.shape[1:])).astype(np.int8)
    answers = [np.argmax(run_reference(plain.plain, [sample[None]])[0]) for sample in x]
    data = Data(saved(tmp_path / "x.npy", x), saved(tmp_path / "y.npy", np.array(answers)))
    found = accuracy_of(made, Data(data.samples, data.labels, "reference"))
    assert (found.accuracy, found.steps) == (1.0, source.shape[plain.axis] // 2)


def test_values_that_the_input_cannot_hold_are_counted(made: Build, tmp_path: Path) -> None:
    x = np.zeros((4, 6, 6, 2), np.float32)
    # the type ends at (127 + 3) * 0.05 and (-128 + 3) * 0.05, and half a step beyond
    x[0, 0, 0], x[1, 0, 0], x[2, 0, 0] = (6.6, -6.3), (6.52, -6.27), (1e9, -1e9)
    found = accuracy_of(made, Data(saved(tmp_path / "x.npy", x), on="reference"))
    assert found.saturated == 4 / x.size


WRONG: list[tuple[Array, Any, str]] = [
    (np.zeros((3, 6, 6, 2), np.int16), None, r"x.npy: is int16; input_0 takes int8 of shape "
     r"\(samples, 1, 6, 6, 2\), stored with scale 0.05, zero point -3, or floats"),
    (np.zeros((3, 6, 6, 2), np.uint8), None, "is uint8"),
    (np.zeros((3, 6, 5, 2), np.int8), None, r"has the shape \(3, 6, 5, 2\); input_0 takes"),
    (np.zeros((3, 4, 6, 6, 2), np.int8), None, "has the shape"),
    (np.zeros((0, 6, 6, 2), np.int8), None, "has no samples"),
    (np.full((3, 6, 6, 2), np.nan, np.float32), None, "values that are not finite"),
    (np.zeros((3, 6, 6, 2), np.int8), np.array([1, 2]), "has 2 labels, .*x.npy has 3 samples"),
    (np.zeros((3, 6, 6, 2), np.int8), np.array([1, 2, 12]), "sample 2 is of class 12; softmax_.*"
     "has the classes 0 to 11"),
    (np.zeros((3, 6, 6, 2), np.int8), np.array([1, -2, 12]), "sample 1 is of class -2"),
    (np.zeros((3, 6, 6, 2), np.int8), np.eye(12, dtype=int)[:3], "numpy.argmax"),
    (np.zeros((3, 6, 6, 2), np.int8), np.zeros((3, 4)), "4 values for each sample; softmax.* 12"),
    (np.zeros((3, 6, 6, 2), np.int8), np.array(["a", "b", "c"]), "labels are integers or floats"),
]  # fmt: skip


@pytest.mark.parametrize(("samples", "labels", "reason"), WRONG)
def test_what_does_not_fit_is_said_in_one_line(
    made: Build, tmp_path: Path, samples: Array, labels: Any, reason: str
) -> None:
    answers = None if labels is None else saved(tmp_path / "y.npy", labels)
    with pytest.raises(UsageError, match=reason) as refusal:
        accuracy_of(made, Data(saved(tmp_path / "x.npy", samples), answers, "reference"))
    assert "\n" not in str(refusal.value)


def test_files_that_cannot_be_used(made: Build, tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "cat.png").write_bytes(b"PNG")
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "0.bin").write_bytes(b"123")
    (tmp_path / "many").mkdir()
    saved(tmp_path / "many" / "0.npy", floats((2, 6, 6, 2)))
    (tmp_path / "text.npy").write_text("text")
    (tmp_path / "text.npz").write_text("text")
    saved(tmp_path / "pickled.npy", np.array([{}], object))
    good = saved(tmp_path / "x.npy", floats((2, 6, 6, 2)))
    (tmp_path / "words.txt").write_text("1\ncat\n")
    (tmp_path / "ragged.csv").write_text("1,2\n1\n")
    (tmp_path / "empty.csv").write_text("class\n")
    cases = [("pictures", None, "cat.png must be decoded first: write each sample"),
             ("short", None, r"has 3 bytes; a sample has 72 \(int8\) or 288 \(float32\)"),
             ("many", None, "but must be one sample"), ("text.npy", None, "holds no plain array"),
             ("text.npz", None, "not an archive"), ("pickled.npy", None, "holds no plain array"),
             ("no.npy", None, "cannot be read"), ("x.npy", "words.txt", "words.txt:2: 'cat'"),
             ("x.npy", "ragged.csv", "ragged.csv:2: 1 numbers, not 2"),
             ("x.npy", "empty.csv", "has no labels"), ("x.npy", "no.txt", "no.txt: cannot be read"),
             ]  # fmt: skip
    assert good.is_file()
    for samples, labels, reason in cases:
        answers = None if labels is None else tmp_path / labels
        with pytest.raises(UsageError, match=reason) as refusal:
            accuracy_of(made, Data(tmp_path / samples, answers, "reference"))
        assert "\n" not in str(refusal.value)
