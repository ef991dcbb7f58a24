"""``Session(ubsan=True)``: planted undefined behaviour of each kind is found, its twins are not.

What is undefined is C's own rule (C11 6.5.5 to 6.5.7, 6.3.1.4, 6.3.2.3, 6.7.6.2); the result of a
twin is computed here.
"""

import math
import shutil
from platform import machine
from typing import NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from covp.chip.platform_file import load_platform
from covp.errors import CapacityError, DeviceFault
from covp.runtime.module import Module
from covp.runtime.session import Session

CORES = [(p, t) for p in ("cortex-m4", "cortex-m0plus", "riscv32") for t in ("zig", "gcc")]
MAX, MIN = 2**31 - 1, -(2**31)


class Case(NamedTuple):
    """A function, arguments with undefined behaviour and its detail; others with their result.

    An argument "p" is the address of 16 bytes, "p+1" the one behind.
    """

    code: str
    bad: tuple[object, ...]
    detail: str
    good: tuple[object, ...]
    result: int


CASES = {
    "add": Case("int32_t add(int32_t a, int32_t b) { return a + b; }",
                (MAX, 1), f"signed integer overflow: {MAX} + 1 does not fit", (MAX, -1), MAX - 1),
    "sub": Case("int32_t sub(int32_t a, int32_t b) { return a - b; }",
                (MIN, 1), f"signed integer overflow: {MIN} - 1 does not fit", (-1, MAX), MIN),
    "mul": Case("int32_t mul(int32_t a, int32_t b) { return a * b; }",
                (65536, 32768), "signed integer overflow: 65536 * 32768 does not fit",
                (-65536, 32768), MIN),
    "neg": Case("int32_t neg(int32_t a) { return -a; }",
                (MIN,), f"signed integer overflow: -({MIN}) does not fit", (MAX,), -MAX),
    "wide": Case("int64_t wide(int64_t a, int64_t b) { return a + b; }",
                 (2**63 - 1, 5), f"signed integer overflow: {2**63 - 1} + 5 does not fit",
                 (2**63 - 1, -5), 2**63 - 6),
    "promoted": Case("uint32_t promoted(uint16_t a, uint16_t b) { return (uint32_t)(a * b); }",
                     (65535, 65535), "signed integer overflow: 65535 * 65535 does not fit int",
                     (32767, 65535), 32767 * 65535),
    "shift32": Case("int32_t shift32(uint32_t a, int32_t n) { return (int32_t)(a >> n); }",
                    (8, 32), "shift by 32:", (8, 31), 0),
    "negative_count": Case("int32_t negative_count(int32_t a, int32_t n) { return a >> n; }",
                           (8, -1), "shift by -1: the count is negative", (8, 0), 8),
    "negative_value": Case("int32_t negative_value(int32_t a, int32_t n) { return a << n; }",
                           (-1, 3), "left shift of -1 by 3: the value is negative", (1, 3), 8),
    "lost_bits": Case("int32_t lost_bits(int32_t a, int32_t n) { return a << n; }",
                      (3, 30), "left shift of 3 by 30: the result does not fit", (3, 29), 3 << 29),
    "right_shift": Case("int32_t right_shift(int32_t a, int32_t n) { return a >> n; }",
                        (8, 99), "shift by 99:", (-8, 2), -2),
    "load": Case("int32_t load(const int32_t *p) { return *p; }",
                 ("p+1",), "at a misaligned address: it needs a multiple of 4",
                 ("p",), 0x04030201),
    "store": Case("int32_t store(int16_t *p) { *p = 3; return 1; }",
                  ("p+1",), "at a misaligned address: it needs a multiple of 2",
                  ("p",), 1),
    "null": Case("int32_t null(const int8_t *p) { return *p; }",
                 (0,), "load of ", ("p",), 1),
    "index": Case("static const int8_t table[5] = {1, 2, 3, 4, 5};\n"
                  "int32_t index(int32_t i) { return table[i]; }",
                  (5,), "index 5 is outside", (4,), 5),
    "below": Case("int32_t below(int32_t i) { volatile int8_t t[4] = {9}; return t[i]; }",
                  (-1,), "index -1 is outside", (0,), 9),
    "member": Case("struct s { int16_t v[3]; int16_t next; };\n"
                   "int32_t member(struct s *p, int32_t i) { return p->v[i]; }",
                   ("p", 3), "index 3 is outside", ("p", 1), 0x0403),
    "quotient": Case("int32_t quotient(int32_t a, int32_t b) { return a / b; }",
                     (7, 0), "division by zero: 7 / 0", (7, -2), -3),
    "remainder": Case("uint32_t remainder(uint32_t a, uint32_t b) { return a % b; }",
                      (7, 0), "division by zero: 7 / 0", (7, 4), 3),
    "too_large": Case("int32_t too_large(int32_t a, int32_t b) { return a / b; }",
                      (MIN, -1), f"signed integer overflow: {MIN} / -1 does not fit",
                      (MIN, 1), MIN),
    "to_int": Case("int32_t to_int(float x) { return (int32_t)x; }",
                   (2147483648.0,), ": 2.14748365e+09 does not fit",
                   (2147483520.0,), 2147483520),
    "to_byte": Case("int32_t to_byte(float x) { return (int8_t)x; }",
                    (128.0,), ": 128 does not fit", (-128.5,), -128),
    "nan": Case("uint32_t nan(float x) { return (uint32_t)x; }",
                (math.nan,), ": nan does not fit", (0.5,), 0),
    "bound": Case("int32_t bound(int32_t n) { volatile int8_t t[n]; t[0] = 4; return t[0]; }",
                  (0,), "array of 0 elements", (1,), 4),
    "unreachable": Case("int32_t unreachable(int32_t n) { volatile int32_t m = n;\n"
                        "    if (m) return m;\n    __builtin_unreachable(); }",
                        (0,), "code that cannot be reached", (1,), 1),
    "truth": Case("int32_t truth(const _Bool *p) { return *p; }",
                  ("p+1",), "load of 2, which is not a value of", ("p",), 1),
    "zeros": Case("int32_t zeros(uint32_t a) { return __builtin_clz(a); }",
                  (0,), "builtin function: clz of 0", (1,), 31),
    "pointer": Case("uint32_t pointer(const int8_t *p, int32_t n)"
                    " { return (uint32_t)(p + n) & 15; }",
                    (0xF0000000, 0x20000000), "pointer arithmetic overflows: 0xf0000000 became",
                    (0xF0000000, 0x0FFFFFFF), 15),
}  # fmt: skip
SOURCE = "\n".join(["#include <stdint.h>", *(case.code for case in CASES.values())]) + "\n"
BYTES = bytes([1, 2, *range(3, 17)])

CALLS = """\
#include <stdint.h>
static inline __attribute__((always_inline)) int32_t scaled(int32_t x) {
    return x * 1000;
}
__attribute__((noinline)) int32_t sum(const int8_t *p, int32_t n, int32_t *total) {
    for (int32_t i = 0; i < n; ++i) {
        *total += scaled(p[i]) * 100;
    }
    return *total;
}
int32_t layer(const int8_t *p, int32_t n) {
    int32_t total = 2147000000;
    return sum(p, n, &total) + 1;
}
"""


def with_toolchain(platform: str, toolchain: str, device: str = "virtual") -> Session:
    prefix = load_platform(platform).core.gcc_prefix
    if toolchain == "gcc" and shutil.which(f"{prefix}gcc") is None:
        pytest.skip(f"no gcc for {platform}")
    return Session(platform, device, toolchain, ubsan=True)


def call(module: Module, name: str, arguments: tuple[object, ...]) -> object:
    """The result of a case; "p" is the address of `BYTES`."""
    placed = module.session.place(BYTES)
    addresses = {"p": placed.address, "p+1": placed.address + 1}
    given = [addresses.get(a, a) if isinstance(a, str) else a for a in arguments]
    return module[name](*given).result()


def check(module: Module, name: str, module_text: str = "") -> None:
    """The case is found as what it is, where it is; before and after its twin runs well."""
    case, module_text = CASES[name], module_text or SOURCE
    assert call(module, name, case.good) == case.result, name
    with pytest.raises(DeviceFault) as caught:
        call(module, name, case.bad)
    fault = caught.value
    place = "__builtin_unreachable" if name == "unreachable" else f" {name}("
    line = next(n for n, text in enumerate(module_text.splitlines(), 1) if place in text)
    assert fault.kind == "undefined behaviour", name
    assert fault.source == f"module.c:{line}", name
    assert case.detail in fault.detail, name
    assert fault.symbol is not None and fault.symbol.startswith(f"{name}+")
    assert fault.call_stack == (f"{name} (module.c:{line})",), name
    assert (fault.address is not None) == (name in ("load", "store", "null")), name
    if name == "null":
        assert fault.detail.endswith("through a null pointer")
    assert call(module, name, case.good) == case.result, name


@pytest.mark.parametrize("platform, toolchain", CORES)
def test_found_and_its_twin_is_not(platform: str, toolchain: str) -> None:
    with with_toolchain(platform, toolchain) as session:
        module = session.load_c(SOURCE)
        for name in CASES:
            check(module, name)


@pytest.mark.parametrize("platform, toolchain", CORES)
def test_the_stack_holds_inlined_functions_and_callers(platform: str, toolchain: str) -> None:
    with with_toolchain(platform, toolchain) as session:
        module = session.load_c(CALLS)
        tensor = session.tensor(np.array([1, 2, 127], np.int8))
        with pytest.raises(DeviceFault) as caught:
            module["layer"](tensor, 3).result()
        assert module["layer"](tensor, 2).result() == 2_147_300_001
    fault = caught.value
    line = CALLS.splitlines().index("        *total += scaled(p[i]) * 100;") + 1
    assert fault.source == f"module.c:{line}"
    assert fault.detail.startswith("signed integer overflow: 2147300000 + 12700000")
    assert fault.call_stack == (f"sum (module.c:{line})", f"layer (module.c:{line + 6})")
    assert str(fault).endswith(f"; called by layer (module.c:{line + 6})")


KNOWN_SIZE = """\
#include <stdint.h>
static int16_t four[4] = {1, 2, 3, 4};
struct sized {
    int16_t count;
    int16_t last[3];
};
struct open {
    int16_t count;
    int16_t last[1];
};
int32_t through_a_pointer(int32_t i) {
    const int16_t *p = four;
    return p[i]; /* through_a_pointer */
}
int32_t of_a_structure(const struct sized *p, int32_t i) {
    return p->last[i]; /* of_a_structure */
}
int32_t of_any_length(const struct open *p, int32_t i) {
    return p->last[i];
}
"""


@pytest.mark.parametrize("platform, toolchain", CORES)
def test_objects_of_known_size(platform: str, toolchain: str) -> None:
    """Behind them is other memory, so that nothing else shows it."""
    with with_toolchain(platform, toolchain) as session:
        module = session.load_c(KNOWN_SIZE)
        placed = session.place(np.arange(8, dtype=np.int16).tobytes())
        good: dict[str, tuple[int, ...]] = {"through_a_pointer": (3,)}
        if toolchain == "zig":  # with GCC the array at the end may have any length
            good["of_a_structure"] = (placed.address, 2)
        for name, arguments in good.items():
            assert module[name](*arguments).result() == arguments[-1] + 1
            with pytest.raises(DeviceFault) as caught:
                module[name](*arguments[:-1], arguments[-1] + 1).result()
            texts = KNOWN_SIZE.splitlines()
            line = next(n for n, text in enumerate(texts, 1) if f"/* {name}" in text)
            assert caught.value.kind == "undefined behaviour"
            assert caught.value.source == f"module.c:{line}"
        assert module["of_any_length"](placed.address, 5).result() == 6


def test_without_it_no_check_is_compiled_in() -> None:
    with Session("cortex-m4") as plain, Session("cortex-m4", ubsan=True) as checked:
        code = "int add(int a, int b) {\n    return a + b;\n}\n"
        sizes = [s.load_c(code).image.blocks[".text"].size for s in (plain, checked)]
        assert sizes[0] < sizes[1]
        assert plain.load_c(code)["add"](MAX, 1).result() == MIN
        assert not any(name.startswith("__ubsan") for name in plain.exports)


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_options_of_a_module_come_later(toolchain: str) -> None:
    """Code that counts on the compiler's shifts of negative values says so."""
    with with_toolchain("cortex-m4", toolchain) as session:
        off = "-fno-sanitize=shift-base" if toolchain == "zig" else "-fno-sanitize=shift"
        module = session.load_c(SOURCE, flags=(off,))
        assert module["negative_value"](-1, 3).result() == -8


@pytest.mark.parametrize(
    "platform, device, tool",
    [
        ("mps2-an386", "gdb:qemu", "qemu-system-arm"),
        ("mps2-an500", "gdb:qemu", "qemu-system-arm"),
        ("qemu-riscv32", "gdb:qemu", "qemu-system-riscv32"),
        ("host", "host", "true"),
    ],
)
def test_other_devices(platform: str, device: str, tool: str) -> None:
    if shutil.which(tool) is None or (platform == "host" and machine() != "x86_64"):
        pytest.skip(f"{device} is not available here")
    with with_toolchain(platform, "zig", device) as session:
        module = session.load_c(SOURCE)
        for name in ("add", "wide", "load", "index", "to_byte", "quotient"):
            check(module, name)


@pytest.mark.costly
def test_a_program_that_grows_out_of_the_memory_says_so() -> None:
    """The checks take flash, and RAM for what they tell: the usual error where it is not there."""
    platform = load_platform("cortex-m0plus")
    memory = tuple(
        replace(region, size=8192) if region == platform.flash else region
        for region in platform.memory
    )
    small = replace(platform, memory=memory)
    many = "".join(f"int f{n}(int a, int b) {{ return a * b + a / b + {n}; }}\n" for n in range(80))
    with Session(small) as session:
        session.load_c(many)
    with Session(small, ubsan=True) as session:
        with pytest.raises(CapacityError) as caught:
            session.load_c(many)
        assert caught.value.kind == "flash" and caught.value.needed > caught.value.available
        text = f"#include <stdint.h>\n{CASES['add'].code}\n"
        check(session.load_c(text), "add", text)
