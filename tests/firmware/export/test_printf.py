"""printf of firmware prints what the host's C library prints."""

from __future__ import annotations

import ctypes
import math
import random

import pytest

from covp.chip.platform_file import load_platform

from .board_programs import link_program, output

Case = tuple[str, str, object]
"""A conversion, the argument as C, the argument for the host."""


def from_host(conversion: str, argument: object) -> str:
    buffer = ctypes.create_string_buffer(400)
    arguments = () if argument is None else (argument,)
    ctypes.CDLL(None).snprintf(buffer, len(buffer), f"<{conversion}>".encode(), *arguments)
    return buffer.value.decode()


def flags(draw: random.Random) -> str:
    width = str(draw.randrange(1, 25)) if draw.random() < 0.6 else ""
    return draw.choice(["", "-", "0", "-0"]) + width


def integer(draw: random.Random) -> Case:
    kind = draw.choice("diuxX")
    longs, bits = draw.choice([("", 32), ("l", 32), ("ll", 64), ("z", 32)])
    if longs == "z" and kind in "di":
        longs = ""
    value = draw.choice([0, 1, (1 << bits) - 1, 1 << bits - 1, draw.getrandbits(bits),
                         draw.getrandbits(bits) >> draw.randrange(bits)])  # fmt: skip
    signed = kind in "di"
    if signed and value >> bits - 1:
        value -= 1 << bits
    c_type = {"": "int", "l": "long", "ll": "long long", "z": "long"}[longs]
    text = f"({'' if signed else 'unsigned '}{c_type}){value & (1 << bits) - 1:#x}ull"
    host = ctypes.c_longlong(value) if bits == 64 or longs else ctypes.c_int(value)
    return f"%{flags(draw)}{longs}{kind}", text, host


def number(draw: random.Random) -> Case:
    precision = draw.choice(["", ".0", ".1", ".3", f".{draw.randrange(16)}"])
    value = draw.choice([
        0.0, -0.0, 0.5, 1.5, 2.5, 0.125, 0.375, 9.5, 99.95, 0.999999999, 2.0**63, 2.0**53 + 1,
        draw.uniform(-1, 1), draw.uniform(-1e6, 1e6), draw.uniform(-1e19, 1e19),
        math.ldexp(draw.uniform(-1, 1), draw.randrange(-80, 63)), 5e-324, 1e-300,
        float(draw.randrange(1 << 20)) / (1 << draw.randrange(20)),
    ])  # fmt: skip
    return f"%{flags(draw)}{precision}f", float.hex(value), ctypes.c_double(value)


def text(draw: random.Random) -> Case:
    if draw.random() < 0.3:
        value = draw.choice("aZ0%")
        return f"%{flags(draw).replace('0', '')}c", f"'{value}'", ctypes.c_int(ord(value))
    word = "".join(draw.choice("abc XYZ") for _ in range(draw.randrange(9)))
    return f"%{flags(draw).replace('0', '')}s", f'"{word}"', ctypes.c_char_p(word.encode())


@pytest.mark.costly
@pytest.mark.parametrize(
    ("platform", "toolchain"), [("riscv32", "zig"), ("cortex-m33", "zig"), ("cortex-m0plus", "gcc")]
)
def test_random_conversions(platform: str, toolchain: str) -> None:
    draw = random.Random(random.getrandbits(32))
    cases = [draw.choice([integer, number, text])(draw) for _ in range(250)]
    cases += [
        ("%p", "(void *)0x1234abcd", ctypes.c_void_p(0x1234ABCD)),
        ("%%", "", None),
        ("%5.1f", "1e300 * 1e300", ctypes.c_double(math.inf)),
        ("%09f", "-(1e300 * 1e300)", ctypes.c_double(-math.inf)),
    ]
    body = []
    for case in cases:
        arguments = f", {case[1]}" if case[1] else ""
        body.append(f'    total += printf("<{case[0]}>\\n"{arguments});')
    head = ["#include <stdio.h>", '#include "board.h"', "int main(void)", "{", "    int total = 0;"]
    main = "\n".join([*head, "    board_init();", *body, "    return total;", "}"])
    board = load_platform(platform)
    flags = ("-Wno-format", "-Wno-overflow", "-Wno-format-zero-length", "-Wno-double-promotion")
    sent, run = output(board, link_program(board, f"{main}\n", toolchain, flags))
    lines = sent.splitlines()
    assert len(lines) == len(cases)
    for line, (conversion, argument, host) in zip(lines, cases, strict=True):
        assert line == from_host(conversion, host), (conversion, argument)
    assert run.status == len(sent)


def test_what_is_too_large_for_f_says_so() -> None:
    board = load_platform("riscv32")
    main = '#include <stdio.h>\nint main(void) { return printf("%8.1f|", 1e20); }\n'
    assert output(board, link_program(board, main))[0] == "     ***|"
