"""The I2S receiver: a program that sleeps between halves of its buffer gets the wave's samples."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.chip.platform_file import load_platform
from covp.compilers.elf import ElfImage
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, DeviceFault
from covp.peripherals.i2s_microphone import I2sMicrophone
from covp.runtime.linking import write_image
from covp.runtime.standalone import link_standalone

BASE, LINE, LENGTH, HALVES = 0x60000000, 7, 100, 5
PROGRAM = f"""
#include <stdint.h>
#include <string.h>
#include "covp_interrupt.h"
#include "microphone.h"
static int16_t buffer[2][2 * {LENGTH}];
int16_t recorded[{HALVES}][2 * {LENGTH}];
volatile uint32_t late;
int main(void)
{{
    covp_wake_by_line({LINE});
    MICROPHONE_BUFFER = (uint32_t)(uintptr_t)buffer;
    MICROPHONE_LENGTH = {LENGTH};
    MICROPHONE_CTRL = MICROPHONE_CTRL_ENABLE_MASK | MICROPHONE_CTRL_INTERRUPT_MASK;
    for (uint32_t half = 0; half < {HALVES}; half++) {{
        uint32_t flag = MICROPHONE_STATUS_FULL0_MASK << half % 2;
        while (!(MICROPHONE_STATUS & flag))
            covp_sleep();
        memcpy(recorded[half], buffer[half % 2], sizeof recorded[half]);
        while (late && !(MICROPHONE_STATUS & MICROPHONE_STATUS_OVERRUN_MASK))
            ;
        MICROPHONE_STATUS = flag;
        covp_forget_line({LINE});
        covp_wake_by_line({LINE});
    }}
    return (int)MICROPHONE_STATUS;
}}
"""


class Bench:
    """The program on a platform, with a receiver."""

    def __init__(self, name: str, path: str | None = None) -> None:
        platform = load_platform(name)
        headers = {"microphone.h": I2sMicrophone.registers.c_header("MICROPHONE", BASE)}
        toolchain = get_toolchain("zig", platform.core)
        source = [SourceText("main.c", PROGRAM)]
        elf = link_standalone(toolchain, platform, source, ("-Werror", "-Wall"), headers)
        self.symbols = ElfImage(elf.read_bytes()).symbols
        self.device = VirtualDevice(platform)
        self.microphone = I2sMicrophone(path)
        self.device.attach(self.microphone, BASE, "microphone", LINE)
        write_image(self.device, ElfImage(elf.read_bytes()))

    def run(self, timeout: float = 60) -> int:
        reset, end = self.symbols["covp_reset"].address, self.symbols["covp_exit"].address
        self.device.execute(reset, end, timeout)
        status = self.device.read(self.symbols["covp_exit_status"].address, 4)
        return int.from_bytes(status, "little")

    @property
    def recorded(self) -> NDArray[np.int16]:
        raw = self.device.read(self.symbols["recorded"].address, HALVES * LENGTH * 4)
        return np.frombuffer(raw, "<i2").reshape(-1, 2)


@pytest.fixture(params=["cortex-m4", "riscv32"])
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def noise(samples: int) -> NDArray[np.int16]:
    return np.random.default_rng(1).integers(-(2**15), 2**15, (samples, 2)).astype(np.int16)


def test_samples_come_in_time_and_none_is_lost(platform: str) -> None:
    bench, samples = Bench(platform), noise(HALVES * LENGTH + LENGTH // 2)
    clock, ended = bench.device.clock, []
    clock.at(
        10_000, lambda: bench.microphone.play(samples, 16_000, lambda: ended.append(clock.now))
    )
    assert bench.run() == 0, "a flag is left: OVERRUN or a half that was not full"
    assert np.array_equal(bench.recorded, samples[: HALVES * LENGTH])
    # the program ends shortly after the last whole half, before the wave does
    last = 10_000 + HALVES * LENGTH * clock.hertz // 16_000
    assert last < clock.now < last + 10_000 and not ended


@pytest.mark.slow
def test_a_half_that_is_not_fetched_is_an_overrun(platform: str) -> None:
    bench = Bench(platform)
    late = bench.symbols["late"].address
    bench.device.clock.at(5_000, lambda: bench.device.write(late, b"\1\0\0\0"))
    bench.device.clock.at(10_000, lambda: bench.microphone.play(noise(1000), 16_000))
    assert bench.run() & 4


def test_a_wave_file_is_played_from_enable_on(platform: str, tmp_path: Path) -> None:
    samples = noise(HALVES * LENGTH)
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(samples[:, 0].tobytes())
    bench = Bench(platform, str(tmp_path / "a.wav"))
    assert bench.run() == 0
    assert np.array_equal(bench.recorded, np.stack([samples[:, 0]] * 2, 1))
    assert bench.microphone.values["RATE"] == 8000


def test_without_a_wave_no_sample_comes(platform: str) -> None:
    with pytest.raises(DeviceFault, match="endless sleep"):
        Bench(platform).run()


def test_what_is_no_wave_is_rejected(tmp_path: Path) -> None:
    bench = Bench("riscv32")
    with pytest.raises(AcceleratorError, match=r"int16 of shape \(n, 2\)"):
        bench.microphone.play(np.zeros((10, 3), np.int16), 16_000)
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(AcceleratorError, match=r"a\.wav cannot be played"):
        Bench("riscv32", str(tmp_path / "a.wav")).run()
