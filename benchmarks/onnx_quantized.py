"""Quantized ONNX networks as integer code: bytes, memory and cycles.

    python benchmarks/onnx_quantized.py [--cases FOLDER] [--inputs 50] [--json FILE]

Five networks that onnxruntime.quantization makes from numpy weights, in QDQ and QOperator form, and
the keyword spotter of a folder where it is there. For each: bytes that differ from onnxruntime's,
in all integer tensors of the QOperator form (through the reference, which the device is compared
with layer by layer) and in the outputs of the device; the arena; calls for floating-point or heap
functions from integer layers on a core without FPU; and cycles beside those of the same network in
TFLite Micro's arithmetic, which is what a .tflite file of it costs. Exit status 1 where a byte
differs, a call is found, or the cycles are more than 1.05 times as many.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from quantized_networks import NETWORKS, inputs, quantized

import covp
from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.graph.graph import TFLM, Graph, copy_graph
from covp.graph.onnx import load_onnx, read_onnx
from covp.graph.reference import run_all

PLATFORMS = ("cortex-m4", "riscv32", "cortex-m0plus")
BORDERS = ("QUANTIZE", "DEQUANTIZE")
MOST = 1.05
"""Times the cycles of TFLite Micro's arithmetic."""
FORBIDDEN = ("__aeabi_f", "__aeabi_d", "sf3", "sf2", "sisf", "sfsi", "malloc", "free")


@dataclass(frozen=True)
class Row:
    """One network.

    Attributes:
        bytes_compared, bytes_wrong: of integer tensors, the reference beside onnxruntime.
        outputs_wrong: elements of the device's outputs.
        arena: bytes.
        calls: of integer layers for floating-point or heap functions.
        cycles, tflite_cycles: by platform, without the layers at the borders, that are float.
        whole: cycles by platform with those layers.
    """

    name: str
    bytes_compared: int
    bytes_wrong: int
    outputs_wrong: int
    arena: int
    calls: int
    cycles: dict[str, int]
    tflite_cycles: dict[str, int]
    whole: dict[str, int]

    @property
    def right(self) -> bool:
        """Whether all conditions hold."""
        ratios = [self.cycles[p] / self.tflite_cycles[p] for p in self.cycles]
        return not (self.bytes_wrong or self.outputs_wrong or self.calls) and max(ratios) <= MOST


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """With int8 as it is; by default x86 makes QDQ models uint8, and leaves a part float then."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def exposed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the results of all quantized operators as outputs."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for node in changed.graph.node:
        if node.op_type.startswith("QLinear") or node.op_type in ("QGemm", "QuantizeLinear"):
            output = onnx.helper.make_empty_tensor_value_info(node.output[0])
            changed.graph.output.append(output)
    return changed


def compare_bytes(
    model: onnx.ModelProto, graph: Graph, values: Sequence[np.ndarray[Any, Any]]
) -> tuple[int, int]:
    """(compared, wrong) bytes of all integer tensors that both have."""
    session = session_of(exposed(model))
    names = [output.name for output in session.get_outputs()]
    feed = session.get_inputs()[0].name
    compared = wrong = 0
    for x in values:
        known = run_all(graph, [x])
        for name, wanted in zip(names, session.run(None, {feed: x}), strict=True):
            if name in known and wanted.dtype.itemsize == 1:
                compared += wanted.size
                wrong += int((known[name] != wanted).sum())
    return compared, wrong


def as_tflite(graph: Graph) -> Graph:
    """The same network in TFLite Micro's arithmetic."""
    changed = copy_graph(graph)
    changed.ops = [replace(op, rounding=TFLM) for op in changed.ops]
    return changed


def cycles_of(graph: Graph, platform: str, x: np.ndarray[Any, Any]) -> tuple[int, int, Any]:
    """Cycles without and with the float layers at the borders, and the outputs."""
    program = covp.compile(graph, platform)
    kinds = {layer.name: layer.op for layer in program.layers}
    with covp.Session(platform) as session:
        module = session.load(program)
        result = module.run(x)
        profile = module.profile()
    inner = [layer for layer in profile.layers if kinds.get(layer.name) not in BORDERS]
    return sum(layer.cycles or 0 for layer in inner), profile.cycles or 0, result


def forbidden_calls(graph: Graph) -> int:
    """Functions for floats or the heap that integer layers call on a core without FPU."""
    platform = load_platform("cortex-m0plus")
    program = covp.compile(graph, platform)
    inner = {layer.function for layer in program.layers if layer.op not in BORDERS}
    toolchain, found = get_toolchain("zig", platform.core), 0
    for file, text in program.sources.items():
        if file.removesuffix(".c") not in inner:
            continue
        (compiled,) = toolchain.compile([SourceText(file, text)], flags=("-Os",))
        table = ELFFile(io.BytesIO(Path(compiled).read_bytes())).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        names = [s.name for s in table.iter_symbols() if s["st_shndx"] == "SHN_UNDEF"]
        found += sum(any(part in name for part in FORBIDDEN) for name in names)
    return found


def measure(
    name: str,
    model: onnx.ModelProto,
    graph: Graph,
    values: Sequence[np.ndarray[Any, Any]],
    peer: Graph,
) -> Row:
    """All figures of one network."""
    session = session_of(model)
    feed = session.get_inputs()[0].name
    wanted = session.run(None, {feed: values[0]})[0]
    cycles, whole, other, wrong = {}, {}, {}, 0
    for platform in PLATFORMS:
        cycles[platform], whole[platform], result = cycles_of(graph, platform, values[0])
        wrong += int((np.asarray(result) != wanted).sum())
        x = values[0] if peer.inputs[0].dtype == np.float32 else np.zeros(peer.inputs[0].shape)
        other[platform], _, _ = cycles_of(peer, platform, x.astype(peer.inputs[0].dtype))
    arena = covp.compile(graph, PLATFORMS[0]).arena_bytes
    compared = compare_bytes(model, graph, values)
    return Row(name, *compared, wrong, arena, forbidden_calls(graph), cycles, other, whole)


def rows(cases: Path, count: int) -> Iterator[Row]:
    """One network after the other."""
    for name in NETWORKS:
        for form in ("QDQ", "QOperator"):
            model = quantized(name, form)
            graph = read_onnx(model, name)
            peer = as_tflite(graph)
            values = list(inputs(model, count))
            yield measure(f"{name}, {form}", model, graph, values, peer)
    for form in ("qdq", "qoperator"):
        path = cases / f"micro_kws_m_static_{form}.onnx"
        tflite = cases / "micro_kws_m_quantized.tflite"
        if path.exists() and tflite.exists():
            model = onnx.load(path)
            graph = load_onnx(path, {model.graph.input[0].name: (1, 1960)})
            scaled = [50 * x for x in inputs(model, count)]
            peer = covp.load_model(str(tflite))
            yield measure(path.stem, model, graph, scaled, peer)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=Path("cases"))
    parser.add_argument("--inputs", type=int, default=50)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    head = ["network", "bytes wrong", "outputs wrong", "arena", "float or heap calls"]
    print("| " + " | ".join([*head, *(f"{p}: cycles, x TFLite's" for p in PLATFORMS)]) + " |")
    print("|---" * (len(head) + len(PLATFORMS)) + "|")
    found = []
    for row in rows(options.cases, options.inputs):
        found.append(row)
        cells = [row.name, f"{row.bytes_wrong} of {row.bytes_compared:,}", f"{row.outputs_wrong}"]
        cells += [f"{row.arena:,}", f"{row.calls}"]
        for p in PLATFORMS:
            cells.append(f"{row.cycles[p]:,}, {row.cycles[p] / row.tflite_cycles[p]:.3f}")
        print("| " + " | ".join(cells) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")
    return 0 if all(row.right for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
