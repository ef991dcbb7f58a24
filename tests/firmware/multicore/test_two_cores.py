"""Firmware on two cores: sampler, DMA, shared memory and mailboxes, against numpy."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

import covp
from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.phase_count import MovedBytes
from covp.device.stop import EXACT
from covp.errors import DeviceFault, PlatformError, ToolchainError, UsageError
from covp.firmware.firmware import firmware_files
from covp.firmware.library import Library
from covp.firmware.multicore import CoresRun, System
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_models import load_peripheral
from covp.peripherals.sampler import Sampler
from covp.runtime.placement import MemoryPlacement
from covp.runtime.standalone import start_sources

PLATFORMS = ("dual-m4-m0plus", "dual-riscv32")
ROWS, WINDOW, PERIOD = 24, 4, 700
SENSOR = f"""
#include <covp_dma.h>
#include <covp_handler.h>
#include <covp_mailbox.h>
#include <covp_platform.h>
#include <covp_sampler.h>
#define DMA ((struct covp_dma *)DMA_BASE)
#define SAMPLER ((struct covp_sampler *)SAMPLER_BASE)
#define TO_MAIN ((struct covp_mailbox *)TO_MAIN_BASE)
static volatile uint32_t windows;

void covp_interrupt(void)
{{
    uint32_t status = DMA->status;
    DMA->status = status;
    if (status & COVP_DMA_HALF(1)) {{
        covp_mailbox_send(TO_MAIN, 0);
        windows++;
    }}
    if (status & COVP_DMA_DONE(1)) {{
        covp_mailbox_send(TO_MAIN, 1);
        windows++;
    }}
}}

int main(void)
{{
    covp_dma_start(DMA, 1, &SAMPLER->data, (void *)SHARED_START, {2 * WINDOW * 2},
                   COVP_DMA_WORDS | COVP_DMA_TARGET_STEP | COVP_DMA_CIRCULAR |
                       COVP_DMA_PACED(0, 2) | COVP_DMA_HALF_INTERRUPT | COVP_DMA_DONE_INTERRUPT);
    covp_enable_line(DMA_IRQ);
    SAMPLER->period = {PERIOD};
    SAMPLER->control = COVP_SAMPLER_ENABLE;
    while (windows < {ROWS // WINDOW}) {{
        covp_mask_interrupts();
        if (windows < {ROWS // WINDOW})
            covp_sleep();
        covp_unmask_interrupts();
    }}
    return (int)windows;
}}
"""
MAIN = f"""
#include <covp_mailbox.h>
#include <covp_platform.h>
#define TO_MAIN ((struct covp_mailbox *)TO_MAIN_BASE)
volatile int32_t sums[{ROWS // WINDOW}];

int main(void)
{{
    for (int n = 0; n < {ROWS // WINDOW}; n++) {{
        uint32_t half = covp_mailbox_receive(TO_MAIN, TO_MAIN_IRQ);
        const int16_t *window = (const int16_t *)SHARED_START + half * {WINDOW * 4};
        int32_t sum = 0;
        for (int i = 0; i < {WINDOW * 4}; i++)
            sum += (i + 1) * window[i];
        sums[n] = sum;
    }}
    return 7;
}}
"""


def recording() -> NDArray[np.int16]:
    """Rows of four samples: two words."""
    return np.random.default_rng(3).integers(-30000, 30000, (ROWS, 4)).astype(np.int16)


def expected() -> list[int]:
    windows = recording().reshape(-1, WINDOW * 4).astype(int)
    return [int(np.dot(window, np.arange(1, WINDOW * 4 + 1))) for window in windows]


def made(platform: str) -> System:
    system = System(platform)
    system.load_c("sensor", {"sensor.c": SENSOR}, flags=("-Werror",))
    system.load_c("main", {"main.c": MAIN}, flags=("-Werror",))
    return system


def run(system: System, turn: int = 1000, traffic: bool = True) -> CoresRun:
    sampler = system.peripherals["sampler"]
    assert isinstance(sampler, Sampler)
    sampler.feed(recording())
    done = system.run(timeout=60, turn=turn, traffic=traffic)
    assert system.variable("main", "sums", np.int32).tolist() == expected()
    return done


@pytest.mark.parametrize("platform", PLATFORMS)
def test_windows_of_one_core_reach_the_other_whatever_the_turn(platform: str) -> None:
    for turn in (1, 60, 1000, 50_000):
        with made(platform) as first, made(platform) as second:
            done = run(first, turn)
            assert done == run(second, turn), "not repeatable"
            assert [(core.name, core.finished, core.status) for core in done.cores] == [
                ("main", True, 7),
                ("sensor", True, ROWS // WINDOW),
            ]
            assert str(done) == str(run(first, turn)), "a second run of one system is another"
            # what no one counts costs nothing
            plain = run(second, turn, traffic=False)
            assert plain.traffic is None
            assert [one.instructions for one in plain.cores] == [
                one.instructions for one in done.cores
            ]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_report_adds_up(platform: str) -> None:
    with made(platform) as system:
        done = run(system)
    time = ROWS * PERIOD / system.platform.clock_hz
    assert time < done.seconds < 1.2 * time
    for core in done.cores:
        assert sum(one.instructions for one in core.functions) == core.instructions
        assert sum(one.cycles for one in core.functions) == core.cycles
        assert sum(core.causes.values()) == core.cycles == core.busy + core.asleep
        assert core.asleep > 0.8 * core.cycles
        assert round((core.cycles + core.halted) / core.clock_hz, 6) == round(done.seconds, 6)
        assert core.sources.instructions == EXACT
    traffic = done.traffic
    assert traffic is not None
    moved = ROWS * 8  # bytes of a row
    assert traffic["dma"] == {
        "sampler": MovedBytes(read=moved),
        "shared": MovedBytes(written=moved),
    }
    assert traffic["main"]["shared"] == MovedBytes(read=moved)
    assert "shared" not in traffic["sensor"] or not traffic["sensor"]["shared"].read
    # instructions come from each core's own flash
    assert traffic["main"]["flash"].fetched and traffic["sensor"]["sensor_flash"].fetched
    assert traffic["main"]["sensor_flash"] == traffic["sensor"]["flash"] == MovedBytes()
    assert "dma     shared" in str(done)


def test_the_clock_of_a_slower_core_is_divided() -> None:
    """SysTick counts the core's own cycles; the platform's time passes twice as fast."""
    text = """
    #include <stdint.h>
    #define SYSTICK ((volatile uint32_t *)0xe000e010)
    volatile uint32_t passed;
    int main(void)
    {
        SYSTICK[1] = 0xffffff;
        SYSTICK[2] = 0;
        SYSTICK[0] = 5;
        for (int i = 0; i < 1000; i++)
            __asm__ volatile("nop");
        passed = 0xffffff - SYSTICK[2];
        return 0;
    }
    """
    with System("dual-m4-m0plus") as system:
        system.load_c("main", {"a.c": "int main(void) { return 0; }"})
        system.load_c("sensor", {"b.c": text})
        done = system.run()
        sensor = done["sensor"]
        passed = int(system.variable("sensor", "passed", np.uint32)[0])
    loop = next(one for one in sensor.functions if one.name == "main").cycles
    assert abs(passed - loop) < 60 and passed > 3000
    assert done.seconds == pytest.approx(sensor.cycles / 75e6, rel=1e-3)
    assert done["main"].halted > sensor.cycles


def test_the_run_ends_with_the_named_cores() -> None:
    endless = "int main(void) { for (volatile int i = 0;; i++) ; }"
    wait = "int main(void) { for (volatile int i = 0; i < 1000; i++) ; return 3; }"
    with System("dual-riscv32") as system:
        system.load_c("main", {"a.c": wait})
        system.load_c("sensor", {"b.c": endless})
        done = system.run(until=["main"])
        assert done["main"].status == 3 and not done["sensor"].finished
        assert done["sensor"].status is None
        assert abs(done["sensor"].cycles - done["main"].cycles) < 2000
        with pytest.raises(DeviceFault, match="timeout"):
            system.run(timeout=0.2)


def test_a_fault_names_its_core() -> None:
    with System("dual-riscv32") as system:
        system.load_c("main", {"a.c": "int main(void) { for (volatile int i = 0;; i++) ; }"})
        system.load_c("sensor", {"b.c": "int main(void) { return *(volatile int *)0x100; }"})
        with pytest.raises(DeviceFault, match=r"unmapped read.*; core sensor") as caught:
            system.run()
        assert caught.value.symbol is not None and caught.value.symbol.startswith("main+")
    with System("dual-riscv32") as system:
        for core in system.platform.core_names:
            sleep = "#include <covp_interrupt.h>\nint main(void) { covp_sleep(); return 0; }"
            system.load_c(core, {"a.c": sleep})
        with pytest.raises(DeviceFault, match="endless sleep"):
            system.run()


EMPTY = {"main.c": "int main(void) { return 0; }"}


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    with System("dual-m4-m0plus") as system, System("dual-m4-m0plus") as other:
        main = system.load_c("main", EMPTY)
        with pytest.raises(UsageError, match="core main has firmware already"):
            system.load_c("main", EMPTY)
        with pytest.raises(UsageError, match="core sensor has no firmware"):
            system.run()
        with pytest.raises(
            UsageError,
            match=r"core sensor: section \.vectors at 0x10020000 .* "
            "in flash, which is core main's; its own memory is sensor_flash",
        ):
            other.load_elf("sensor", main.path)
        assert not other.firmware
        large = {"a.c": "static const char text[70000] = {1};\n"
                 "int main(int n, char **a) { (void)a; return text[n]; }"}  # fmt: skip
        with pytest.raises(ToolchainError, match=r"core sensor: .*sensor_flash"):
            other.load_c("sensor", large)
        with pytest.raises(PlatformError, match="has no core 'sensr'"):
            other.load_c("sensr", EMPTY)
        with pytest.raises(UsageError, match="sources must be a list of paths"):
            other.load_c("sensor", "main.c")
        with pytest.raises(UsageError, match="unknown core 'sensr'"):
            other.load_c("main", EMPTY)
            other.load_c("sensor", EMPTY)
            other.run(until=["sensr"])
        with pytest.raises(UsageError, match="at least one core"):
            other.run(until=[])
        file = tmp_path / "text.elf"
        file.write_text("no ELF")
        with pytest.raises(UsageError, match="not an ELF file"):
            system.load_elf("sensor", file)


@pytest.mark.parametrize("core", ["main", "sensor"])
def test_an_image_of_any_tool(core: str, tmp_path: Path) -> None:
    """It is the ELF file that counts: the same run as when it was built here."""
    with made("dual-riscv32") as system:
        expected = run(system)
        with System("dual-riscv32") as other:
            for name, firmware in system.firmware.items():
                copy = tmp_path / f"{name}.elf"
                copy.write_bytes(firmware.path.read_bytes())
                other.load_elf(name, copy)
            assert run(other) == expected


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_headers_are_the_register_maps(platform: str) -> None:
    """The compiler compares offsets and bits."""
    checks = []
    for name, structure in (("dma", "covp_dma"), ("to_main", "covp_mailbox"),
                            ("sampler", "covp_sampler")):  # fmt: skip
        for register in load(platform, name).registers:
            member = register.name.lower()
            if name == "dma" and member.startswith("ch"):
                number, _, member = member[2:].partition("_")
                member = f"channel[{number}].{member}"
            checks.append(f"offsetof(struct {structure}, {member}) == {register.offset}")
    fields = {
        "COVP_DMA_ENABLE": ("dma", "CH0_CONFIG", "ENABLE"),
        "COVP_DMA_SOURCE_STEP": ("dma", "CH1_CONFIG", "SOURCE_STEP"),
        "COVP_DMA_TARGET_STEP": ("dma", "CH2_CONFIG", "TARGET_STEP"),
        "COVP_DMA_CIRCULAR": ("dma", "CH3_CONFIG", "CIRCULAR"),
        "COVP_DMA_HALF_INTERRUPT": ("dma", "CH0_CONFIG", "HALF_INTERRUPT"),
        "COVP_DMA_DONE_INTERRUPT": ("dma", "CH0_CONFIG", "DONE_INTERRUPT"),
        "(COVP_DMA_BYTES | COVP_DMA_HALFWORDS | COVP_DMA_WORDS)": ("dma", "CH0_CONFIG", "SIZE"),
        "(COVP_DMA_PACED(31, 256) & 0x1f00)": ("dma", "CH0_CONFIG", "REQUEST"),
        "(COVP_DMA_PACED(31, 256) & 0xff0000)": ("dma", "CH0_CONFIG", "BURST"),
        "(COVP_DMA_PACED(31, 256) & 0xff)": ("dma", "CH0_CONFIG", "PACED"),
        "(COVP_DMA_HALF(0) | COVP_DMA_HALF(3) | 6)": ("dma", "STATUS", "HALF"),
        "(COVP_DMA_DONE(0) | COVP_DMA_DONE(3) | 0x600)": ("dma", "STATUS", "DONE"),
        "COVP_MAILBOX_COUNT": ("to_main", "STATUS", "COUNT"),
        "COVP_MAILBOX_FULL": ("to_main", "STATUS", "FULL"),
        "COVP_MAILBOX_OVERFLOW": ("to_main", "STATUS", "OVERFLOW"),
        "COVP_MAILBOX_INTERRUPT": ("to_main", "INTERRUPT", "ENABLE"),
        "COVP_SAMPLER_ENABLE": ("sampler", "CONTROL", "ENABLE"),
        "COVP_SAMPLER_INTERRUPT": ("sampler", "CONTROL", "INTERRUPT"),
        "COVP_SAMPLER_COUNT": ("sampler", "STATUS", "COUNT"),
        "COVP_SAMPLER_OVERRUN": ("sampler", "STATUS", "OVERRUN"),
        "COVP_SAMPLER_END": ("sampler", "STATUS", "END"),
    }
    for macro, (name, place, field) in fields.items():
        checks.append(f"{macro} == {load(platform, name).registers[place][field].mask}u")
    includes = [f"#include <covp_{name}.h>" for name in ("dma", "mailbox", "sampler")]
    asserts = [f'_Static_assert({check}, "");' for check in checks]
    text = "\n".join(["#include <stddef.h>", *includes, *asserts, ""])
    toolchain = get_toolchain("zig", load_platform(platform).core)
    toolchain.compile([SourceText("headers.c", text)], flags=("-Werror",))


def load(platform: str, name: str) -> Peripheral:
    config = next(one for one in load_platform(platform).peripherals if one.name == name)
    return load_peripheral(config.model)


def test_vectors_are_those_of_the_lines() -> None:
    """Of the core's own peripherals; an exported project has the same."""
    handled = {"a.c": "#include <covp_handler.h>\nvoid covp_interrupt(void) {}\n", **EMPTY}
    with System("dual-m4-m0plus") as system:
        for core in system.platform.core_names:
            firmware = system.load_c(core, handled)
            handler = firmware.symbols["covp_interrupt"]
            start = system.platform.for_core(core).flash.start
            words = np.frombuffer(system.board.read(start, 4 * 20), "<u4")
            assert words[16:].tolist() == [handler.value] * 4
    assert "COVP_LINES 4" in start_sources(load_platform("dual-m4-m0plus").for_core("main"))[1].text
    program = covp.compile("toycar", "dual-m4-m0plus")
    files = firmware_files(Library.of(program), MemoryPlacement.first(program.platform))
    assert files["runtime/startup_arm_m.S"] == start_sources(program.platform)[1].text


@pytest.mark.costly
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("core", ["main", "sensor"])
def test_a_model_with_an_accelerator_on_either_core(platform: str, core: str) -> None:
    """Its interrupt leads to the core that the model is on, its bytes are in the report."""
    text = """
    #include "toycar.h"
    #include <string.h>
    static uint8_t arena[TOYCAR_ARENA_BYTES] __attribute__((aligned(16)));
    int8_t x[TOYCAR_INPUT_0_ELEMENTS], y[TOYCAR_OUTPUT_0_ELEMENTS];
    int main(void)
    {
        toycar_context model;
        for (int i = 0; i < (int)sizeof x; i++)
            x[i] = (int8_t)(7 * i);
        return toycar_init(&model, arena, sizeof arena) + toycar_run(&model, x, y);
    }
    """
    board = load_platform(platform)
    room = {r.name: replace(r, size="1M" if r.kind == "flash" else "64K") for r in board.memory
            if r.name.startswith("sensor")}  # fmt: skip
    moved = {"sensor_flash": 0x60000000}
    larger = tuple(replace(room.get(r.name, r), start=moved.get(r.name, r.start))
                   for r in board.memory)  # fmt: skip
    board = replace(board, memory=larger)
    program = covp.compile("toycar", board.for_core(core), ["gemm:wait=sleep"])
    with System(board) as system:
        for name in board.core_names:
            own = (EMPTY, None) if name != core else ({"main.c": text}, program)
            system.load_c(name, *own)
        done = system.run()
        assert done[core].status == 0
        x = system.variable(core, "x", np.int8)
        y = system.variable(core, "y", np.int8)
    expected = program.reference([x.reshape(program.inputs[0].shape)])[0]
    assert np.array_equal(y, expected.ravel())
    assert {layer.layer.target for layer in done[core].layers} == {"gemm"}
    assert done.traffic is not None
    weights = sum(moved.read for moved in done.traffic["gemm"].values())
    assert weights > 200_000 and done[core].asleep > 0.5 * done[core].cycles


@pytest.mark.costly
def test_custom_instructions_need_one_core() -> None:
    program = covp.compile("toycar", load_platform("dual-riscv32").for_core("main"), ["cfu"])
    with System("dual-riscv32") as system:
        with pytest.raises(UsageError, match="core main: cfu is a set of custom instructions"):
            system.load_c("main", EMPTY, program)
        assert not system.firmware and "cfu" not in system.peripherals
    # a session has the first core alone
    program = covp.compile("toycar", "dual-riscv32", ["cfu"])
    x = np.arange(640).astype(np.int8).reshape(program.inputs[0].shape)
    with covp.Session("dual-riscv32") as session:
        assert np.array_equal(session.load(program).run(x), program.reference([x])[0])
        assert sum(session.profile().jobs.values()) > 1000


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_other_compiler(platform: str) -> None:
    core = load_platform(platform).core
    if shutil.which(f"{core.gcc_prefix}gcc") is None:
        pytest.skip(f"{core.gcc_prefix}gcc is not installed")
    with System(platform, "gcc") as system:
        for name, text in (("sensor", SENSOR), ("main", MAIN)):
            system.load_c(name, {f"{name}.c": text}, flags=("-Werror",))
        assert run(system)["main"].status == 7
