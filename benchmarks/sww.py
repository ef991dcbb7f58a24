"""The streaming wake word on virtual boards: detections in waves, cycles of a frame.

    python benchmarks/sww.py --data DIR [--platform cortex-m4 --platform riscv32] [--form both]

DIR is benchmark/runner/sww_data_dir of mlcommons/tiny: truth files (sww_*_test.json) and the waves
that they name; a wave that is not there is said and left out. Each wave is played over the virtual
I2S line to the firmware that `covp board sww` serves: features, network and detection are computed
on the emulated core, 32 ms at a time, and the interface board records the pin WW_DETECTED.

"streaming" is the network's streaming form, "window" the plain one on the last 30 rows each
time. Cycles are those between the edges of the pin PROCESSING. FP and FN: false positives and
negatives by the rules (word + 1 s), in brackets as the runner's code counts them (word + 2 s).
"differing": outputs unlike those of LiteRT's reference kernels on features in double precision, and
the largest difference in steps of 1/256. Exits with 1 where a frame came too fast for the core, 5 %
of the outputs differ, or more than 8 FP or FN are counted on the long wave, which is the closed
division's limit.

MLPerf-Tiny-style, emulated, not a submission.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import (  # type: ignore[import-untyped]
    Interpreter,
    OpResolverType,
)
from numpy.typing import NDArray

from covp.evaluation import build
from covp.firmware.mlperf.bench import BoardBench
from covp.firmware.mlperf.detections import RUNNER_SECONDS, Truth, read_truth, score
from covp.firmware.mlperf.interface_board import InterfaceBoard
from covp.firmware.mlperf.log_mel import HOP, log_mel, quantize
from covp.firmware.mlperf.wake_word import NO_WORD, WINDOW_ROWS, build_wake_word
from covp.graph.models import find_model
from covp.hardware.waves import read_wave

DIFFERING = 0.05
"""Share of outputs that may differ: a feature at the edge of two steps moves outputs a little."""


@dataclass
class Heard:
    """What a board made of a wave.

    Attributes:
        outputs: of each frame.
        cycles: of each frame.
        detections: seconds.
        lines: of the firmware's answer to `stop`.
    """

    outputs: NDArray[np.int64]
    cycles: NDArray[np.int64]
    detections: list[float]
    lines: list[str]


def listen(bench: BoardBench, folder: Path, truth: Truth) -> Heard:
    """Play one wave to a board."""
    text: list[str] = []
    edges: list[int] = []
    interface = InterfaceBoard(bench, folder, text.append)
    bench.watch(lambda name, level, cycle: edges.append(cycle) if name == "processing" else None)
    for command in ("dut stop", "dut start", "record_detections"):
        interface.execute(command)
    edges.clear()
    interface.execute(f"play {truth.wave}")
    text.clear()
    interface.execute("dut stop")
    lines = [line.replace("[dut]: ", "") for line in "".join(text).split("\r\n")]
    answer = "".join(lines)
    outputs = answer[answer.index("[", answer.index("activations")) + 1 :].split("]")[0]
    cycles = np.diff(np.array(edges[: len(edges) // 2 * 2]).reshape(-1, 2), axis=1)[:, 0]
    return Heard(np.array(outputs.split(","), np.int64), cycles, interface.detections, lines)


def expected_outputs(model: Path, samples: NDArray[Any], frames: int) -> NDArray[np.int64]:
    """The word's output after each frame, by LiteRT's reference kernels."""
    interpreter = Interpreter(str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    source, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero = source["quantization"]
    rows = quantize(log_mel(np.concatenate([np.zeros(HOP, np.int16), samples])), scale, zero)
    outputs = np.full(frames, NO_WORD, np.int64)
    for frame in range(WINDOW_ROWS - 1, frames):
        window = rows[frame + 1 - WINDOW_ROWS : frame + 1]
        interpreter.set_tensor(source["index"], window.reshape(source["shape"]))
        interpreter.invoke()
        outputs[frame] = interpreter.get_tensor(result["index"]).reshape(-1)[0]
    return outputs


def truths(folder: Path) -> list[Truth]:
    """The waves of all truth files that are there; says which are not."""
    found = []
    for path in sorted(folder.glob("sww_*_test.json")):
        for truth in read_truth(path):
            if (folder / truth.wave).is_file():
                found.append(truth)
            else:
                print(f"{path.name}: {truth.wave} is not in {folder}: not counted")
    return sorted(found, key=lambda truth: truth.seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--platform", action="append")
    parser.add_argument("--form", choices=["streaming", "window", "both"], default="both")
    options = parser.parse_args()
    forms = ["streaming", "window"] if options.form == "both" else [options.form]
    model = find_model("sww").path
    if model is None:
        print("sww: the official model is not here (COVP_MODEL_DIR); a stand-in detects nothing")
        return 1
    waves = truths(options.data)
    print(
        "| platform | form | wave | frames | cycles of a frame | at most | of 32 ms "
        "| words | FN | FP | differing |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    fine = True
    for platform in options.platform or ["cortex-m4", "riscv32"]:
        for form in forms:
            made = build("sww", platform, streaming=form == "streaming")
            with BoardBench(made.program, build_wake_word(made)) as bench:
                for truth in waves:
                    fine &= row(bench, options.data, truth, form, model)
    return 0 if fine else 1


def row(bench: BoardBench, folder: Path, truth: Truth, form: str, model: Path) -> bool:
    """Print one line of the table; whether all is as it should be."""
    heard = listen(bench, folder, truth)
    samples, _ = read_wave(folder / truth.wave)
    expected = expected_outputs(model, samples[:, 0], len(heard.outputs))
    differences = np.abs(heard.outputs - expected)
    by_rule = score(heard.detections, truth.windows)
    by_runner = score(heard.detections, truth.windows, RUNNER_SECONDS)
    frame = bench.hertz * HOP / 16_000
    cells = [
        bench.device.platform.name,
        form,
        truth.wave,
        f"{len(heard.outputs):,}",
        f"{heard.cycles.mean():,.0f}",
        f"{heard.cycles.max():,}",
        f"{heard.cycles.mean() / frame:.1%}",
        str(len(truth.windows)),
        f"{len(by_rule.false_negatives)} ({len(by_runner.false_negatives)})",
        f"{len(by_rule.false_positives)} ({len(by_runner.false_positives)})",
        f"{np.count_nonzero(differences)}, {differences.max()}",
    ]
    print(f"| {' | '.join(cells)} |")
    errors = [line for line in heard.lines if line.startswith("e-[")]
    for line in errors:
        print(f"    {line}")
    is_long = truth.wave == "long_wav.wav"
    alike = np.mean(differences != 0) < DIFFERING
    return not errors and bool(alike) and (by_rule.passes or not is_long)


if __name__ == "__main__":
    sys.exit(main())
