"""Quantized ONNX models as integer code: to the byte what onnxruntime computes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import covp
from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.graph.onnx import load_onnx, read_onnx
from covp.graph.reference import run_all

runtime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from quantized_networks import NETWORKS, inputs, quantized  # noqa: E402

CASES = Path("/work/shared/cases")
PLATFORMS = ["cortex-m4", "riscv32", "cortex-m0plus"]
FORMS = ["QDQ", "QOperator"]


def onnxruntime_session(model):
    """With int8 as it is: by default x86 makes it uint8, and leaves some of it in float then."""
    options = runtime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return runtime.InferenceSession(model.SerializeToString(), options)


def run_on(platform, graph, values):
    with covp.Session(platform) as session:
        module = session.load(covp.compile(graph, platform))
        return [np.asarray(module.run(x)) for x in values]


@pytest.mark.costly
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_the_quantizer(name, form):
    model = quantized(name, form)
    session, values = onnxruntime_session(model), list(inputs(model, 3))
    platform = PLATFORMS[(list(NETWORKS).index(name) + FORMS.index(form)) % 3]
    for x, result in zip(values, run_on(platform, read_onnx(model), values), strict=True):
        assert np.array_equal(result, session.run(None, {"x": x})[0])


@pytest.mark.costly
@pytest.mark.parametrize("name", NETWORKS)
def test_only_the_borders_are_float(name):
    """No layer between QUANTIZE and DEQUANTIZE has a float in its C, or calls for one."""
    platform = load_platform("cortex-m0plus")
    program = covp.compile(read_onnx(quantized(name)), platform)
    layers = {layer.function: layer.op for layer in program.layers}
    inner = {f: op for f, op in layers.items() if op not in ("QUANTIZE", "DEQUANTIZE")}
    assert len(layers) - len(inner) <= 2
    toolchain = get_toolchain("zig", platform.core)
    files = {file: text for file, text in program.sources.items() if file[:-2] in inner}
    assert len(files) == len(inner)
    for file, text in files.items():
        assert "float " not in text and "malloc" not in text
        (compiled,) = toolchain.compile([SourceText(file, text)], flags=("-Os",))
        table = ELFFile(io.BytesIO(Path(compiled).read_bytes())).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        needed = {s.name for s in table.iter_symbols() if s["st_shndx"] == "SHN_UNDEF" and s.name}
        integers = {n for n in needed if n.startswith(("__aeabi_l", "__aeabi_u", "__aeabi_i"))}
        assert needed <= integers | {
            "__clzsi2",
            "memcpy",
            "memset",
            "__aeabi_memcpy",
            "__aeabi_memset",
        }


def every_value_an_output(model):
    """The model with all results of its QLinear operators as outputs."""
    for node in model.graph.node:
        if node.op_type.startswith("QLinear") or node.op_type in ("QGemm", "QuantizeLinear"):
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.output[0]))
    return model


@pytest.mark.parametrize("name", NETWORKS)
def test_every_integer_layer(name):
    """All bytes between the layers, over many inputs."""
    model = quantized(name, "QOperator")
    graph = read_onnx(model)
    session = onnxruntime_session(every_value_an_output(model))
    names = [output.name for output in session.get_outputs()]
    compared = 0
    for x in inputs(model, 20):
        values = run_all(graph, [x])
        for label, wanted in zip(names, session.run(None, {"x": x}), strict=True):
            if label in values:
                assert np.array_equal(values[label], wanted), label
                compared += wanted.dtype.itemsize == 1
    assert compared >= 20 * 5


@pytest.mark.costly
@pytest.mark.parametrize("form", ["qdq", "qoperator"])
def test_keyword_spotter(form):
    path = CASES / f"micro_kws_m_static_{form}.onnx"
    if not path.exists():
        pytest.skip("the shared cases are not here")
    graph = load_onnx(path, {"serving_default_input:0": (1, 1960)})
    model = onnx.load(path)
    rng = np.random.default_rng(1)
    values = [rng.uniform(-60, 60, (1, 1960)).astype(np.float32) for _ in range(2)]
    session = onnxruntime_session(model)
    for x, result in zip(values, run_on("riscv32", graph, values), strict=True):
        assert np.array_equal(result, session.run(None, {"serving_default_input:0": x})[0])


def test_memory():
    """A quarter of the 62,692 bytes that float code of another tool takes for such a network."""
    program = covp.compile(read_onnx(quantized("depthwise_cnn")), "cortex-m4")
    assert program.arena_bytes <= 62_692 // 4
