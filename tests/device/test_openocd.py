"""The whole chain: client, the real OpenOCD, a virtual debug port, a virtual core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import covp
from covp.chip.platform_file import load_platform
from covp.evaluation import evaluate
from covp.graph.random_inputs import random_inputs
from covp.runtime.session import Session
from tests.conftest import load

from .openocd_board import Board, virtual_board

INT8_MODELS = ("toycar", "kws", "resnet", "vww", "sww")
FLOAT_MODELS = ("resnet_float", "kws_float", "vww_float")
C = """
#include <stdint.h>
int32_t add(int32_t a, int32_t b) { return a + b; }
float scale(float x, float y) { return x * y; }
int64_t wide(int32_t a, int64_t b) { return a + b; }
void fill(int32_t *p, int32_t n) { for (int32_t i = 0; i < n; i++) p[i] = i * i; }
"""
# 3 instructions a round, nothing that a cache or a branch predictor changes
LOOPS = {
    "cortex_m": "start: movs r0, #200\nagain: nop\n subs r0, #1\n bne again\nend: b end",
    "riscv": "start: li a0, 200\nagain: nop\n addi a0, a0, -1\n bnez a0, again\nend: j end",
}


@pytest.fixture(scope="module")
def cortex_m() -> Iterator[Board]:
    with virtual_board("stm32f746") as board:
        yield board


@pytest.fixture(scope="module")
def riscv() -> Iterator[Board]:
    with virtual_board("riscv32") as board:
        yield board


def board_of(request: pytest.FixtureRequest, name: str) -> Board:
    board: Board = request.getfixturevalue(name)
    return board


@pytest.mark.parametrize("name", ["cortex_m", "riscv"])
def test_calls(request: pytest.FixtureRequest, name: str) -> None:
    board = board_of(request, name)
    with Session(board.core.platform, device=board.name, timeout=60) as session:
        module = session.load_c(C)
        assert module["add"](-3, 4).result() == 1
        assert module["scale"](1.5, 3.0).result() == 4.5
        assert module["wide"](-1, 1 << 40).result() == (1 << 40) - 1
        tensor = session.tensor(np.zeros(1000, np.int32))
        module["fill"](tensor, 1000)
        np.testing.assert_array_equal(tensor.numpy(), np.arange(1000, dtype=np.int32) ** 2)


# around the sizes from where files are used, and where an access is split
@pytest.mark.parametrize("size", [1, 3, 4, 4097, 8191, 8192, 8195, 1 << 17])
def test_memory(cortex_m: Board, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    device = cortex_m.device()
    sram = next(part for part in cortex_m.core.platform.memory if part.name == "sram")
    for region in (sram, cortex_m.core.platform.flash):  # the first RAM holds 64 KB only
        start = region.start + 0x8000 + size % 4
        device.write(start, data)
        assert device.read(start, size) == data == cortex_m.core.read(start, size)
    device.close()


@pytest.mark.parametrize("name", ["cortex_m", "riscv"])
def test_registers(request: pytest.FixtureRequest, name: str) -> None:
    board = board_of(request, name)
    device = board.device()
    for number, register in enumerate(board.core.core.registers()):
        if register not in ("pc", "xpsr", "zero"):
            device.write_register(register, 0x20000000 + 0x100 * number)
    read = device.registers()
    device.write_register("pc", device.platform.ram.start)
    assert device.read_register("pc") == device.platform.ram.start
    device.close()
    assert read.keys() == board.core.core.registers().keys()
    for number, register in enumerate(read):
        if register not in ("pc", "xpsr", "zero"):
            assert read[register] == 0x20000000 + 0x100 * number, register


@pytest.mark.costly
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("model", ["kws", "toycar"])
def test_the_same_bits_as_on_the_virtual_device(
    cortex_m: Board, model: str, hosted: bool, strict: bool
) -> None:
    platform = load_platform("stm32f746")
    graph = covp.load_model(model)
    program = covp.compile(graph, platform)
    inputs = random_inputs(graph.inputs, 1)
    results, cycles = [], []
    for device in ("virtual", cortex_m.name):
        with Session(platform, device=device, strict=strict) as session:
            module = session.load(program, hosted=hosted)
            results.append(module.run(*inputs))
            cycles.append(module.profile().cycles)
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(results[0], program.reference(inputs)[0])
    # DWT_CYCCNT also sees the runtime around the layers; the virtual profile leaves that out
    assert cycles[0] is not None and cycles[1] is not None
    assert cycles[0] < cycles[1] < cycles[0] + 2000


@pytest.mark.parametrize("name", LOOPS)
def test_cycles_are_what_the_counter_says(request: pytest.FixtureRequest, name: str) -> None:
    """DWT_CYCCNT or mcycle, against the same loop on a virtual device without a debugger."""
    board = board_of(request, name)
    start = board.core.platform.ram.start + 0x100
    alone = load(board.core.platform.name, LOOPS[name], start)
    expected = alone.run()
    end = alone.labels["end"]
    device = board.device()
    device.write(start, alone.device.read(start, end + 4 - start))
    alone.device.close()
    before = board.core.instructions
    stop = device.execute(start, end)
    device.close()
    assert stop.instructions is None
    assert board.core.instructions - before == expected.instructions == 1 + 3 * 200
    assert stop.cycles == expected.cycles


@pytest.mark.slow
@pytest.mark.parametrize("model", [*INT8_MODELS, *FLOAT_MODELS])
def test_every_model(cortex_m: Board, model: str) -> None:
    result = evaluate(model, "stm32f746", device=cortex_m.name)
    assert result.matches_reference and result.profile.cycles


@pytest.mark.slow
def test_the_largest_model_on_the_larger_flash() -> None:
    with virtual_board("stm32l4r5") as board:
        assert evaluate("toycar_float", "stm32l4r5", device=board.name).matches_reference


@pytest.mark.slow
def test_riscv_over_jtag(riscv: Board) -> None:
    result = evaluate("toycar", "riscv32", device=riscv.name)
    assert result.matches_reference
