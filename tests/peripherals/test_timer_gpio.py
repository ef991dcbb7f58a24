"""Timer and pins: what interrupt handlers see, against the times and edges that were given."""

from __future__ import annotations

import socket
import threading
import wave
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.errors import AcceleratorError, DeviceFault, ToolchainError
from covp.peripherals.gpio import Gpio
from covp.peripherals.timer import Timer

from .bench import PLATFORMS, Bench

pytestmark = pytest.mark.parametrize("platform", PLATFORMS)

EDGES, PERIOD, PRESCALE = 10, 1000, 4
BLINK = f"""
#include "covp_gpio.h"
#include "covp_timer.h"
#define TIMER ((struct covp_timer *)TIMER_BASE)
#define GPIO ((struct covp_gpio *)GPIO_BASE)
static volatile uint32_t fired;
volatile uint32_t missed;
void covp_interrupt(void)
{{
    missed |= TIMER->status & COVP_TIMER_MISSED;
    TIMER->status = COVP_TIMER_EXPIRED;
    GPIO->toggle = 1u << 5;
    fired++;
}}
int main(void)
{{
    GPIO->direction = 1u << 5;
    covp_timer_start(TIMER, {PERIOD}, {PRESCALE});
    interrupts_on(1);
    while (fired < {EDGES})
        covp_sleep();
    TIMER->ctrl = 0;
    return (int)(TIMER->expirations + TIMER->count);
}}
"""


def test_a_handler_toggles_a_pin_in_time(platform: str) -> None:
    with Bench(platform, BLINK, ("timer", "timer", {}), ("gpio", "gpio", {})) as bench:
        gpio, edges = bench["gpio"], []
        assert isinstance(gpio, Gpio)
        gpio.on_change = lambda pin, level, cycle: edges.append((pin, level, cycle))
        ended = bench.run()
        assert ended.status == EDGES and bench.words("missed") == [0]
    assert [(pin, level) for pin, level, _ in edges] == [(5, n % 2 == 0) for n in range(EDGES)]
    period = PERIOD * (PRESCALE + 1)
    # each comes a handler's entry after its expiration, and nothing adds up
    delays = [cycle - edges[0][2] - n * period for n, (_, _, cycle) in enumerate(edges)]
    assert max(map(abs, delays)) < 40
    assert EDGES * period < ended.cycles < EDGES * period + 2000
    assert ended.instructions < 3000  # it slept


POLLED = """
#include "covp_timer.h"
#define TIMER ((struct covp_timer *)TIMER_BASE)
volatile uint32_t seen[6];
void covp_interrupt(void) { seen[5] = 1; }
int main(void)
{
    TIMER->period = 500;
    TIMER->ctrl = COVP_TIMER_ENABLE;
    seen[0] = TIMER->count;
    while (!(TIMER->status & COVP_TIMER_EXPIRED)) {
    }
    seen[1] = TIMER->ctrl;
    seen[2] = TIMER->count;
    covp_timer_start(TIMER, 100, 0);
    for (volatile uint32_t wait = 0; wait < 200; wait++) {
    }
    seen[3] = TIMER->status;
    TIMER->ctrl = 0;
    seen[4] = TIMER->expirations;
    return 0;
}
"""


def test_one_shot_count_and_missed(platform: str) -> None:
    with Bench(platform, POLLED, ("timer", "timer", {})) as bench:
        bench.run()
        count, control, after, status, expirations, entered = bench.words("seen", 6)
        assert 450 < count <= 500 and (control, after) == (0, 0)
        assert status == 3 and expirations > 3
        assert not entered  # the line was up, and no handler enabled


def test_a_period_of_nothing_is_a_fault(platform: str) -> None:
    program = POLLED.replace("TIMER->period = 500;", "")
    with (
        Bench(platform, program, ("timer", "timer", {})) as bench,
        pytest.raises(DeviceFault, match="timer: ENABLE with PERIOD 0"),
    ):
        bench.run()


WATCH = """
#include "covp_gpio.h"
#define GPIO ((struct covp_gpio *)GPIO_BASE)
volatile uint32_t count, log[64];
void covp_interrupt(void)
{
    uint32_t pending = GPIO->pending;
    GPIO->pending = pending;
    if (count < 64)
        log[count] = pending << 16 | (GPIO->input & 0xffffu);
    count++;
}
int main(void)
{
    GPIO->rising = 0x7;
    GPIO->falling = 0x5; /* not pin 1's */
    interrupts_on(1);
    while (!(GPIO->input & 0x8))
        covp_sleep();
    return 0;
}
"""
LEVELS = np.random.default_rng(7).integers(0, 2, (40, 4)).astype(np.int16)
LEVELS[:, 3] = np.arange(40) == 39  # ends the program
RATE = 1000.0


def edges() -> list[int]:
    """What the handler has to log, frame by frame; the first one is there at reset."""
    log, before = [], LEVELS[0].astype(int)
    for frame in LEVELS[1:].astype(int):
        rising, falling = frame & ~before & 1, before & ~frame & 1
        pending = sum((rising[n] & 1 | falling[n] & (n != 1)) << n for n in range(3))
        if pending:
            log.append(pending << 16 | sum(int(level) << n for n, level in enumerate(frame)))
        before = frame
    return [int(entry) for entry in log]


def as_array(folder: Path) -> dict[str, Any]:
    return {"source": LEVELS, "rate": RATE}


def as_generator(folder: Path) -> dict[str, Any]:
    return {"source": (tuple(row) for row in LEVELS), "rate": RATE}


def as_npy(folder: Path) -> dict[str, Any]:
    np.save(folder / "levels.npy", LEVELS)
    return {"source": str(folder / "levels.npy"), "rate": RATE}


def as_csv(folder: Path) -> dict[str, Any]:
    lines = ["a,b,c,end", *(",".join(map(str, row)) for row in LEVELS)]
    (folder / "levels.csv").write_text("# recorded\n" + "\n".join(lines) + "\n")
    return {"source": str(folder / "levels.csv"), "rate": RATE}


def as_wav(folder: Path) -> dict[str, Any]:
    with wave.open(str(folder / "levels.wav"), "wb") as file:
        file.setnchannels(4)
        file.setsampwidth(2)
        file.setframerate(int(RATE))
        file.writeframes(LEVELS.astype("<i2").tobytes())
    return {"source": str(folder / "levels.wav")}


def as_socket(folder: Path) -> dict[str, Any]:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = server.accept()
        with client, server:
            for row in LEVELS:
                client.sendall((",".join(map(str, row)) + "\n").encode())

    threading.Thread(target=serve, daemon=True).start()
    return {"source": f"tcp:127.0.0.1:{server.getsockname()[1]}", "rate": RATE}


SOURCES = (as_array, as_generator, as_npy, as_csv, as_wav, as_socket)


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, Any]]:
    yield {}


@pytest.mark.parametrize("source", SOURCES)
def test_edges_of_every_source(
    platform: str, source: Callable[[Path], dict[str, Any]], tmp_path: Path, runs: dict[str, Any]
) -> None:
    with Bench(platform, WATCH, ("gpio", "gpio", source(tmp_path))) as bench:
        ended = bench.run()
        (count,) = bench.words("count")
        expected = edges()
        assert bench.words("log", count) == expected
        # the 40th frame comes 39 ms after the reset
        due = 39 * bench.device.clock.hertz / RATE
        assert due <= ended.cycles < due + 500
        # and every run is the same, whatever the frames come from
        assert runs.setdefault(platform, ended) == ended


def test_pins_driven_from_python(platform: str) -> None:
    with Bench(platform, WATCH, ("gpio", "gpio", {})) as bench:
        gpio = bench["gpio"]
        assert isinstance(gpio, Gpio)
        clock = bench.device.clock
        drives = [(5_000, 0, True), (9_000, 0, False), (9_500, 1, True)]
        drives += [(12_000, 3, True), (12_001, 0, True)]  # pin 3 wakes nothing by itself

        def plan() -> None:
            for cycle, pin, level in drives:
                clock.at(clock.now + cycle, partial(gpio.drive, pin, level))

        clock.at(clock.now + 10, plan)  # after the reset that begins the run
        bench.run()
        assert bench.words("log", bench.words("count")[0]) == [
            0x10001, 0x10000, 0x20002, 0x1000B,
        ]  # fmt: skip
        assert gpio.level(1) and gpio.level(3) and not gpio.level(2)
        with pytest.raises(ValueError, match="pin 32"):
            gpio.drive(32, True)


def test_a_snapshot_goes_back_in_a_recording(platform: str) -> None:
    source = (tuple(row) for row in LEVELS)
    with Bench(platform, WATCH, ("gpio", "gpio", {"source": source, "rate": RATE})) as bench:
        first = bench.run()
        second = bench.run()  # a reset starts the recording anew
        assert second == first
        state = bench.device.board.save_state()
        bench.run()
        bench.device.board.load_state(state)
        assert bench.run() == first


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"source": [0, 1]}, "does not say how fast it is; give the rate"),
        ({"source": [0, 1], "rate": 0}, "must be above 0"),
        ({"source": "a.txt", "rate": 1}, r"a \.wav, \.npy or \.csv file, or tcp:HOST:PORT"),
        ({"source": "missing.csv", "rate": 1}, r"missing\.csv cannot be read"),
        ({"source": [[0, 1], [0]], "rate": 1000}, "frame 1 has 1 channels, the first one has 2"),
        ({"source": [[0, 40000]], "rate": 1000}, r"frame 0 is \[0, 40000\].*16 bits"),
        ({"source": ["x"], "rate": 1000}, "frame 0 is 'x'"),
    ],
)
def test_what_is_no_recording(platform: str, parameters: dict[str, Any], message: str) -> None:
    with (
        pytest.raises(AcceleratorError, match=message),
        Bench(platform, WATCH, ("gpio", "gpio", parameters)) as bench,
    ):
        bench.run()


def test_the_headers_are_the_register_maps(platform: str) -> None:
    """The compiler compares offsets and bits."""
    checks = [
        f"offsetof(struct covp_{kind.__name__.lower()}, {register.name.lower()}) == "
        f"{register.offset}"
        for kind in (Timer, Gpio)
        for register in kind.registers
    ]
    for macro, (register, field) in {
        "ENABLE": ("CTRL", "ENABLE"), "PERIODIC": ("CTRL", "PERIODIC"),
        "INTERRUPT": ("CTRL", "INTERRUPT"), "EXPIRED": ("STATUS", "EXPIRED"),
        "MISSED": ("STATUS", "MISSED"),
    }.items():  # fmt: skip
        checks.append(f"COVP_TIMER_{macro} == {Timer.registers[register][field].mask}u")
    asserts = "\n".join(f"typedef char check{n}[{c} ? 1 : -1];" for n, c in enumerate(checks))
    compiler = get_toolchain("zig", load_platform(platform).core)
    includes = "#include <stddef.h>\n#include <covp_timer.h>\n#include <covp_gpio.h>\n"
    compiler.compile([SourceText("check.c", includes + asserts)])
    with pytest.raises(ToolchainError):
        compiler.compile([SourceText("check.c", includes + asserts.replace("== 4 ?", "== 8 ?"))])
