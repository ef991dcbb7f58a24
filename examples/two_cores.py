"""Two cores: one buffers samples of a sensor into frames, the other one classifies them.

    python examples/two_cores.py [gesture|wake-word] [--platform dual-m4-m0plus] [--frames 8]

gesture: the CODAI'22 paper's network (1,525 parameters) on windows of 128 samples of an inertial
sensor at 50 Hz, one every 64 samples. wake-word: MLPerf Tiny's streaming wake word on audio at
16 kHz; each frame of 32 ms becomes a row of features and an inference. The samples are synthetic.

Core "sensor" runs examples/two_cores/sensor.c: sampler and DMA controller fill a ring; after each
hop a second DMA channel, or the core with its features, makes a frame in shared memory, and a
mailbox tells core "main". That runs gesture.c or wake_word.c with the network's library and sends
the class back.
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
from covp.codegen.program import Program
from covp.compilers.toolchain import runtime_dir
from covp.firmware.mlperf.log_mel import HOP, log_mel, quantize, tables_header
from covp.firmware.multicore import CoresRun, System
from covp.graph.equality import differences
from covp.graph.onnx import read_onnx
from covp.peripherals.sampler import Sampler

Array = NDArray[Any]
FOLDER = Path(__file__).parent / "two_cores"


@dataclass(frozen=True)
class Done:
    """A run and what came out of it.

    Attributes:
        run: instructions, cycles and bytes of both cores.
        program: the network on core "main".
        frames: how many there were.
        variables: of the firmware, by name.
    """

    run: CoresRun
    program: Program
    frames: int
    variables: dict[str, Array]

    @property
    def outputs(self) -> Array:
        """Of the network, for each frame."""
        return self.variables["outputs"].reshape(self.frames, *self.program.outputs[0].shape)


@dataclass(frozen=True)
class Stream:
    """What the sensor gives and its core makes of it.

    Attributes:
        samples: rows of words, time first.
        rate: rows a second.
        hop: new rows of a frame.
        hops: of a frame, 1 or 2.
        features: bytes that the sensor's core makes of a frame; 0: it passes the samples on.
    """

    samples: Array
    rate: int
    hop: int
    hops: int = 1
    features: int = 0

    @property
    def frames(self) -> int:
        """How many whole ones there are."""
        return len(self.samples) // self.hop - self.hops + 1

    def options(self, clock_hz: int) -> list[str]:
        """Of the compiler, for both cores."""
        values = {
            "FRAMES": self.frames,
            "HOPS": self.hops,
            "HOP_ROWS": self.hop,
            "ROW_BYTES": self.samples.nbytes // len(self.samples),
            "FEATURES": self.features,
            "PERIOD": clock_hz // self.rate,
        }
        return [f"-D{name}={value}u" for name, value in values.items()]


def run(
    platform: str, program: Program, stream: Stream, classifier: str, more: dict[str, str]
) -> Done:
    """Run both cores on all frames of a stream.

    Args:
        platform: with cores "main" and "sensor".
        program: the network.
        stream: from the sensor.
        classifier: C file of the core "main".
        more: C files of the core "sensor" beside sensor.c, name to text.
    """
    with System(platform) as system:
        options = stream.options(system.platform.clock_hz)
        system.load_c("sensor", texts("frames.h", "sensor.c") | more, flags=options)
        system.load_c("main", texts("frames.h", classifier), program, options)
        sampler = system.peripherals["sampler"]
        assert isinstance(sampler, Sampler)
        sampler.feed(stream.samples)
        done = system.run()
        variables = {
            name: system.variable(core, name, kind)
            for core, name, kind in (
                ("main", "outputs", program.outputs[0].dtype),
                ("main", "rows", np.int8),
                ("sensor", "classes", np.uint32),
                ("sensor", "dropped", np.uint32),
            )
            if name in system.firmware[core].symbols
        }
    return Done(done, program, stream.frames, variables)


def texts(*names: str, folder: Path = FOLDER) -> dict[str, str]:
    """Files by name."""
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def gesture(platform: str = "dual-m4-m0plus", frames: int = 8) -> tuple[Done, Array]:
    """The gesture network on a random movement, and the reference's outputs for each window."""
    model = read_onnx(codai22.build_onnx(), "codai22", shapes={"x": (1, 128, codai22.CHANNELS)})
    program = covp.compile(model, covp.load_platform(platform).for_core("main"))
    movement = codai22.samples(64 * (frames + 1))[0]
    done = run(platform, program, Stream(movement, 50, hop=64, hops=2), "gesture.c", {})
    windows = [movement[None, 64 * n : 64 * n + 128] for n in range(frames)]
    return done, np.stack([program.reference([window])[0] for window in windows])


def wake_word(platform: str = "dual-m4-m0plus", frames: int = 8) -> tuple[Done, Array]:
    """The streaming wake word on a sweep, and the reference's outputs for each row of features."""
    program = covp.compile("sww", covp.load_platform(platform).for_core("main"), streaming=True)
    scale, zero_point = _quantization(program)
    features = texts("log_mel.c", "log_mel.h", folder=runtime_dir() / "mlperf_tiny")
    features["log_mel_tables.h"] = tables_header(scale, zero_point)
    audio = _sweep(HOP * frames)
    stereo = np.stack([audio, np.zeros_like(audio)], 1)
    stream = Stream(stereo, 16_000, hop=HOP, features=program.inputs[0].nbytes)
    done = run(platform, program, stream, "wake_word.c", features)
    inputs = done.variables["rows"].reshape(-1, *program.inputs[0].shape)
    exact = quantize(log_mel(np.concatenate([np.zeros(HOP, np.int16), audio])), scale, zero_point)
    apart = np.abs(inputs.reshape(exact.shape).astype(int) - exact).max()
    assert apart <= 1, f"a feature is {apart} steps from that of double precision"
    network = program.executor()
    return done, np.stack([network.run(row)[0] for row in inputs])


def _quantization(program: Program) -> tuple[float, int]:
    """Scale and zero point of the network's input."""
    quantization = program.inputs[0].quantization
    assert quantization is not None
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def _sweep(samples: int) -> Array:
    """Audio at 16 kHz with rising pitch, int16."""
    turns = np.cumsum(np.linspace(100, 6000, samples)) / 16_000
    return np.asarray(8000 * np.sin(2 * np.pi * turns), np.int16)


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
    outputs = done.outputs
    if given.json:
        print(json.dumps(done.run.document(), indent=2))
        return
    print(done.run)
    wrong = differences(outputs, expected).size
    print(f"\nclasses: {' '.join(map(str, done.variables['classes']))}")
    print(f"{len(outputs)} frames, {wrong} of {outputs.size} outputs differ from the reference, "
          f"{done.variables['dropped'][0]} frames dropped")  # fmt: skip


if __name__ == "__main__":
    main()
