"""Sensors behind SPI and I2C: firmware with an interrupt handler receives what was recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.errors import DeviceFault, ToolchainError
from covp.peripherals.i2c_sensor import I2cSensor
from covp.peripherals.spi_sensor import SpiSensor

from .bench import PLATFORMS, Bench

pytestmark = pytest.mark.parametrize("platform", PLATFORMS)

ADDRESS, RATE, CHANNELS, FRAMES, WATERMARK = 0x19, 2000.0, 3, 64, 4
SAMPLES = np.random.default_rng(3).integers(-(2**15), 2**15, (FRAMES, CHANNELS)).astype(np.int16)
SPI = """
#define SENSOR ((struct covp_spi_sensor *)SENSOR_BASE)
#define READ(address, bytes, count) covp_spi_read(SENSOR, address, bytes, count)
#define WRITE(address, value) covp_spi_write(SENSOR, address, value)
"""
I2C = f"""
#define SENSOR ((struct covp_i2c_sensor *)SENSOR_BASE)
#define READ(address, bytes, count) \\
    failed |= covp_i2c_read(SENSOR, {ADDRESS}, address, bytes, count)
#define WRITE(address, value) failed |= covp_i2c_write(SENSOR, {ADDRESS}, address, value)
"""
RECEIVE = f"""
int failed;
int16_t received[{FRAMES * CHANNELS}];
volatile uint32_t frames, interrupts;
uint8_t identity[8], flags;
/* Takes all frames out in one transfer while the sensor's pin is up. */
void covp_interrupt(void)
{{
    interrupts++;
    while (SENSOR->status & COVP_SENSOR_SENSOR) {{
        uint8_t level;
        READ(COVP_SENSOR_LEVEL, &level, 1);
        if (frames + level > {FRAMES})
            level = (uint8_t)({FRAMES} - frames);
        int16_t *place = received + frames * {CHANNELS};
        READ(COVP_SENSOR_DATA, (uint8_t *)place, level * {2 * CHANNELS}u);
        frames += level;
    }}
}}
int main(void)
{{
    SENSOR->divider = 1;
    SENSOR->ctrl = COVP_SENSOR_ENABLE | COVP_SENSOR_SENSOR_INTERRUPT;
    READ(COVP_SENSOR_WHO_AM_I, identity, 8);
    WRITE(COVP_SENSOR_WATERMARK, {WATERMARK});
    WRITE(COVP_SENSOR_CONTROL, 1);
    interrupts_on(1);
    while (frames < {FRAMES})
        covp_sleep();
    READ(COVP_SENSOR_FLAGS, &flags, 1);
    return failed;
}}
"""
KINDS = {"spi_sensor": SPI, "i2c_sensor": I2C}


def sensor(kind: str, **parameters: Any) -> tuple[str, str, dict[str, Any]]:
    return ("sensor", kind, {"source": SAMPLES, "rate": RATE, **parameters})


def firmware(kind: str, program: str = RECEIVE) -> str:
    return '#include "covp_sensor.h"\n' + KINDS[kind] + program


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_frame_arrives_at_its_time(platform: str, kind: str) -> None:
    with Bench(platform, firmware(kind), sensor(kind)) as bench:
        ended = bench.run()
        assert ended.status == 0
        identity = bench.device.read(bench.symbols["identity"].address, 8)
        assert identity == bytes([0xC5, 0, 0, 0, 1, CHANNELS, int(RATE) & 0xFF, int(RATE) >> 8])
        received = bench.halfwords("received", FRAMES * CHANNELS)
        assert received == SAMPLES.reshape(-1).tolist()
        assert bench.device.read(bench.symbols["flags"].address, 1) == b"\0"  # no overrun
        assert bench.words("interrupts") == [FRAMES // WATERMARK]
        second = bench.device.clock.hertz
        last = (FRAMES - 1) / RATE * second  # after the first one, which comes at once
        assert last < ended.cycles < last + 0.02 * second
        assert bench.run() == ended  # repeatable, to the cycle


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_full_fifo_loses_frames_and_says_so(platform: str, kind: str) -> None:
    program = RECEIVE.replace("interrupts_on(1);", "for (volatile int n = 0; n < 200000; n++) {}")
    program = program.replace(f"while (frames < {FRAMES})\n        covp_sleep();", """
    uint8_t level;
    READ(COVP_SENSOR_FLAGS, &flags, 1);
    READ(COVP_SENSOR_LEVEL, &level, 1);
    READ(COVP_SENSOR_DATA, (uint8_t *)received, level * 6u);
    frames = level;
    uint8_t again;
    READ(COVP_SENSOR_FLAGS, &again, 1);
    return again << 8 | flags;
""")  # fmt: skip
    with Bench(platform, firmware(kind, program), sensor(kind, depth=8, rate=50_000.0)) as bench:
        assert bench.run().status == 0x0003  # ready and overrun; a read cleared it, and 8 are out
        assert bench.words("frames") == [8]
        assert bench.halfwords("received", 24) == SAMPLES[:8].reshape(-1).tolist()


def test_scale_and_rounding(platform: str) -> None:
    values = np.array([0.0, 0.5, -1.0, 1.9999, 0.00007])
    program = RECEIVE.replace(f"int16_t received[{FRAMES * CHANNELS}]", "int16_t received[64]")
    program = program.replace(f"{FRAMES}", "5").replace(f"CONTROL_{CHANNELS}", "1")
    program = program.replace(f"frames * {CHANNELS}", "frames").replace(f"{2 * CHANNELS}u", "2u")
    program = program.replace(f"WATERMARK, {WATERMARK}", "WATERMARK, 1")
    parameters = {"source": values, "scale": 16384.0}
    with Bench(platform, firmware("spi_sensor", program), sensor("spi_sensor", **parameters)) as b:
        assert b.run().status == 0
        assert b.halfwords("received", 5) == [0, 8192, -16384, 32766, 1]


DONE = """
static volatile uint32_t done;
volatile uint32_t answers[3];
void covp_interrupt(void)
{
    SENSOR->status = COVP_SENSOR_DONE;
    done++;
}
int main(void)
{
    SENSOR->divider = 100;
    SENSOR->ctrl = COVP_SENSOR_ENABLE | COVP_SENSOR_DONE_INTERRUPT;
    interrupts_on(1);
    for (uint32_t address = 0; address < 128; address++) {
        SENSOR->tx = address << 1;
        SENSOR->command = COVP_I2C_START | COVP_I2C_WRITE | COVP_I2C_STOP;
        while (done == address)
            covp_sleep();
        if (!(SENSOR->status & COVP_I2C_NACK)) {
            answers[0]++;
            answers[1] = address;
        }
    }
    SENSOR->command = COVP_I2C_READ;
    while (done == 128)
        covp_sleep();
    answers[2] = SENSOR->rx;
    return 0;
}
"""


def test_a_scan_of_the_i2c_bus_finds_one_sensor(platform: str) -> None:
    program = firmware("i2c_sensor", DONE)
    with Bench(platform, program, sensor("i2c_sensor", address=0x42)) as bench:
        ended = bench.run()
        assert bench.words("answers", 3) == [1, 0x42, 0xFF]
        # 11 periods of 404 cycles for each of 128, 9 for the last byte; the core slept
        wire = 404 * (128 * 11 + 9)
        assert wire < ended.cycles < wire + 20_000 and ended.instructions < 10_000


@pytest.mark.parametrize(
    "kind, line, message",
    [
        ("spi_sensor", "SENSOR->tx = 1;", "a transfer while CTRL.ENABLE is 0"),
        ("spi_sensor", "SENSOR->ctrl = 1; SENSOR->tx = 1; SENSOR->tx = 2;", "STATUS.BUSY is 1"),
        ("i2c_sensor", "SENSOR->ctrl = 1; SENSOR->command = 6;", "WRITE and READ"),
    ],
)
def test_misuse_is_a_fault(platform: str, kind: str, line: str, message: str) -> None:
    main = f"int main(void) {{ {line} return 0; }}\nvoid covp_interrupt(void) {{}}\n"
    with (
        Bench(platform, firmware(kind, main), sensor(kind)) as bench,
        pytest.raises(DeviceFault, match=message),
    ):
        bench.run()


def test_the_headers_are_the_register_maps(platform: str) -> None:
    """The compiler compares offsets and bits."""
    checks = []
    for name, kind in (("spi", SpiSensor), ("i2c", I2cSensor)):
        for register in kind.registers:
            member = f"struct covp_{name}_sensor, {register.name.lower()}"
            checks.append(f"offsetof({member}) == {register.offset}")
    for macro, (register_name, field) in {
        "SENSOR_ENABLE": ("CTRL", "ENABLE"), "SENSOR_BUSY": ("STATUS", "BUSY"),
        "SENSOR_DONE_INTERRUPT": ("CTRL", "DONE_INTERRUPT"), "SENSOR_DONE": ("STATUS", "DONE"),
        "SENSOR_SENSOR_INTERRUPT": ("CTRL", "SENSOR_INTERRUPT"),
        "SENSOR_SENSOR": ("STATUS", "SENSOR"), "I2C_NACK": ("STATUS", "NACK"),
        "I2C_START": ("COMMAND", "START"), "I2C_WRITE": ("COMMAND", "WRITE"),
        "I2C_READ": ("COMMAND", "READ"), "I2C_STOP": ("COMMAND", "STOP"),
    }.items():  # fmt: skip
        mask = I2cSensor.registers[register_name][field].mask
        checks.append(f"COVP_{macro} == {mask}u")
    asserts = "\n".join(f"typedef char check{n}[{c} ? 1 : -1];" for n, c in enumerate(checks))
    compiler = get_toolchain("zig", load_platform(platform).core)
    includes = "#include <stddef.h>\n#include <covp_sensor.h>\n"
    compiler.compile([SourceText("check.c", includes + asserts)])
    with pytest.raises(ToolchainError):
        compiler.compile([SourceText("check.c", includes + asserts.replace("== 4 ?", "== 8 ?"))])
