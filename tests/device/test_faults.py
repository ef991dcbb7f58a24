"""Faults explain themselves: kind, address, pc, symbol, line, registers; and nothing hangs."""

from __future__ import annotations

import struct

import pytest

from covp.chip.platform_file import load_platform
from covp.device.virtual import VirtualDevice
from covp.errors import AcceleratorError, DeviceError, DeviceFault, PlatformError
from covp.hardware.peripheral import Peripheral
from covp.hardware.registers import Field, Register, RegisterMap

ARM = "start:\n nop\nbad:\n {}\n nop\nend:\n b end"
RISCV = "start:\n nop\nbad:\n {}\n nop\nend:\n j end"


def fault_of(loaded, **options):
    with pytest.raises(DeviceFault) as caught:
        loaded.run(**options)
    return caught.value


@pytest.mark.parametrize(
    ("instruction", "address", "kind"),
    [
        ("ldr r0, [r1]", 0x1000, "unmapped read"),
        ("ldrb r0, [r1]", 0x200A0000, "unmapped read"),
        ("str r0, [r1]", 0x1000, "unmapped write"),
        ("str r0, [r1]", 0x08000100, "write to read-only memory"),
        ("bx r1", 0x1001, "unmapped fetch"),
        ("push {r0}", None, "stack overflow"),
        ("udf #3", None, "illegal instruction"),
        ("bkpt #0", None, "breakpoint"),
        ("mcr p1, 0, r0, c0, c0, 0", None, "illegal instruction"),
        ("str r0, [r1]", 0x50080000, "unmapped write"),
        ("ldr r0, [r1]", 0xE000E00C, "register access"),
    ],
)
def test_arm(program, instruction, address, kind):
    loaded = program("cortex-m4", ARM.format(instruction))
    loaded.device.board.names.symbols.add(str(loaded.elf))
    if address is None:
        loaded.device.core.write_register("sp", 0x20000000)
    else:
        loaded.device.core.write_register("r1", address)
    fault = fault_of(loaded)
    assert fault.kind == kind
    expected = 0x1000 if kind == "unmapped fetch" else loaded.labels["bad"]
    assert fault.pc == expected
    assert fault.registers["pc"] == expected
    retired = 2 if kind == "unmapped fetch" else 1
    assert loaded.device.instructions == retired
    if address is not None:
        assert fault.address == address & ~1
    if kind != "unmapped fetch":
        assert fault.source == "test.S:8"
    assert f"pc 0x{expected:08x}" in str(fault) and "\n" not in str(fault)


@pytest.mark.parametrize(
    ("instruction", "address", "kind"),
    [
        ("lw a0, 0(a1)", 0x1000, "unmapped read"),
        ("sw a0, 0(a1)", 0x1000, "unmapped write"),
        ("sw a0, 0(a1)", 0x20000100, "write to read-only memory"),
        ("jr a1", 0x1000, "unmapped fetch"),
        ("sw a0, -4(sp)", None, "stack overflow"),
        (".word 0x00000000", None, "illegal instruction"),
        (".word 0xffffffff", None, "illegal instruction"),
        (".half 0x0000", None, "illegal instruction"),
        ("ebreak", None, "breakpoint"),
        ("ecall", None, "unhandled exception"),
        ("csrr a0, 0x7c0", None, "illegal instruction"),
    ],
)
def test_riscv(program, instruction, address, kind):
    loaded = program("riscv32", RISCV.format(instruction))
    if address is None:
        loaded.device.core.write_register("sp", 0x80000000)
    else:
        loaded.device.core.write_register("a1", address)
    fault = fault_of(loaded)
    assert fault.kind == kind
    expected = 0x1000 if kind == "unmapped fetch" else loaded.labels["bad"]
    assert fault.pc == expected
    assert loaded.device.instructions == (2 if kind == "unmapped fetch" else 1)


REFUSED = [
    ("cortex-m0plus", "cbz r0, end", ".hword 0xb100"),
    ("cortex-m0plus", "it eq", ".hword 0xbf08, 0xbf00"),
    ("cortex-m0plus", "movw r0, #1", ".hword 0xf240, 0x0001"),
    ("cortex-m0plus", "udiv r0, r1, r2", ".hword 0xfbb1, 0xf0f2"),
    ("cortex-m3", "smlad r0, r1, r2, r3", ".hword 0xfb21, 0x3002"),
    ("cortex-m3", "sxtb16 r0, r1", ".hword 0xfa2f, 0xf081"),
    ("cortex-m3", "sxtab r0, r1, r2", ".hword 0xfa41, 0xf082"),
    ("cortex-m3", "qadd r0, r1, r2", ".hword 0xfa82, 0xf081"),
    ("cortex-m3", "pkhbt r0, r1, r2", ".hword 0xeac1, 0x0002"),
    ("cortex-m3", "smmulr", ".hword 0xfb51, 0xf012"),
    ("cortex-m3", "vadd.f32 s0, s1, s2", ".hword 0xee30, 0x0a81"),
    ("cortex-m4", "vadd.f64 d0, d1, d2", ".hword 0xee31, 0x0b02"),
    ("riscv32", "fadd.s fa0, fa1, fa2", ".word 0x00c5f553"),
    ("riscv32", "flw fa0, 0(a0)", ".word 0x00052507"),
    ("riscv32", "amoadd.w a0, a1, (a2)", ".word 0x00b6252f"),
    ("riscv32", "c.zext.b a0", ".half 0x9d61"),
    ("riscv32", "c.flw fa0, 0(a0)", ".half 0x6108"),
    ("riscv32f", "fadd.d fa0, fa1, fa2", ".word 0x02c5f553"),
    ("riscv32", "sh1add a0, a1, a2", ".word 0x20c5a533"),
]


def platform_with_core(name):
    if name != "cortex-m3":
        return load_platform(name)
    import msgspec

    return msgspec.structs.replace(load_platform("cortex-m4"), core_name="cortex-m3")


@pytest.mark.parametrize(
    ("platform", "name", "code"), REFUSED, ids=[f"{p}-{n}" for p, n, _ in REFUSED]
)
def test_instructions_the_core_does_not_have(program, platform, name, code):
    """The emulator alone runs most of these."""
    values = [int(word.strip(","), 0) for word in code.split()[1:]]
    form = "I" if code.startswith(".word") else "H"
    nop = struct.pack("<H", 0x0001 if platform.startswith("riscv") else 0xBF00)
    device = VirtualDevice(platform_with_core(platform))
    base = device.platform.flash.start
    device.write(base, nop + struct.pack(f"<{len(values)}{form}", *values) + nop * 4)
    with pytest.raises(DeviceFault) as caught:
        device.execute(base, base + 2 + len(values) * struct.calcsize(form) + 6)
    assert (caught.value.kind, caught.value.pc) == ("illegal instruction", base + 2)
    assert device.instructions == 1
    device.close()


PRESENT = [
    ("cortex-m0plus", [0xF000, 0xF800]),  # bl to the next instruction
    ("cortex-m0plus", [0xF3BF, 0x8F4F]),  # dsb
    ("cortex-m0plus", [0xF3EF, 0x8010]),  # mrs r0, primask
    ("cortex-m0plus", [0xBF00]),
    ("cortex-m3", [0xFA0F, 0xF081]),  # sxth.w
    ("cortex-m3", [0xFA5F, 0xF081]),  # uxtb.w
    ("cortex-m3", [0xFA91, 0xF081]),  # rev.w
    ("cortex-m3", [0xFAB1, 0xF081]),  # clz
    ("cortex-m3", [0xFB01, 0xF002]),  # mul
    ("cortex-m3", [0xFB01, 0x3002]),  # mla
    ("cortex-m3", [0xFB01, 0x3012]),  # mls
    ("cortex-m3", [0xFB81, 0x0302]),  # smull
    ("cortex-m3", [0xFBC1, 0x0302]),  # smlal
    ("cortex-m3", [0xFBE1, 0x0302]),  # umlal
    ("cortex-m3", [0xF300, 0x0007]),  # ssat
    ("cortex-m3", [0xF3C1, 0x0000]),  # ubfx
    ("cortex-m4", [0xFB21, 0x3002]),  # smlad
    ("cortex-m4", [0xEE30, 0x0A81]),  # vadd.f32
    ("cortex-m4", [0xEC41, 0x0B10]),  # vmov d0, r0, r1
    ("riscv32", [0x8D2D]),  # c.xor
    ("riscv32", [0x8533, 0x02C5]),  # mul
    ("riscv32f", [0xF553, 0x00C5]),  # fadd.s
    ("hifive1", [0x252F, 0x00B6]),  # amoadd.w
]


@pytest.mark.parametrize(("platform", "halves"), PRESENT)
def test_instructions_the_core_has(program, platform, halves):
    device = VirtualDevice(platform_with_core(platform))
    base, end = device.platform.flash.start, device.platform.flash.start + 2 * len(halves)
    device.write(base, struct.pack(f"<{len(halves)}H", *halves))
    if device.platform.core.architecture == "riscv":
        device.core.write_register("a2", device.platform.ram.start)
    assert device.execute(base, end).instructions == 1
    device.close()


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_unaligned_word_on_a_small_core(program, offset):
    loaded = program("cortex-m0plus", ARM.format("ldr r0, [r1]"))
    loaded.device.core.write_register("r1", 0x20000000 + offset)
    fault = fault_of(loaded)
    assert (fault.kind, fault.pc) == ("misaligned access", loaded.labels["bad"])
    loaded.device.core.write_register("r1", 0x20000000)
    loaded.run()


class Strict(Peripheral):
    registers = RegisterMap(
        Register("ID", 0x0, access="ro", reset=0xC0DE),
        Register("KEY", 0x4, access="wo"),
        Register(
            "CTRL", 0x8, fields=[Field("GO", 0, on_write="go"), Field("DONE", 1, access="w1c")]
        ),
        Register("BREAK", 0xC, on_write="crash"),
    )

    def go(self, value):
        self.set("CTRL", "DONE", 1)

    def crash(self, value):
        raise ZeroDivisionError("model")


@pytest.mark.parametrize(
    ("instruction", "offset", "text"),
    [
        ("sw a0, 0(a1)", 0x0, "write to ID, which is read-only"),
        ("lw a0, 0(a1)", 0x4, "read of KEY, which is write-only"),
        ("sw a0, 0(a1)", 0x8, "reserved bits 0xc"),
        ("sb a0, 0(a1)", 0x8, "only whole words"),
        ("lb a0, 0(a1)", 0x9, "only whole words"),
        ("lw a0, 0(a1)", 0x40, "no register"),
    ],
)
def test_register_rules(program, instruction, offset, text):
    loaded = program("riscv32", RISCV.format(instruction))
    loaded.device.attach(Strict(), 0x50000000, "strict")
    loaded.device.core.write_register("a0", 0xC)
    loaded.device.core.write_register("a1", 0x50000000 + offset)
    fault = fault_of(loaded)
    assert fault.kind == "register access"
    assert fault.pc == loaded.labels["bad"]
    assert fault.address == 0x50000000 + offset
    assert text in fault.detail and fault.detail.startswith("strict: ")


def test_write_one_to_clear(program):
    loaded = program("riscv32", RISCV.format("sw a0, 0(a1)"))
    model = Strict()
    loaded.device.attach(model, 0x50000000, "strict")
    loaded.device.core.write_register("a1", 0x50000008)
    for value, register in ((1, 3), (0, 2), (2, 0)):
        loaded.device.core.write_register("a0", value)
        loaded.run()
        assert model.values["CTRL"] == register


def test_a_broken_model_is_named(program):
    loaded = program("riscv32", RISCV.format("sw a0, 0(a1)"))
    loaded.device.attach(Strict(), 0x50000000, "strict")
    loaded.device.core.write_register("a1", 0x5000000C)
    with pytest.raises(AcceleratorError, match=r"strict.*ZeroDivisionError.*0x5000000c"):
        loaded.run()


def test_a_device_goes_on_after_a_fault(program):
    loaded = program("riscv32", RISCV.format("lw a0, 0(a1)"))
    fault_of(loaded)
    loaded.device.core.write_register("a1", 0x80000000)
    assert loaded.run().instructions == 3


def test_debugger_access():
    with VirtualDevice(load_platform("nucleo-l4r5zi")) as device:
        device.write(0x08000000, b"abc")
        assert device.read(0x08000000, 4) == b"abc\xff"  # erased
        with pytest.raises(DeviceError, match="outside the memory map"):
            device.read(0x0800_0000 + (2 << 20) - 2, 4)
        with pytest.raises(DeviceError, match="outside the memory map"):
            device.write(0x1000, b"x")
        with pytest.raises(DeviceError, match="no register 'r99'"):
            device.core.read_register("r99")
    with pytest.raises(DeviceError, match="closed"):
        device.execute(0, 2)


def test_bus_masters_are_named():
    with VirtualDevice(load_platform("cortex-m4")) as device:
        bus = device.board.bus.for_master("dma")
        bus.write(0x20000000, b"\1\2\3")
        assert device.read(0x20000000, 3) == b"\1\2\3" == bus.read(0x20000000, 3)
        view = bus.view(0x20000000, 3)
        view[0] = 9
        assert device.read(0x20000000, 1) == b"\x09"
        with pytest.raises(DeviceFault, match=r"unmapped read at address 0x00001000.*master dma"):
            bus.read(0x1000, 4)
        with pytest.raises(DeviceFault, match=r"read-only memory.*master dma: flash"):
            bus.write(0x08000000, b"x")
        with pytest.raises(ValueError, match="read-only"):
            bus.view(0x08000000, 4)[0] = 1
        assert bus.is_memory(0x08000000, 4) and not bus.is_memory(0x08000000, 4, writable=True)


def test_addresses_cannot_be_taken_twice():
    with VirtualDevice(load_platform("cortex-m4")) as device:
        device.attach(Strict(), 0x50000000, "one")
        with pytest.raises(PlatformError, match="two at 0x50000800 overlaps one"):
            device.attach(Strict(), 0x50000800, "two")
        with pytest.raises(PlatformError, match="used twice"):
            device.attach(Strict(), 0x60000000, "one")
        with pytest.raises(PlatformError, match="overlaps memory ram"):
            device.attach(Strict(), 0x20000000, "three")
        device.board.detach("one")
        device.attach(Strict(), 0x50000800, "two")


def test_uart(program):
    text = "start:\n lui a1, 0x10000\n li a0, 72\n sw a0, 0(a1)\n lw a2, 8(a1)\n"
    text += " lw a3, 4(a1)\nend:\n j end"
    loaded = program("riscv32", text)
    _, uart = loaded.device.peripherals["uart0"]
    uart.feed(b"x")
    loaded.run()
    assert uart.text == "H"
    assert loaded.device.core.read_register("a2") == 3
    assert loaded.device.core.read_register("a3") == ord("x")
    loaded.device.reset()
    assert uart.text == ""


@pytest.mark.parametrize(
    ("platform", "jump", "undefined"),
    [("riscv32", "j", "unimp"), ("riscv32", "j", ".half 0"), ("cortex-m4", "b", "udf #0")],
)
def test_runs_go_on_after_a_fault_at_the_start_of_a_block(program, platform, jump, undefined):
    """The emulator reports a block of no bytes there: nothing to count, nothing to lead from."""
    loaded = program(platform, f"start: {jump} bad\nbad: {undefined}\nend: nop\n")
    counts = []
    for _ in range(3):
        before = loaded.device.instructions
        assert fault_of(loaded).kind == "illegal instruction"
        counts.append(loaded.device.instructions - before)
    assert counts == [1, 1, 1]
