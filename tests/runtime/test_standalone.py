"""Programs without a host: vectors, start-up code and the linker script of a platform."""

import io
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from covp.compilers.elf import ElfImage
from covp.compilers.toolchain import SourceText
from covp.errors import ToolchainError
from covp.runtime.linking import write_image
from covp.runtime.session import Session
from covp.runtime.standalone import link_standalone

MAIN = """
#include <stdint.h>
#include <string.h>
#include <math.h>
#include "covp_runtime.h"
static int32_t primes[5] = {2, 3, 5, 7, 11};
static int32_t zeros[100];
const char *text = "constant";
volatile float two = 2.0f;
int main(void)
{
    int32_t sum = 0;
    for (int i = 0; i < 100; i++) sum += zeros[i];
    for (int i = 0; i < 5; i++) sum += primes[i]++;
    for (const char *c = text; *c; c++) sum++;
    int32_t *work = covp_workspace_alloc(4000);
    memset(work, 0, 4000);
    sum += work[999];
    return sum * 100 + (int32_t)(sqrtf(two) * 10.0f);
}
"""


def test_a_program_runs_from_reset_to_the_end_of_main(virtual_session: Session) -> None:
    source = SourceText("main.c", MAIN)
    path = link_standalone(
        virtual_session.toolchain, virtual_session.platform, [source], flags=("-Werror",)
    )
    elf = ElfImage(path.read_bytes())
    device: Any = virtual_session.device
    ram = virtual_session.platform.ram
    device.write(ram.start, b"\xa5" * ram.bytes)
    load(device, path.read_bytes(), virtual_session.platform.flash.start)
    for _ in range(2):  # the second start must find fresh variables
        stop = device.execute(elf.symbols["covp_reset"].address, elf.symbols["covp_exit"].address)
        assert stop.instructions > 100
        status = device.read(elf.symbols["covp_exit_status"].address, 4)
        assert int.from_bytes(status, "little") == (28 + 8) * 100 + 14
    assert elf.symbols["covp_stack_top"].value == ram.start + virtual_session.platform.stack_bytes


def load(device: Any, elf: bytes, flash: int) -> None:
    """Store what a programmer stores: the loadable segments, at their physical addresses."""
    for segment in ELFFile(io.BytesIO(elf)).iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]:
            assert segment["p_paddr"] >= flash
            device.write(segment["p_paddr"], segment.data())


def test_the_vector_table_starts_the_flash_on_arm(virtual_session: Session) -> None:
    path = link_standalone(
        virtual_session.toolchain,
        virtual_session.platform,
        [SourceText("main.c", "int main(void) { return 0; }")],
    )
    elf = ElfImage(path.read_bytes())
    write_image(virtual_session.device, elf)
    start = virtual_session.platform.flash.start
    if virtual_session.platform.core.architecture == "riscv":
        assert elf.symbols["covp_reset"].address == start
        return
    words = [
        int.from_bytes(virtual_session.device.read(start + 4 * i, 4), "little") for i in range(16)
    ]
    assert words[0] == elf.symbols["covp_stack_top"].value
    assert words[1] == elf.symbols["covp_reset"].value
    assert words[3] == elf.symbols["HardFault_Handler"].value
    assert words[1] & words[3] & 1, "no Thumb bit"


def test_a_handler_of_the_program_replaces_the_default(virtual_session: Session) -> None:
    if virtual_session.platform.core.architecture == "riscv":
        pytest.skip("no vector table")
    text = "void SysTick_Handler(void) { }\nint main(void) { return 0; }"
    path = link_standalone(
        virtual_session.toolchain, virtual_session.platform, [SourceText("main.c", text)]
    )
    symbols = ElfImage(path.read_bytes()).symbols
    assert symbols["SysTick_Handler"].value != symbols["HardFault_Handler"].value


def test_what_overflows_the_memory_is_refused(virtual_session: Session) -> None:
    size = virtual_session.platform.ram.bytes
    text = f"volatile char big[{size}];\nint main(void) {{ return big[0]; }}"
    with pytest.raises(ToolchainError, match=f"region .*{virtual_session.platform.ram.name}"):
        link_standalone(
            virtual_session.toolchain, virtual_session.platform, [SourceText("main.c", text)]
        )
