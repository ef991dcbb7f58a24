"""Programs on the device: data in and out, costs by layer, memory, accelerators."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import CCall
from covp.chip.platform_file import Platform, load_platform
from covp.codegen.program import AcceleratorInstance, Program, ProgramLayer, ProgramTensor
from covp.errors import CapacityError, DeviceFault, ToolchainError, UsageError
from covp.graph.graph import Graph
from covp.graph.pattern import Match
from covp.runtime.session import Session

Open = Callable[..., Session]

HEADER = "#include <stdint.h>\nextern uint8_t net_arena[256];\nvoid net_run(void);\n"
TWICE = """
#include <stdint.h>
void net_00_twice(const int8_t *input, int16_t *output)
{
    for (int32_t i = 0; i < 8; i++)
        output[i] = (int16_t)(input[i] * 2);
}
"""
MEAN = """
#include <stdint.h>
#include <string.h>
static const int32_t weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
void net_01_sum(const int16_t *input, int32_t *output, int16_t *scratch)
{
    memcpy(scratch, input, 16);
    int32_t sum = 0;
    for (int32_t i = 0; i < 8; i++)
        sum += scratch[i] * weights[i];
    output[0] = sum;
}
"""
RUN = """
#include "net.h"
void net_00_twice(const int8_t *input, int16_t *output);
void net_01_sum(const int16_t *input, int32_t *output, int16_t *scratch);
uint8_t net_arena[256] __attribute__((aligned(16)));
void net_run(void)
{
    net_00_twice((void *)(net_arena + 0), (void *)(net_arena + 16));
    net_01_sum((void *)(net_arena + 16), (void *)(net_arena + 64), (void *)(net_arena + 128));
}
"""


def make_program(platform: Platform, run: str = RUN, **changes: Any) -> Program:
    program = Program(
        name="net",
        graph=Graph("net", [], []),
        platform=platform,
        sources={"net.h": HEADER, "net.c": run, "twice.c": TWICE, "sum.c": MEAN},
        run_function="net_run",
        arena_symbol="net_arena",
        arena_bytes=256,
        inputs=(ProgramTensor("x", (2, 4), np.dtype("int8"), 0),),
        outputs=(ProgramTensor("y", (1,), np.dtype("int32"), 64),),
        layers=(
            ProgramLayer(0, "twice", "MUL", "cpu", 8, "net_00_twice"),
            ProgramLayer(2, "sum", "FULLY_CONNECTED", "cpu", 8, "net_01_sum"),
        ),
    )
    return dataclasses.replace(program, **changes)


X = np.array([[1, -2, 3, -4], [5, 6, -7, 127]], np.int8)
Y = int((X.ravel().astype(np.int32) * 2) @ np.arange(1, 9))


def test_inputs_go_in_and_outputs_come_out(session: Session) -> None:
    graph = session.load(make_program(session.platform))
    assert graph.run(X).tolist() == [Y]
    assert graph.run(-np.clip(X, -127, 127)).tolist() == [-Y]


def test_several_outputs_are_a_list(open_session: Open) -> None:
    session = open_session("riscv32")
    outputs = (
        ProgramTensor("y", (1, 1), np.dtype("int32"), 64),
        ProgramTensor("twice", (8,), np.dtype("int16"), 16),
    )
    first, second = session.load(make_program(session.platform, outputs=outputs)).run(X)
    assert first.tolist() == [[Y]]
    assert second.tolist() == (X.ravel().astype(int) * 2).tolist()


def block_profile(device: Any) -> dict[int, int]:
    """Instructions spent so far in the blocks at an address."""
    spent: dict[int, int] = {}
    for block in device.core.counter.blocks():
        spent[block.address] = spent.get(block.address, 0) + block.instructions * block.count
    return spent


def test_layers_and_between_add_up_to_the_exact_total(virtual_session: Session) -> None:
    graph = virtual_session.load(make_program(virtual_session.platform))
    device: Any = virtual_session.device
    graph.run(X)
    profile = virtual_session.profile()
    assert [entry.layer.name for entry in profile.layers] == ["twice", "sum"]
    assert all((entry.instructions or 0) > 8 for entry in profile.layers)
    assert profile.between.instructions is not None and profile.instructions is not None
    assert 2 <= profile.between.instructions < 40
    layers = sum(entry.instructions or 0 for entry in profile.layers)
    assert layers + profile.between.instructions == profile.instructions
    assert profile.cycles is not None and profile.between.cycles is not None
    cycles = sum(entry.cycles or 0 for entry in profile.layers)
    assert cycles + profile.between.cycles == profile.cycles
    # the oracle: blocks of code that ran, by the function they lie in
    symbols = graph.image.elf.symbols
    before = block_profile(device)
    graph.run(X)
    assert virtual_session.profile() == profile, "a second run counts differently"
    after = block_profile(device)
    spent = {address: count - before.get(address, 0) for address, count in after.items()}

    def inside(name: str) -> int:
        start, end = symbols[name].address, symbols[name].address + symbols[name].size
        return sum(count for address, count in spent.items() if start <= address < end)

    assert inside("net_00_twice") == profile.layers[0].instructions
    assert inside("net_01_sum") <= (profile.layers[1].instructions or 0), "with memcpy"
    assert inside("net_run") == profile.between.instructions


def test_a_layer_that_is_called_last_without_return_is_counted(open_session: Open) -> None:
    """A tail call leaves the layer to return to the task runner, past the run function."""
    for platform in ("cortex-m4", "riscv32"):
        session = open_session(platform)
        flags = ("-foptimize-sibling-calls",)
        graph = session.load(make_program(session.platform, flags=flags))
        graph.run(X)
        profile = session.profile()
        layers = sum(entry.instructions or 0 for entry in profile.layers)
        assert profile.between.instructions is not None
        assert layers + profile.between.instructions == profile.instructions


def test_the_profile_prints_as_a_table(open_session: Open) -> None:
    session = open_session("cortex-m7")
    with pytest.raises(UsageError, match="no program has run"):
        session.profile()
    graph = session.load(make_program(session.platform))
    with pytest.raises(UsageError, match="has not run"):
        graph.profile()
    graph.run(X)
    lines = str(session.profile()).splitlines()
    assert [line.split()[0] for line in lines] == ["layer", "0", "2", "between", "net"]
    assert lines[1].split()[1:4] == ["twice", "MUL", "cpu"]
    profile = session.profile()
    assert profile.seconds == profile.cycles / 216e6  # type: ignore[operator]


@pytest.mark.parametrize(
    "inputs, reason",
    [
        ((), "takes 1 input, not 0"),
        ((X, X), "takes 1 input, not 2"),
        ((X.ravel(),), r"input x must be int8 of shape \(2, 4\), not int8 of shape \(8,\)"),
        ((X.astype(np.uint8),), r"int8 of shape \(2, 4\), not uint8"),
        ((X.tolist(),), "not int64"),
    ],
)
def test_wrong_inputs_are_refused(open_session: Open, inputs: tuple[Any, ...], reason: str) -> None:
    session = open_session("riscv32")
    with pytest.raises(UsageError, match=reason):
        session.load(make_program(session.platform)).run(*inputs)


def test_programs_stand_side_by_side_and_memory_is_accounted(session: Session) -> None:
    empty = session.memory()
    assert empty.arena_bytes == 0 and empty.tensor_bytes == 0
    assert empty.stack_bytes == session.platform.stack_bytes
    assert empty.ram_bytes < empty.stack_bytes + 200
    graph = session.load(make_program(session.platform))
    one = session.memory()
    assert one.arena_bytes == 256
    assert one.ram_bytes == empty.ram_bytes + 256
    assert 100 < one.flash_bytes - empty.flash_bytes < 1000
    other = session.load(make_program(session.platform))
    session.tensor(np.zeros(100, np.int8))
    held = session.tensor(np.zeros(100, np.int8))
    assert session.memory().tensor_bytes == held.nbytes
    assert graph.run(X).tolist() == other.run(X).tolist() == [Y]
    other.unload()
    held.free()
    assert session.memory() == one
    with pytest.raises(UsageError, match="unloaded"):
        other.run(X)


def test_a_program_that_does_not_fit_says_by_how_much(open_session: Open) -> None:
    session = open_session("hifive1")
    run = RUN.replace("[256]", "[20000]")
    program = make_program(session.platform, run)
    program = dataclasses.replace(
        program,
        sources={**program.sources, "net.h": HEADER.replace("256", "20000")},
        arena_bytes=20000,
    )
    with pytest.raises(CapacityError, match=r"^net: section \.bss needs 20000 bytes.*ram \(16384"):
        session.load(program)


def test_a_program_for_another_platform_is_refused(open_session: Open) -> None:
    program = make_program(load_platform("cortex-m4"))
    with pytest.raises(UsageError, match="compiled for cortex-m4, the session runs riscv32"):
        open_session("riscv32").load(program)


def test_a_broken_program_names_its_file(open_session: Open) -> None:
    session = open_session("riscv32")
    program = make_program(session.platform, RUN.replace("net_01_sum((", "net_02_sum(("))
    with pytest.raises(ToolchainError, match=r"net\.c:\d+: .*net_02_sum"):
        session.load(program)


def test_a_fault_in_a_layer_names_its_line(session: Session) -> None:
    program = make_program(session.platform)
    bad = TWICE.replace("output[i] =", "((volatile int16_t *)0x50000000)[i] =")
    program = dataclasses.replace(program, sources={**program.sources, "twice.c": bad})
    graph = session.load(program)
    with pytest.raises(DeviceFault, match=r"0x50000000.*net_00_twice.*twice\.c:6"):
        graph.run(X)


def test_accelerators_are_on_the_bus_while_a_program_needs_them(open_session: Open) -> None:
    from covp.hardware.peripheral import Peripheral
    from covp.hardware.registers import Register, RegisterMap

    class Answer(Peripheral):
        registers = RegisterMap(Register("VALUE", 0, reset=42))

    class AnswerBackend(AcceleratorBackend):
        name = "answer"
        patterns = ()
        peripheral = Answer

        def supports(self, match: Match) -> bool:
            return False

        def lower(self, match: Match) -> CCall:
            raise NotImplementedError

        def driver(self, base: int) -> dict[str, str]:
            return {}

    session = open_session("riscv32")
    base = 0x70000000
    run = RUN.replace(
        "{\n    net_00",
        "{\n    net_arena[200] = (uint8_t)*(volatile uint32_t *)0x70000000;\n    net_00",
    )
    instance = AcceleratorInstance("answer", AnswerBackend(), base)
    program = make_program(
        session.platform,
        run,
        accelerators=(instance,),
        outputs=(ProgramTensor("a", (1,), np.dtype("uint8"), 200),),
    )
    graph = session.load(program)
    assert graph.run(X) == [42]
    second = session.load(program)
    graph.unload()
    assert second.run(X) == [42]
    other = dataclasses.replace(
        program, accelerators=(dataclasses.replace(instance, name="other"),)
    )
    flash = session.memory()
    with pytest.raises(UsageError, match="other at 0x70000000: answer is there already"):
        session.load(other)
    assert session.memory() == flash
    second.unload()
    assert session.load(other).run(X) == [42]
