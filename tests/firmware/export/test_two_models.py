"""Two exported models in one firmware: in turn, and one in an interrupt handler of the other."""

from __future__ import annotations

import io

import msgspec
import pytest
from elftools.elf.elffile import ELFFile

from covp.chip.platform_file import PeripheralConfig, load_platform
from covp.compilers.elf import ElfImage, global_names
from covp.compilers.toolchain import split_sources
from covp.device.virtual import VirtualDevice
from covp.runtime.session import Session
from covp.runtime.standalone import link_standalone
from tests.firmware.export.project_cases import project

MAIN = """\
#include "kws_selftest.h"
#include "toycar_selftest.h"

#include "source.h"

static uint8_t kws_arena[KWS_ARENA_BYTES] __attribute__((aligned(KWS_ARENA_ALIGNMENT)));
static uint8_t toycar_arena[TOYCAR_ARENA_BYTES] __attribute__((aligned(TOYCAR_ARENA_ALIGNMENT)));
static kws_context kws;
static toycar_context toycar;
static volatile int interrupts, wrong, in_main;

void HANDLER(void);
void HANDLER(void)
{
    stop();
    if (in_main)
        interrupts++;
    wrong += toycar_selftest(&toycar) != 0;
    start(300000);
}

int main(void)
{
    wrong += kws_init(&kws, kws_arena, sizeof kws_arena) != KWS_OK;
    wrong += toycar_init(&toycar, toycar_arena, sizeof toycar_arena) != TOYCAR_OK;
    wrong += kws_selftest(&kws) != 0;
    wrong += toycar_selftest(&toycar) != 0;
    start(300000);
    in_main = 1;
    wrong += kws_selftest(&kws) != 0;
    in_main = 0;
    stop();
    return 100 * interrupts + wrong;
}
"""

SYSTICK = """\
#define HANDLER SysTick_Handler
#define SYST ((volatile uint32_t *)0xe000e010u) /* CSR, RVR, CVR */

static void stop(void)
{
    SYST[0] = 0;
}

static void start(uint32_t cycles)
{
    SYST[1] = cycles;
    SYST[2] = 0;
    SYST[0] = 7; /* core clock, interrupt, enable */
}
"""
TIMER = """\
#include <covp_handler.h>

#define HANDLER covp_interrupt
#define TIMER ((volatile uint32_t *)0x60000000u) /* peripherals/timer.py: CTRL, STATUS, PERIOD */

static void stop(void)
{
    TIMER[0] = 0;
    TIMER[1] = 3;
}

static void start(uint32_t cycles)
{
    TIMER[2] = cycles;
    TIMER[0] = 5; /* one-shot, with an interrupt */
    covp_enable_line(5);
}
"""


@pytest.mark.costly
@pytest.mark.parametrize(
    ("platform", "source"),
    [("cortex-m4", SYSTICK), ("cortex-m0plus", SYSTICK), ("riscv32", TIMER)],
)
def test_one_interrupts_the_other(platform: str, source: str) -> None:
    texts = {"main.c": MAIN, "source.h": source}
    for model in ("kws", "toycar"):
        made = project(model, platform)
        files = {**made.library.files, **made.sample}
        texts |= {name.rpartition("/")[2]: text for name, text in files.items()}
    sources, headers = split_sources(texts)
    timer = PeripheralConfig("timer", "timer", 0x60000000, irq=5)
    board = load_platform(platform)
    board = msgspec.structs.replace(board, peripherals=(*board.peripherals, timer))
    with Session(board) as session:
        path = link_standalone(session.toolchain, session.platform, sources, headers=headers)
        elf, device = ElfImage(path.read_bytes()), session.device
        assert isinstance(device, VirtualDevice)
        for segment in ELFFile(io.BytesIO(path.read_bytes())).iter_segments():
            if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
                device.write(segment["p_paddr"], segment.data())
        device.execute(elf.symbols["covp_reset"].address, elf.symbols["covp_exit"].address)
        status = int.from_bytes(device.read(elf.symbols["covp_exit_status"].address, 4), "little")
    interrupts, wrong = divmod(status, 100)
    assert wrong == 0
    assert interrupts >= 3


@pytest.mark.costly
@pytest.mark.parametrize(
    ("model", "accelerator"), [("kws", ""), ("kws", "gemm"), ("sww", "vector")]
)
def test_external_names_are_the_models_or_the_accelerators(model: str, accelerator: str) -> None:
    made = project(model, "riscv32", "zig", accelerator)
    sources, headers = split_sources(
        {name.rpartition("/")[2]: text for name, text in made.library.files.items()}
    )
    names = global_names(made.toolchain.compile(sources, headers))
    own = (f"{model}_", f"{accelerator}_") if accelerator else (f"{model}_",)
    assert f"{model}_run" in names
    assert [name for name in names if not name.startswith(own)] == []
