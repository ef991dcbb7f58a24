"""Bytes moved, by memory and layer: counted by hand, by the sizes of tensors, by another hook."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from unicorn import unicorn_const as uc

import covp
import covp.device.machine.counter as counter
from covp.chip.platform_file import Platform, load_platform
from covp.cli.main import main
from covp.device.phase_count import CORE, MovedBytes, PhaseCount, add_traffic
from covp.device.virtual import VirtualDevice
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Register, RegisterMap
from covp.runtime.profile import Profile
from tests.conftest import Loaded
from tests.device.test_interrupts import BASE, LINE, Worker, arm

# -- small programs, counted by hand ---------------------------------------------------------------

RISCV = """
start:
    lui s0, 0x80002          # RAM
    la s1, constants         # flash
    lb t0, 0(s1)
    lhu t0, 2(s1)
    lw t0, 4(s1)             # 7 bytes of flash
    sb t0, 1(s0)
    sh t0, 2(s0)
    sw t0, 4(s0)             # 7 bytes of RAM
    lw t0, 0(s0)
    lbu t0, 3(s0)            # 5 bytes of RAM
    li t1, 10
again:
    lw t0, 0(s1)             # 40 bytes of flash
    sh t0, 8(s0)             # 20 bytes of RAM
    addi t1, t1, -1
    bnez t1, again
end:
    j end
    .balign 4
constants:
    .word 1, 2
"""
ARM = """
start:
    movw r4, #0x2000
    movt r4, #0x2000
    ldr r5, =constants
    ldrb r0, [r5]
    ldrsh r0, [r5, #2]       @ 3 bytes of flash, and a word: the address
    ldm r5, {r0, r1, r2}     @ 12 bytes of flash
    stm r4!, {r0, r1, r2}    @ 12 bytes of RAM
    ldrd r0, r1, [r5]        @ 8 bytes of flash
    strd r0, r1, [r4]        @ 8 bytes of RAM
    push {r0-r3, lr}
    pop {r0-r3, lr}          @ 20 bytes of RAM each way
    vldr d0, [r4]            @ 8 bytes of RAM
    vstr s0, [r4]            @ 4 bytes of RAM
    vldmia r4, {s0-s4}       @ 20 bytes of RAM
    adr r3, end              @ no access
    ldr r0, [r4, #-3]
    str r0, [r4, #-3]        @ misaligned: 4 bytes of RAM each way
    movw r6, #0x2ffe
    movt r6, #0x2000
    ldr r0, [r6]
    strh r0, [r6, #1]        @ across a page: 4 bytes read, 2 written
end:
    b end
    .ltorg
    .balign 4
constants:
    .word 1, 2, 3
"""
BY_HAND = {
    "riscv32": (RISCV, {"flash": (7 + 40, 0), "ram": (5, 7 + 20)}),
    "cortex-m4": (
        ARM,
        {"flash": (3 + 4 + 12 + 8, 0), "ram": (20 + 8 + 20 + 4 + 4, 12 + 8 + 20 + 4 + 4 + 2)},
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("inlining", [True, False])
def test_small_programs(
    name: str, inlining: bool, program: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter, "INLINING", inlining)
    text, expected = BY_HAND[name]
    loaded = program(name, text)
    device = loaded.device
    device.counts.set_phases([(loaded.labels["start"], 1)])
    loaded.run()  # translated before it is counted
    device.counts.count_traffic()
    for _ in range(2):
        outside, inside = loaded.run().phases
        moved = core(inside)
        assert {m: (one.read, one.written) for m, one in moved.items() if one.read} == expected
        assert not any(one.read or one.written for one in core(outside).values())
        instructions = sum(block.count * block.size for block in device.counts.trace().blocks)
    assert sum(one.fetched for one in moved.values()) * 3 == instructions


def core(phase: PhaseCount) -> dict[str, MovedBytes]:
    assert phase.traffic is not None
    return dict(phase.traffic[CORE])


def test_exceptions_save_and_restore_registers(program: Callable[..., Loaded]) -> None:
    loaded = program(
        "cortex-m0plus",
        arm("""
    movs r4, #100
    str r4, [r6]
    movs r5, #0
loop:
    cmp r7, #0
    beq loop
"""),
    )
    loaded.device.attach(Worker(), BASE, "worker", LINE)
    loaded.device.counts.set_phases([])
    loaded.device.counts.count_traffic()
    (phase,) = loaded.run().phases
    # eight words each way, the vector, and the two addresses that `arm` loads
    moved = core(phase)
    assert (moved["ram"].read, moved["ram"].written) == (32, 32)
    assert (moved["flash"].read, moved["flash"].written) == (4 + 2 * 4, 0)


class Copier(Peripheral):
    """A bus master without jobs: 100 bytes from flash to RAM."""

    registers = RegisterMap(Register("GO", 0x00, on_write="go"))

    def go(self, value: int) -> None:
        self.bus.write(0x80002000, self.bus.read(0x20000000, value))


def test_a_bus_master_of_any_kind(program: Callable[..., Loaded]) -> None:
    loaded = program(
        "riscv32", f"start:\n lui a0, {BASE >> 12:#x}\n li a1, 100\n sw a1, 0(a0)\nend:\n j end"
    )
    loaded.device.attach(Copier(), BASE, "copier")
    loaded.device.counts.set_phases([(loaded.labels["start"], 1)])
    loaded.device.counts.count_traffic()
    traffic = loaded.run().phases[1].traffic
    flash, ram = (region.name for region in loaded.device.platform.memory)
    assert traffic is not None
    assert traffic["copier"] == {flash: MovedBytes(read=100), ram: MovedBytes(written=100)}
    assert all((one.read, one.written) == (0, 0) for one in traffic[CORE].values())


# -- models ----------------------------------------------------------------------------------------


def measured(
    platform: Platform, model: str, accelerators: list[str], traffic: bool
) -> tuple[Profile, Counter[Any]]:
    """An inference, and what a hook in Python saw of its loads and stores."""
    program = covp.compile(model, platform, accelerators=accelerators)
    seen: Counter[Any] = Counter()

    def see(engine: object, kind: int, address: int, size: int, value: int, data: object) -> None:
        if platform.region_of(address):
            seen[kind == uc.UC_MEM_WRITE] += size

    with VirtualDevice(platform) as device, covp.Session(platform, device=device) as session:
        if traffic:
            device.counts.count_traffic()
        graph = session.load(program)
        if traffic:
            device.core.engine.hook_add(uc.UC_HOOK_MEM_READ | uc.UC_HOOK_MEM_WRITE, see)
            device.core.engine.ctl_flush_tb()
        graph.run(*(np.zeros(t.shape, t.dtype) for t in program.inputs))
        return graph.profile(), seen


@pytest.mark.costly
@pytest.mark.parametrize(
    ("name", "model", "accelerators"),
    [
        ("riscv32", "toycar", []),
        ("cortex-m7", "toycar", []),
        ("cv32e40p", "kws", ["qconv2d"]),
        ("cortex-m4", "kws", ["gemm"]),
    ],
)
def test_models(name: str, model: str, accelerators: list[str]) -> None:
    platform = load_platform(name)
    plain, _ = measured(platform, model, accelerators, False)
    profile, seen = measured(platform, model, accelerators, True)
    # nothing else changes
    assert plain.traffic is None and all(entry.traffic is None for entry in plain.layers)
    assert (plain.instructions, plain.cycles) == (profile.instructions, profile.cycles)
    assert [(e.instructions, e.cycles, e.causes, e.offload, e.work) for e in plain.layers] == [
        (e.instructions, e.cycles, e.causes, e.offload, e.work) for e in profile.layers
    ]
    # the hook in Python sees covp's task runner too: some words before and after
    assert profile.traffic is not None
    of_core = profile.traffic[CORE]
    for is_write in (False, True):
        counted = sum(one.written if is_write else one.read for one in of_core.values())
        assert 0 <= seen[is_write] - counted < 400
    assert add_traffic([*(e.traffic for e in profile.layers), profile.between.traffic]) == (
        profile.traffic
    )


@pytest.mark.costly
@pytest.mark.parametrize("unit", ["qconv2d", "gemm"])
def test_a_unit_moves_its_tensors(unit: str) -> None:
    platform = load_platform("riscv32")
    profile, _ = measured(platform, "kws", [unit], True)
    graph = covp.compile("kws", platform, accelerators=[unit]).graph
    found = 0
    for entry in profile.layers:
        if entry.target != unit:
            continue
        found += 1
        assert entry.traffic is not None and entry.work is not None
        moved = entry.traffic[unit]
        op = next(op for op in graph.ops if op.index == entry.index)
        image, weights = op.inputs[0], op.inputs[1]
        assert image is not None and weights is not None
        flash, ram = (region.name for region in platform.memory)
        assert moved[ram] == MovedBytes(read=image.nbytes, written=op.outputs[0].nbytes)
        # weights; bias, multiplier and shift of 4 bytes each for every channel
        channels = op.outputs[0].shape[-1]
        constants = weights.nbytes + 12 * channels
        jobs = entry.work.jobs or 0
        # and the registers that only gemm fetches: addresses and numbers
        registers = 21 if unit == "gemm" else 0
        assert moved[flash] == MovedBytes(read=(constants + 4 * registers) * jobs)
        assert entry.work.bytes_read == image.nbytes + constants * jobs
    assert found >= 6


# -- the command -----------------------------------------------------------------------------------


@pytest.mark.costly
def test_the_table_and_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "toycar", "-p", "riscv32", "-a", "gemm", "--check", "none", "--traffic"]
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as done:
            main([*command, *more])
        assert done.value.code == 0
    text, document = capsys.readouterr().out.split("\n{", 1)
    run = json.loads("{" + document)
    parts = [*run["layers"], run["between"]]
    for memory, moved in run["bytes"].items():
        for way, size in moved.items():
            assert sum(part["bytes"].get(memory, {}).get(way, 0) for part in parts) == size
            masters = run["bytes_by_master"].values()
            assert sum(own.get(memory, {}).get(way, 0) for own in masters) == size
    total = [line.split() for line in text.splitlines() if line.split()[:2] == ["total", "gemm"]]
    gemm = run["bytes_by_master"]["gemm"]
    assert total == [
        ["total", "gemm", f"{gemm['flash']['read']:,}", "0"]
        + [f"{gemm['ram'][way]:,}" for way in ("read", "write")]
    ]


def test_a_device_that_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["run", "toycar", "-p", "host", "--device", "host", "--traffic"])
    assert done.value.code == 2
    assert "device host does not count the bytes that are moved" in capsys.readouterr().err
