"""A long wave for the streaming wake word, mixed of the words in a folder of short ones.

    python benchmarks/sww_mix.py --data DIR -o OUT [--minutes 20]

DIR is benchmark/runner/sww_data_dir of mlcommons/tiny. Every few seconds there is one of its words,
or one played backwards, which is none, in noise; levels are random, from seed 0. OUT gets mix.wav
and its truth, sww_mix_test.json. This is not the benchmark's long wave, for which alone the limits
of the closed division hold: it is for boards beside each other, and for runs as long as official
ones.
"""

from __future__ import annotations

import argparse
import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.firmware.mlperf.detections import read_truth
from covp.firmware.mlperf.log_mel import SAMPLE_RATE
from covp.hardware.waves import read_wave

_GAP = (3.0, 6.0)  # seconds from one word to the next, at least and at most
_MARGIN = 800  # samples before and after a word


def words(folder: Path) -> list[NDArray[np.float64]]:
    """The words of the folder's waves of at most a minute, with a little around them."""
    found = []
    for path in sorted(folder.glob("sww_*_test.json")):
        for truth in read_truth(path):
            if truth.seconds <= 60 and (folder / truth.wave).is_file():
                samples = read_wave(folder / truth.wave)[0][:, 0].astype(np.float64)
                for window in truth.windows:
                    begin, end = (round(time * SAMPLE_RATE) for time in window)
                    found.append(samples[max(0, begin - _MARGIN) : end + _MARGIN])
    return found


def mix(
    sounds: list[NDArray[np.float64]], minutes: float
) -> tuple[NDArray[np.int16], list[list[float]]]:
    """Samples and the windows of the words in them, in seconds."""
    rng = np.random.default_rng(0)
    length = round(60 * minutes * SAMPLE_RATE)
    level = np.repeat(rng.uniform(0, 60, length // SAMPLE_RATE + 1), SAMPLE_RATE)[:length]
    samples = rng.normal(0, 1, length) * level
    windows = []
    at = SAMPLE_RATE * 2
    while at < length - 3 * SAMPLE_RATE:
        sound = sounds[rng.integers(len(sounds))]
        backwards = bool(rng.integers(2))
        heard = sound[::-1] if backwards else sound
        peak = np.abs(heard).max()
        samples[at : at + len(heard)] += heard / peak * rng.uniform(3_000, 30_000)
        if not backwards:
            windows.append([(at + _MARGIN) / SAMPLE_RATE, (at + len(heard)) / SAMPLE_RATE])
        at += len(heard) + round(rng.uniform(*_GAP) * SAMPLE_RATE)
    return samples.clip(-32_768, 32_767).astype(np.int16), windows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20.0)
    options = parser.parse_args()
    sounds = words(options.data)
    if not sounds:
        parser.error(f"{options.data} has no truth file with a wave of at most a minute")
    samples, windows = mix(sounds, options.minutes)
    options.out.mkdir(parents=True, exist_ok=True)
    with wave.open(str(options.out / "mix.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(np.stack([samples, samples], 1).tobytes())
    truth: list[dict[str, Any]] = [
        {
            "wav_file": "mix.wav",
            "sample_rate": SAMPLE_RATE,
            "length_sec": len(samples) / SAMPLE_RATE,
            "detection_windows": windows,
        }
    ]
    (options.out / "sww_mix_test.json").write_text(json.dumps(truth, indent=1))
    print(f"{options.out}/mix.wav: {len(windows)} words in {len(samples) / SAMPLE_RATE:.0f} s")


if __name__ == "__main__":
    main()
