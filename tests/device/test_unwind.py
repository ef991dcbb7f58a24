"""Call stacks of faults: against the calls that the source makes."""

import re
import shutil
from collections.abc import Callable
from platform import machine

import numpy as np
import pytest

from covp.chip.platform_file import load_platform
from covp.compilers.symbols import Symbols
from covp.compilers.unwind import MAX_FRAMES, call_stack
from covp.errors import DeviceError, DeviceFault
from covp.runtime.session import Session
from tests.conftest import Loaded

CORES = ("cortex-m4", "cortex-m0plus", "riscv32")
TOOLCHAINS = ("zig", "gcc")

# The array keeps a frame pointer in use; each call is followed by something, so none is a jump.
SOURCE = """\
#include <stdint.h>
#define NOINLINE __attribute__((noinline))
static inline __attribute__((always_inline)) int32_t element(const int32_t *p, int32_t i) {
    return p[i];
}
NOINLINE int32_t inner(const int32_t *p, int32_t n) {
    volatile int32_t some[n];
    for (int32_t i = 0; i < n; ++i) some[i] = i;
    return element(p, some[1]) + some[0];
}
NOINLINE int32_t middle(const int32_t *p, int32_t n) {
    volatile int32_t kept[20] = {n};
    return inner(p, kept[0]) + kept[0];
}
int32_t outer(const int32_t *p) {
    return 3 * middle(p, 5);
}
NOINLINE int32_t deep(const int32_t *p, int32_t n) {
    volatile int32_t kept[4] = {n};
    return kept[0] ? 1 + 2 * deep(p, kept[0] - 1) : p[kept[1]] + 1;
}
NOINLINE int32_t early(const int32_t *p, int32_t n) {
    if (n == 1) return *p;
    return inner(p, n) + 1;
}
int32_t leaves(const int32_t *p, int32_t n) {
    return early(p, n) + n;
}
int32_t jump(int32_t (*f)(int32_t)) {
    return 3 * f(1);
}
NOINLINE void smash(uint32_t n) {
    uint32_t here[2];
    volatile uint32_t *volatile at = here;
    for (uint32_t i = 0; i < n; ++i) *at++ = 0x11223300;
}
int32_t smashed(void) {
    smash(16);
    return 1;
}
"""
NOWHERE = 0xC0000000


def with_toolchain(platform: str, toolchain: str) -> Session:
    prefix = load_platform(platform).core.gcc_prefix
    if toolchain == "gcc" and shutil.which(f"{prefix}gcc") is None:
        pytest.skip(f"no gcc for {platform}")
    return Session(platform, toolchain=toolchain)


def fault_of(session: Session, function: str, *arguments: object) -> DeviceFault:
    with pytest.raises(DeviceFault) as caught:
        session.load_c(SOURCE)[function](*arguments).result()
    return caught.value


def lines(*texts: str) -> list[int]:
    """The number of the first line that holds each text."""
    found = SOURCE.splitlines()
    return [next(n for n, line in enumerate(found, 1) if text in line) for text in texts]


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("platform", CORES)
def test_calls_with_their_lines(platform: str, toolchain: str) -> None:
    with with_toolchain(platform, toolchain) as session:
        fault = fault_of(session, "outer", NOWHERE)
        load, inline, inner, middle = lines("p[i]", "element(p", "inner(p, kept", "3 * middle")
        callers = (f"middle (module.c:{inner})", f"outer (module.c:{middle})")
        assert fault.call_stack[-2:] == callers
        inlined = (f"element (module.c:{load})", f"inner (module.c:{inline})")
        # GCC schedules the load of the inlined function among its caller's instructions
        assert fault.call_stack[:-2] in ((inlined,) if toolchain == "zig" else
                                         (inlined, (f"inner (module.c:{inline})",)))  # fmt: skip
        assert str(fault).endswith(", ".join(callers))
        assert "\n" not in str(fault)


@pytest.mark.parametrize(
    "platform, device, tool",
    [
        ("mps2-an386", "gdb:qemu", "qemu-system-arm"),
        ("qemu-riscv32", "gdb:qemu", "qemu-system-riscv32"),
        ("host", "host", "true"),
    ],
)
def test_devices_that_are_not_emulated_here(platform: str, device: str, tool: str) -> None:
    """The runtime's handler leaves some registers for the host, the core has the others."""
    if shutil.which(tool) is None or (platform == "host" and machine() != "x86_64"):
        pytest.skip(f"{device} is not available here")
    with Session(platform, device=device) as session:
        fault = fault_of(session, "outer", NOWHERE)
    names = [frame.partition(" ")[0] for frame in fault.call_stack]
    assert names == ["element", "inner", "middle", "outer"]


@pytest.mark.parametrize("platform", CORES)
def test_a_deep_recursion_is_cut(platform: str) -> None:
    with Session(platform) as session:
        line = lines("deep(p, kept")[0]
        fault = fault_of(session, "deep", NOWHERE, 9)
        assert len(fault.call_stack) == 10
        assert fault.call_stack[1:] == (f"deep (module.c:{line})",) * 9
        assert str(fault).endswith(f"; called by {', '.join(fault.call_stack[1:5])}, ...")
        endless = fault_of(session, "deep", NOWHERE, 10**6)
        assert endless.kind == "stack overflow"
        assert endless.call_stack[1:] == (f"deep (module.c:{line})",) * (MAX_FRAMES - 1)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("platform", CORES)
def test_code_beside_the_frame(platform: str, toolchain: str) -> None:
    """A path of a function that makes no frame, behind one that has ended its own."""
    with with_toolchain(platform, toolchain) as session:
        fault = fault_of(session, "leaves", NOWHERE, 1)
        early, leaves = lines("return *p", "early(p, n) +")
        assert fault.call_stack == (f"early (module.c:{early})", f"leaves (module.c:{leaves})")


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("platform", CORES)
def test_a_wild_jump_has_the_caller(platform: str, toolchain: str) -> None:
    with with_toolchain(platform, toolchain) as session:
        fault = fault_of(session, "jump", NOWHERE + 1)
        assert fault.call_stack == (f"jump (module.c:{lines('3 * f(1)')[0]})",)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("platform", CORES)
def test_a_stack_written_over_ends_it(platform: str, toolchain: str) -> None:
    """The return addresses are overwritten: the pc is lost, and no caller is made up."""
    with with_toolchain(platform, toolchain) as session:
        fault = fault_of(session, "smashed")
        assert all(frame.startswith(("smash ", "smashed ")) for frame in fault.call_stack)


ASSEMBLY = {
    "arm": "bl middle\nend: b end\nmiddle: push {r4, lr}\nbl leaf\npop {r4, pc}\n"
    "leaf: ldr r0, =0xc0000000\nhere: ldr r1, [r0]\nbx lr\n",
    "riscv": "call middle\nend: j end\nmiddle: addi sp, sp, -16\nsw ra, 0(sp)\ncall leaf\n"
    "lw ra, 0(sp)\naddi sp, sp, 16\nret\nleaf: lui a0, 0xc0000\nhere: lw a1, 0(a0)\nret\n",
}


@pytest.mark.parametrize("platform", CORES)
def test_assembly_without_frame_rules(platform: str, program: Callable[..., Loaded]) -> None:
    """The caller of a leaf is in the link register; that one's own caller is not known."""
    architecture = load_platform(platform).core.architecture
    marked = re.sub(r"(\w+):", r".type \1, %function\n\1:", ASSEMBLY[architecture])
    loaded = program(platform, f".global end\nstart: {marked}")
    loaded.device.board.names.symbols.add(str(loaded.elf))
    loaded.device.core.write_register("sp", load_platform(platform).ram.start + 0x1000)
    with pytest.raises(DeviceFault) as caught:
        loaded.run()
    names = [frame.partition(" ")[0] for frame in caught.value.call_stack]
    assert names == ["here", "middle"]


def test_a_handler_goes_on_with_what_it_interrupted() -> None:
    source = """\
#include <stdint.h>
void (*volatile vectors[16])(void) __attribute__((aligned(128)));
__attribute__((noinline)) void handler(void) {
    *(volatile uint32_t *)0xc0000000 = 1;
}
__attribute__((noinline)) int32_t work(int32_t n) {
    *(volatile uint32_t *)0xe000ed04 = 1u << 28; /* ICSR: PENDSVSET */
    __asm__ volatile("dsb\\n isb");
    return n + 1;
}
int32_t start(int32_t n) {
    vectors[14] = handler;
    *(volatile uint32_t *)0xe000ed08 = (uint32_t)vectors; /* VTOR */
    return 2 * work(n);
}
"""
    with Session("cortex-m4") as session, pytest.raises(DeviceFault) as caught:
        session.load_c(source)["start"](1).result()
    names = [frame.partition(" ")[0] for frame in caught.value.call_stack]
    assert names == ["handler", "work", "start"]


def test_random_registers_and_memory_end_it() -> None:
    """Garbage gives no error, no endless walk and no frame whose caller does not call it."""
    rng = np.random.default_rng(3)
    with Session("riscv32") as session:
        module = session.load_c(SOURCE)
        symbols, ram = Symbols(), session.platform.ram
        symbols.add(module.image.elf.content)
        for name in ("inner", "middle", "deep", "smash"):
            for offset in range(0, 40, 2):
                noise = rng.bytes(64)

                def read(address: int, size: int, noise: bytes = noise) -> bytes:
                    if address < 1 << 20:
                        raise DeviceError("outside")
                    place = address % 60
                    return noise[place : place + size].ljust(size, b"\0")

                registers = {"sp": ram.start + 64, "ra": int(rng.integers(1 << 32)), "s0": 4}
                pc = module.address(name) + offset
                assert len(call_stack(symbols, "riscv", pc, registers, read)) <= MAX_FRAMES
