"""`--check source`: what covp computes beside onnxruntime or LiteRT executing the file as it is."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import covp
from covp.evaluation import Sample, build, compare, run, survey
from covp.evaluation.source import check_source, extreme_samples
from covp.evaluation.source.oracle import NoAnswer, OracleLibrary
from covp.graph.arithmetic import by_rule
from covp.graph.attributes import Mean
from covp.graph.graph import Graph, Op
from covp.graph.onnx.proto_graph import ProtoGraph
from covp.graph.ops import OPS
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing.tensors import int8, plain

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from qdq_graphs import judged, random_model  # noqa: E402


def saved(folder, nodes, constants, shape, dtype=np.int8):
    """A model file that takes bytes x and gives bytes y."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", number, shape)],
        [helper.make_tensor_value_info("y", number, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def with_bias(folder, times):
    """A Gemm whose bias has the scale of the products, times a number."""
    values = {
        "s": np.float32(0.02), "z": np.int8(3), "w": np.arange(-8, 8, dtype=np.int8).reshape(4, 4),
        "b": np.array([900, -800, 70, 6], np.int32), "t": np.float32(0.02 * 0.02 * times),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["wf"]),
        helper.make_node("DequantizeLinear", ["b", "t"], ["bf"]),
        helper.make_node("Gemm", ["xf", "wf", "bf"], ["g"], "gemm"),
        helper.make_node("QuantizeLinear", ["g", "s", "z"], ["y"]),
    ]
    return saved(folder, nodes, values, (5, 4))


def maxima(folder):
    values = {
        "s": np.float32(0.05), "z": np.int8(0), "t": np.float32(1 / 256), "y0": np.int8(-128),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("Softmax", ["xf"], ["p"], "softmax"),
        helper.make_node("QuantizeLinear", ["p", "t", "y0"], ["y"]),
    ]
    return saved(folder, nodes, values, (6, 10))


def checked(path, seed=0):
    graph = covp.load_model(path)
    sample = Sample.random(graph, seed)
    return check_source(graph, sample.and_probes(graph), sample.outputs, wanted=True)


def test_a_file_that_is_read_right(tmp_path):
    found = checked(with_bias(tmp_path, 1.0))
    version = ".".join(OracleLibrary.for_file(tmp_path / "model.onnx").version.split(".")[:2])
    assert str(found) == f"equal to onnxruntime {version}: 0 of 80 bytes differ"
    assert found.holds and found.inputs == 4


@pytest.fixture
def unvalidated(monkeypatch):
    """Fusions are not compared with what they replace when a model is read."""
    monkeypatch.setattr("covp.graph.onnx.reader._validate", lambda *_: None)


@pytest.mark.costly
def test_a_wrong_fusion_is_found(tmp_path, monkeypatch, unvalidated):
    """The scale of a bias is ignored, by the reference and the device alike."""
    path = with_bias(tmp_path, 3.5)
    assert checked(path).holds
    monkeypatch.setattr(
        ProtoGraph, "bias_in", lambda self, name, *_: self._producers[name].input[0]
    )
    made = build(path, "riscv32")
    result = run(made)
    assert result.mismatches == 0 and result.check.mismatch is None
    assert result.check.level == "layers" and not result.matches_reference
    assert result.verdict == "NO" and not run(made, check="source").matches_reference
    assert run(made, check="layers").matches_reference, "nobody asked for the file"
    assert result.check.source is not None
    (found,) = result.check.source.operators
    assert (found.layer, found.op, found.tensor) == ("gemm", "FULLY_CONNECTED", "y")
    assert found.rule is None and found.steps > 1
    assert "FULLY_CONNECTED gemm by " in str(result.check.source)


def test_a_softmax_that_overflows_is_found(tmp_path, monkeypatch, unvalidated):
    """A large step, so that few of the table's exponentials are not the largest float or 0."""
    path = maxima(tmp_path)
    right = checked(path)
    assert right.holds and {str(each.rule and each.rule.name) for each in right.operators} <= {
        "whole steps"
    }

    def overflowing(op, values):
        x = values[0]
        powers = np.float32(3e38) * np.exp(
            np.float32(0.05) * np.arange(0, -256, -1, dtype=np.float32)
        )
        chosen = powers.astype(np.float32)[x.max(-1, keepdims=True) - x.astype(int)]
        with np.errstate(all="ignore"):
            levels = np.rint(chosen * np.float32(256) / chosen.sum(-1, keepdims=True))
            return [np.clip(np.nan_to_num(levels) - 128, -128, 127).astype(np.int8)]

    softmax = OPS["SOFTMAX"]
    wrong_softmax = replace(softmax, reference=by_rule(softmax.reference, overflowing))
    monkeypatch.setitem(OPS, "SOFTMAX", wrong_softmax)
    wrong = checked(path)
    assert not wrong.holds and max(each.steps for each in wrong.operators) > 1


@pytest.mark.parametrize(("seed", "kind"), [(5323, "Mul"), (10376, "Mul"), (3298, "AveragePool")])
def test_ties_are_seen_where_no_rule_allows_them(seed, kind, monkeypatch):
    """With a clamp after it onnxruntime makes no operator of its own: ties are those of floats."""
    assert kind in {node.op_type for node in random_model(seed).graph.node}
    assert judged(seed, 3).holds
    for module in ("quantized_values", "converters.quantized_elementwise"):
        monkeypatch.setattr(f"covp.graph.onnx.{module}.is_fused", lambda *_: True)
    found = judged(seed, 3)
    wrong = [each for each in found.operators if each.rule is None]
    assert not found.holds and {each.steps for each in wrong} == {1}


def test_tflite(tmp_path):
    pytest.importorskip("ai_edge_litert")
    graph = covp.load_model("toycar")
    sample = Sample.random(graph)
    found = check_source(graph, [sample], sample.outputs, wanted=True)
    assert found.oracle.startswith("LiteRT ") and found.holds and found.bytes > 1000
    assert {str(each.rule and each.rule.name) for each in found.operators} <= {"rounded twice"}
    wrong = [np.asarray(value ^ np.int8(64)) for value in sample.outputs]
    assert check_source(graph, [sample], wrong, wanted=True).differ > found.differ


def scalar(folder):
    """A file whose output has no axes: the mean of all."""
    builder = GraphBuilder("mean")
    x = builder.input((8,), np.int8, 0.1)
    mean = builder.add("MEAN", x, attributes=Mean((0,), False), scale=0.05, zero_point=0)
    (folder / "mean.tflite").write_bytes(write_tflite(builder.graph(mean)))
    return folder / "mean.tflite"


def test_an_output_without_axes_is_compared(tmp_path):
    pytest.importorskip("ai_edge_litert")
    graph = covp.load_model(scalar(tmp_path))
    sample = Sample.random(graph)
    found = checked_on(graph, sample)
    assert found.bytes == 1 and found.differ == 0
    wrong = [np.asarray(value ^ np.int8(64)) for value in sample.outputs]
    assert check_source(graph, [sample], wrong, wanted=True).differ == 1


def test_outputs_that_are_not_compared_are_not_equal(tmp_path, monkeypatch):
    graph = covp.load_model(with_bias(tmp_path, 1.0))
    sample = Sample.random(graph)
    monkeypatch.setattr(OracleLibrary, "answers", lambda *_: [{}])
    found = checked_on(graph, sample)
    assert str(found).startswith("not compared with the file as it is: onnxruntime ")
    assert found.skipped is not None and "has no y" in found.skipped


@pytest.mark.parametrize(
    "other", [np.zeros((4, 5), np.int8), np.zeros((5, 4), np.float32), np.zeros((), np.int8)]
)
def test_an_output_of_another_form_is_a_difference(tmp_path, monkeypatch, other):
    graph = covp.load_model(with_bias(tmp_path, 1.0))
    sample = Sample.random(graph)
    monkeypatch.setattr(OracleLibrary, "answers", lambda *_: [{"y": other}])
    found = checked_on(graph, sample)
    assert not found.holds and found.skipped is None and "equal" not in str(found)
    theirs = f"as {other.dtype} {other.shape}"
    assert "y as int8 (5, 4), onnxruntime" in str(found) and theirs in str(found)
    assert len(found.unlike) == 1


def test_a_byte_count_speaks_of_bytes(tmp_path):
    """Floats that are within the tolerance are not said to be equal."""
    rng = np.random.default_rng(0)
    weights = numpy_helper.from_array(rng.standard_normal((40, 9)).astype(np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (6, 40))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (6, 9))],
        [weights],
    )
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    read = covp.load_model(tmp_path / "m.onnx")
    sample = Sample.random(read)
    moved = [sample.outputs[0].copy()]
    moved[0][0, :3] *= np.float32(1 + 2.0**-20)
    found = check_source(read, [sample], moved, wanted=True)
    assert found.holds and found.bytes == found.differ == 0 and found.floats is not None
    assert found.floats.elements == 54 and found.floats.unequal >= 3 and not found.floats.beyond
    assert 0 < found.floats.worst < 2.0**-19
    assert str(found).startswith("as onnxruntime ") and "0 of" not in str(found)
    assert f"floats within 1e-05, worst {found.floats.worst:.1e}, " in str(found)
    assert f"{found.floats.unequal} of 54 elements not equal" in str(found)


def test_without_onnxruntime_nodes_are_executed_as_they_stand(tmp_path, monkeypatch, unvalidated):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = with_bias(tmp_path, 3.5)
    found = checked(path)
    assert found.oracle == "covp's interpreter, nothing fused" and found.holds and found.bytes == 80
    monkeypatch.setattr(
        ProtoGraph, "bias_in", lambda self, name, *_: self._producers[name].input[0]
    )
    assert not checked(path).holds


def test_what_cannot_be_judged_says_why(monkeypatch):
    graph = covp.load_model("toycar")
    sample = Sample.random(graph)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = check_source(graph, [sample], sample.outputs, wanted=True)
    assert found.skipped is not None and found.holds
    assert "pip install ai-edge-litert" in str(found)
    graph.origin = None
    assert "not read from a file" in str(check_source(graph, [sample], sample.outputs, True))


def test_answers_are_kept_and_bounded(tmp_path, monkeypatch):
    path = with_bias(tmp_path, 1.0)
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    graph, x = covp.load_model(path), {"x": np.zeros((5, 4), np.int8)}
    library = OracleLibrary.for_file(path)
    with pytest.raises(NoAnswer, match=r"took more than 0 s of processor time$"):
        library.answers(graph, path, [x], seconds=0)
    first = library.answers(graph, path, [x], seconds=60)
    monkeypatch.setattr("subprocess.run", None)
    assert np.array_equal(library.answers(graph, path, [x], seconds=60)[0]["y"], first[0]["y"])
    with pytest.raises(TypeError):  # another input is not the same question
        library.answers(graph, path, [{"x": np.ones((5, 4), np.int8)}], seconds=60)


def test_nothing_of_the_current_folder_is_executed(tmp_path, monkeypatch):
    path = with_bias(tmp_path, 1.0)
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("onnxruntime", "json", "numpy", "signal"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert checked(path).bytes == 80
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("seed", range(0, 1000, 40))
def test_random_graphs(seed):
    """`benchmarks/qdq_graphs.py` compares all of them."""
    assert random_model(seed) == random_model(seed)
    found = judged(seed, 3)
    assert found.holds, str(found)


@pytest.mark.slow
def test_a_thousand_random_graphs():
    wrong = [(seed, str(found)) for seed in range(1000) if not (found := judged(seed, 4)).holds]
    assert wrong == []


def reals(folder, kind, **attributes):
    """A model of one operator on floats."""
    graph = helper.make_graph(
        [helper.make_node(kind, ["x"], ["y"], kind.lower(), **attributes)],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (4, 12))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    opset = [helper.make_opsetid("", 13 if "axes" in attributes else 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "real.onnx")
    return folder / "real.onnx"


def ignoring_nan(op, values):
    return [np.fmax.reduce(values[0], axis=-1, keepdims=True)]


def overflowing(op, values):
    x = values[0]
    with np.errstate(all="ignore"):
        return [(x * np.clip(x + 3, 0, 6) / 6).astype(np.float32)]


def not_a_number(op, values):
    return [np.where(values[0] <= 1, np.float32(0), values[0])]


@pytest.mark.parametrize(
    ("kind", "ours", "wrong", "attributes"),
    [
        ("ReduceMax", "REDUCE_MAX", ignoring_nan, {"axes": [-1]}),
        ("HardSwish", "HARD_SWISH", overflowing, {}),
        ("ThresholdedRelu", "THRESHOLDED_RELU", not_a_number, {}),
    ],
)
def test_floats_at_the_ends_of_their_range(tmp_path, monkeypatch, kind, ours, wrong, attributes):
    graph = covp.load_model(reals(tmp_path, kind, **attributes))

    def judged_now():
        samples = [each for seed in range(3) for each in extreme_samples(graph, seed)]
        assert len(samples) == 3
        return check_source(graph, samples, samples[0].outputs, wanted=True)

    assert judged_now().holds, judged_now()
    assert [op.kind for op in graph.ops] == [ours]
    monkeypatch.setitem(OPS, ours, replace(OPS[ours], reference=wrong))
    assert not judged_now().holds


@pytest.mark.costly
def test_every_question_has_the_same_inputs(tmp_path):
    """The ends of floats, too, where the file's check was requested."""
    path = reals(tmp_path, "HardSwish")
    for check, inputs in ((None, 4), ("layers", 4), ("source", 5)):
        (trial,) = survey(path, ["riscv32"], check=check)
        both = compare(path, "riscv32", ["gemm"], check=check)
        assert trial.result is not None
        found = [run(build(path, "riscv32"), check=check), trial.result, both.alone]
        assert [each.check.inputs for each in found] == [inputs] * 3
        judged = [each.check.source and each.check.source.inputs for each in found]
        assert judged == [None if check == "layers" else inputs] * 3


def test_what_is_next_to_half_a_step(tmp_path, monkeypatch):
    """TFLite's QUANTIZE: adding a half before the cut rounds 0.49999997 up."""
    pytest.importorskip("ai_edge_litert")
    x, y = plain("x", (1, 48)), int8("y", (1, 48), np.float32(1), 0)
    path = tmp_path / "quantize.tflite"
    path.write_bytes(write_tflite(Graph("q", [x], [y], [Op("QUANTIZE", "quantize", [x], [y])])))
    graph = covp.load_model(path)
    (sample,) = extreme_samples(graph, 0)
    assert checked_on(graph, sample).holds

    def upwards(op, values):
        away = np.floor(np.abs(values[0]) + np.float32(0.5)) * np.sign(values[0])
        return [np.clip(away, -128, 127).astype(np.int8)]

    monkeypatch.setitem(OPS, "QUANTIZE", replace(OPS["QUANTIZE"], reference=upwards))
    assert not checked_on(graph, Sample.of(graph, sample.inputs)).holds


def checked_on(graph, sample):
    return check_source(graph, [sample], sample.outputs, wanted=True)


def test_verify_judges_the_models_that_it_is_given(tmp_path, monkeypatch, capsys, unvalidated):
    from covp.cli.main import main
    from covp.testing.verify.verification import Verdict

    monkeypatch.setattr("covp.testing.verify.verify", lambda *_: Verdict("qconv2d", {}, {}))
    path = with_bias(tmp_path, 3.5)

    def status():
        with pytest.raises(SystemExit) as done:
            main(["verify", "qconv2d", "--model", str(path)])
        return done.value.code, capsys.readouterr().out

    assert status()[0] == 0
    monkeypatch.setattr(
        ProtoGraph, "bias_in", lambda self, name, *_: self._producers[name].input[0]
    )
    code, out = status()
    assert code == 1 and f"SOURCE DIFFERS: file of {path}: beside onnxruntime " in out
