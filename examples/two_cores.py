"""Two cores: one buffers samples of a sensor into frames, the other one classifies them.

    python examples/two_cores.py [gesture|wake-word] [--platform dual-m4-m0plus] [--frames 8]

gesture: the CODAI'22 paper's network (1,525 parameters) on windows of 128 samples of an inertial
sensor at 50 Hz, one every 64 samples. wake-word: MLPerf Tiny's streaming wake word on audio at
16 kHz; each frame of 32 ms becomes a row of features and an inference. The samples are synthetic.

Core "sensor" runs examples/two_cores/sensor.c: sampler and DMA controller fill a ring, interrupts
and a second DMA channel make frames in shared memory, a mailbox tells core "main", which runs
gesture.c or wake_word.c and the network's library, and sends the class back.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import codai22
import numpy as np
from numpy.typing import NDArray

import covp
from covp.frontend.onnx import read_onnx
from covp.graph.equality import differences
from covp.mlperf.log_mel import HOP, log_mel, quantize, tables_header
from covp.multicore import CoresRun, System
from covp.peripherals.sampler import Sampler
from covp.program import Program
from covp.runtime.elf import ElfImage
from covp.toolchain import runtime_dir

Array = NDArray[Any]
FOLDER = Path(__file__).parent / "two_cores"


@dataclass(frozen=True)
class Done:
    """A run and what came out of it.

    Attributes:
        run: instructions, cycles and bytes of both cores.
        variables: of the firmware, by name.
        program: the network on core "main".
    """

    run: CoresRun
    variables: dict[str, Array]
    program: Program


def run(
    platform: str,
    program: Program,
    classifier: dict[str, str],
    samples: Array,
    hops: int,
    hop: int,
    rate: int,
) -> Done:
    """Run sensor.c and a classifier on all whole frames of ``samples``.

    Args:
        platform: with cores "main" and "sensor".
        program: the network.
        classifier: C files of the core "main", name to text.
        samples: rows of words, time first.
        hops, hop: of a frame, and the rows of each.
        rate: rows a second.
    """
    frames = len(samples) // hop - hops + 1
    row_bytes = samples.nbytes // len(samples)
    shared = {name: (FOLDER / name).read_text() for name in ("frames.h",)}
    with System(platform) as system:
        period = system.platform.clock_hz // rate
        options = {"HOPS": hops, "HOP_ROWS": hop, "ROW_BYTES": row_bytes, "PERIOD": period}
        flags = [f"-D{name}={value}u" for name, value in {**options, "FRAMES": frames}.items()]
        sensor = {"sensor.c": (FOLDER / "sensor.c").read_text()}
        system.load_c("sensor", {**shared, **sensor}, flags=flags)
        system.load_c("main", {**shared, **classifier}, program, flags)
        sampler = system.peripherals["sampler"]
        assert isinstance(sampler, Sampler)
        sampler.feed(samples)
        done = system.run()
        output = program.outputs[0]
        kinds = {
            "outputs": (output.dtype, (frames, *output.shape)),
            "rows": (np.dtype(np.int8), (frames, -1)),
            "classes": (np.dtype(np.uint32), (frames,)),
            "dropped": (np.dtype(np.uint32), ()),
        }
        return Done(done, _variables(system, kinds), program)


def _variables(system: System, kinds: dict[str, tuple[Any, Any]]) -> dict[str, Array]:
    """The firmware's variables of these types and shapes, where there are any."""
    found = {}
    for firmware in system.firmware.values():
        symbols = ElfImage(firmware.path.read_bytes()).symbols
        for name in kinds.keys() & symbols.keys():
            kind, shape = kinds[name]
            data = system.board.read(symbols[name].address, symbols[name].size)
            found[name] = np.frombuffer(data, kind).reshape(shape)
    return found


def gesture(platform: str = "dual-m4-m0plus", frames: int = 8) -> tuple[Done, Array]:
    """The gesture network on a random movement, and the reference's outputs for each window."""
    model = read_onnx(codai22.build_onnx(), "codai22", shapes={"x": (1, 128, codai22.CHANNELS)})
    program = covp.compile(model, covp.load_platform(platform).for_core("main"))
    movement = codai22.samples(64 * (frames + 1))[0]
    classifier = {"gesture.c": (FOLDER / "gesture.c").read_text()}
    done = run(platform, program, classifier, movement, hops=2, hop=64, rate=50)
    windows = [movement[None, 64 * n : 64 * n + 128] for n in range(frames)]
    return done, np.stack([program.reference([window])[0] for window in windows])


def wake_word(platform: str = "dual-m4-m0plus", frames: int = 8) -> tuple[Done, Array]:
    """The streaming wake word on a sweep, and the reference's outputs for each row of features."""
    program = covp.compile("sww", covp.load_platform(platform).for_core("main"), streaming=True)
    folder = runtime_dir() / "mlperf_tiny"
    classifier = {name: (folder / name).read_text() for name in ("log_mel.c", "log_mel.h")}
    classifier["log_mel_tables.h"] = tables_header()
    classifier["wake_word.c"] = (FOLDER / "wake_word.c").read_text()
    audio = _sweep(HOP * frames)
    stereo = np.stack([audio, np.zeros_like(audio)], 1)
    done = run(platform, program, classifier, stereo, hops=1, hop=HOP, rate=16_000)
    _check_features(done, audio)
    network = program.executor()
    inputs = done.variables["rows"].reshape(-1, *program.inputs[0].shape)
    return done, np.stack([network.run(row)[0] for row in inputs])


def _sweep(samples: int) -> Array:
    """Audio at 16 kHz with rising pitch, int16."""
    turns = np.cumsum(np.linspace(100, 6000, samples)) / 16_000
    return np.asarray(8000 * np.sin(2 * np.pi * turns), np.int16)


def _check_features(done: Done, audio: Array) -> None:
    """The rows that the core computed in float32 are those of double precision, or next to them."""
    quantization = done.program.inputs[0].quantization
    assert quantization is not None
    scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
    expected = quantize(log_mel(np.concatenate([np.zeros(HOP, np.int16), audio])), scale, zero)
    apart = np.abs(done.variables["rows"].astype(int) - expected)
    assert apart.max() <= 1, f"a feature is {apart.max()} steps from that of double precision"


def main() -> None:
    """Print the report and whether every frame has the reference's result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", nargs="?", choices=("gesture", "wake-word"), default="gesture")
    parser.add_argument("--platform", default="dual-m4-m0plus")
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    given = parser.parse_args()
    example = gesture if given.network == "gesture" else wake_word
    done, expected = example(given.platform, given.frames)
    outputs = done.variables["outputs"]
    if given.json:
        print(json.dumps(done.run.document(), indent=2))
        return
    print(done.run)
    wrong = differences(outputs, expected).size
    print(f"\nclasses: {' '.join(map(str, done.variables['classes']))}")
    print(f"{len(outputs)} frames, {wrong} of {outputs.size} outputs differ from the reference, "
          f"{done.variables['dropped']} frames dropped")  # fmt: skip


if __name__ == "__main__":
    main()
