"""The wake word's features in C, on cores with and without an FPU, against double precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import covp
from covp.compilers.toolchain import runtime_dir
from covp.firmware.mlperf.log_mel import BANDS, HOP, log_mel, quantize, tables_header

SCALE, ZERO = 0.003701042616739869, -128  # of MLPerf Tiny's network
STRICT = ("-O2", "-Werror", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-align")
ROWS = """
void rows(int16_t *samples, int8_t *out, int32_t count)
{
    static log_mel_state state;
    log_mel_reset(&state);
    for (int32_t i = 0; i < count; i++)
        log_mel_row(&state, samples + 2 * LOG_MEL_HOP * i, 2, out + LOG_MEL_BANDS * i);
}
"""


def wave(hops: int) -> NDArray[np.int16]:
    """Silence, single steps, noise of all levels, a sweep and full scale: int16, shape (n,)."""
    rng = np.random.default_rng(3)
    n = hops * HOP
    parts = [
        np.zeros(n // 8),
        rng.integers(-1, 2, n // 8),
        rng.normal(0, 1, n // 2) * np.geomspace(1, 20_000, n // 2),
        30_000 * np.sin(np.pi * np.linspace(0, 1, n // 8) ** 2 * n / 8),
        np.where(np.arange(n // 8) // 40 % 2, 32_767, -32_768),
    ]
    samples: NDArray[np.int16] = np.concatenate(parts).clip(-32_768, 32_767).astype(np.int16)
    return samples


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32", "cortex-m0plus"])
def test_rows_are_those_of_double_precision(platform: str, tmp_path: Path) -> None:
    folder = runtime_dir() / "mlperf_tiny"
    (tmp_path / "log_mel_tables.h").write_text(tables_header(SCALE, ZERO))
    hops = 16 if platform == "cortex-m0plus" else 80
    samples = wave(hops)
    with covp.Session(platform) as session:
        text = (folder / "log_mel.c").read_text() + ROWS
        module = session.load_c(text, flags=STRICT, include=[tmp_path, folder])
        stereo = session.tensor(np.stack([samples, samples[::-1]], 1))
        out = session.tensor(np.zeros((hops, BANDS), np.int8))
        module["rows"](stereo, out, hops)
        got: NDArray[Any] = out.numpy()
    # the first row has half a window of silence before it
    expected = quantize(log_mel(np.concatenate([np.zeros(HOP, np.int16), samples])), SCALE, ZERO)
    differences = np.abs(got.astype(int) - expected)
    print(f"{platform}: {np.mean(differences != 0):.2%} of {got.size} features differ by one step")
    assert differences.max() <= 1 and np.mean(differences != 0) < 0.005
    assert (expected == 127).any() and (expected == -128).any(), "no saturation was tested"
    assert len(np.unique(expected)) > 150


def test_a_tone_lies_in_its_band() -> None:
    """The bands against the definition of the mel scale, by tones at their centres."""
    time = np.arange(2 * HOP) / 16_000
    step = 2595 * np.log10(1 + 8000 / 700) / (BANDS + 1)
    for band in range(6, BANDS):
        hertz = 700 * (10 ** ((band + 1) * step / 2595) - 1)
        row = log_mel((3000 * np.sin(2 * np.pi * hertz * time)).astype(np.int16))[0]
        assert int(row.argmax()) == band
