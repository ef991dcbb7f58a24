"""A model file executed by onnxruntime or LiteRT, in a process of its own.

Run as a script: neither library is imported where Unicorn is. Standard input is a line of JSON
(``engine``, ``model``: its path, ``names``: tensors that are wanted, ``inputs``: their names,
``samples``, ``seconds`` of processor time, ``path`` of Python's modules), then an npz file of
inputs ``SAMPLE.POSITION``. Standard output is an npz file of tensors ``SAMPLE.POSITION`` and
``said``, JSON in bytes: their ``names``, and how many are ``outputs``, which come first.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any

Run = Callable[[Sequence[Any]], Sequence[Any]]


def onnxruntime(wanted: dict[str, Any]) -> tuple[list[str], int, Run]:
    """Run the file in onnxruntime as it is, in one thread, without merging Q/DQ pairs."""
    import onnx
    import onnxruntime as ort

    model = onnx.load(wanted["model"])
    outputs = [value.name for value in model.graph.output]
    made = {name for node in model.graph.node for name in node.output if name}
    for name in sorted(made & {*wanted["names"]} - {*outputs}):
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = in_order([value.name for value in session.get_inputs()], wanted["inputs"])

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        given = {name: arrays[position] for name, position in feeds}
        return list(session.run(None, given))

    return [value.name for value in session.get_outputs()], len(outputs), run


def litert(wanted: dict[str, Any]) -> tuple[list[str], int, Run]:
    """Run the file in LiteRT with BUILTIN_REF kernels and all tensors kept; one thread."""
    lite: Any = importlib.import_module("ai_edge_litert.interpreter")

    machine = lite.Interpreter(
        model_path=wanted["model"],
        experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    machine.allocate_tensors()
    names: dict[int, str] = {}
    for detail in machine.get_tensor_details():  # a name that stands twice gets its index
        name, index = detail["name"], detail["index"]
        names[index] = f"{name}_{index}" if name in names.values() else name
    results = [detail["index"] for detail in machine.get_output_details()]
    inner = [i for i, name in names.items() if i not in results and name in wanted["names"]]
    sources = [detail["index"] for detail in machine.get_input_details()]
    feeds = in_order([names[index] for index in sources], wanted["inputs"])

    def read(index: int) -> Any:
        try:
            return machine.get_tensor(index)
        except ValueError:  # one without data
            return None

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        machine.reset_all_variables()
        for index, (_, position) in zip(sources, feeds, strict=True):
            machine.set_tensor(index, arrays[position])
        machine.invoke()
        return [read(index) for index in (*results, *inner)]

    return [names[index] for index in (*results, *inner)], len(results), run


def in_order(names: Sequence[str], given: Sequence[str]) -> list[tuple[str, int]]:
    """Return the file's inputs with the position of their values: by name, or all in order."""
    if set(names) <= set(given):
        return [(name, given.index(name)) for name in names]
    if len(names) != len(given):
        raise ValueError(f"inputs {', '.join(names)} are not the network's {', '.join(given)}")
    return [(name, position) for position, name in enumerate(names)]


def main() -> int:
    """Answer a request; errors are one line on standard error, status 1; 3: no library."""
    wanted = json.loads(sys.stdin.buffer.readline())
    seconds = int(wanted["seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    sys.path[:] = wanted["path"]
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print
    import numpy as np

    try:
        engine = {"onnxruntime": onnxruntime, "LiteRT": litert}[wanted["engine"]]
        names, outputs, run = engine(wanted)
        inputs = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
        found: dict[str, Any] = {}
        for sample in range(wanted["samples"]):
            arrays = [inputs[f"{sample}.{i}"] for i in range(len(wanted["inputs"]))]
            for position, value in enumerate(run(arrays)):
                # LiteRT gives a tensor without axes as a number
                if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
                    found[f"{sample}.{position}"] = np.asarray(value)
        said = json.dumps({"names": names, "outputs": outputs})
        found["said"] = np.frombuffer(said.encode(), np.uint8)
        np.savez(out, **found)
    except ImportError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 3
    except Exception as error:
        print(" ".join(str(error).split())[:300], file=sys.stderr)
        return 1
    out.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
