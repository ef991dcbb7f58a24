"""Undefined bits: those of a result are the ones that other values of the operands' can change.

The oracle is the emulator itself: each piece of code is run with every value of its undefined bits.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from covp.base.memory_states import Forbidden, ForbiddenAccess
from covp.chip.platform_file import load_platform
from covp.errors import DeviceFault

UNDEFINED_BITS = 6  # of a piece of code: 64 runs try all their values
INPUTS, OUTPUTS = 4, 5  # words: registers; registers and flags
WHOLE, SHIFTED = 0xFFFFFFFF, 31


@dataclass(frozen=True)
class Form:
    """Instructions with places {d}, {a}, {b}, {c} for different registers, {n} for a number.

    Attributes:
        text: of the assembly.
        is_exact: no bit of its results is called undefined that is not.
        numbers: range of {n}.
    """

    text: str
    is_exact: bool = True
    numbers: tuple[int, int] = (1, 31)


def forms(*texts: str, numbers: tuple[int, int] = (1, 31)) -> list[Form]:
    return [Form(text, True, numbers) for text in texts]


def about(*texts: str) -> list[Form]:
    """Those that may call more bits undefined than are."""
    return [Form(text, False) for text in texts]


THUMB = [
    *forms("adds {d}, {a}, {b}", "subs {d}, {a}, {b}", "mov {d}, {a}", "mvns {d}, {a}"),
    *forms("ands {d}, {a}", "orrs {d}, {a}", "eors {d}, {a}", "bics {d}, {a}", "rsbs {d}, {a}, #0"),
    *forms("lsls {d}, {a}", "lsrs {d}, {a}", "asrs {d}, {a}", "rors {d}, {a}"),
    *forms("lsls {d}, {a}, #{n}", "lsrs {d}, {a}, #{n}", "asrs {d}, {a}, #{n}"),
    *forms("uxtb {d}, {a}", "sxtb {d}, {a}", "uxth {d}, {a}", "sxth {d}, {a}"),
    *forms("rev {d}, {a}", "rev16 {d}, {a}", "revsh {d}, {a}"),
    *forms("adds {d}, #{n}", "subs {d}, #{n}", "cmp {d}, #{n}", "movs {d}, #{n}", numbers=(0, 255)),
    *about("muls {d}, {a}"),
    *forms("adcs {d}, {a}", "sbcs {d}, {a}", "cmp {d}, {a}", "cmn {d}, {a}", "tst {d}, {a}"),
]
MEMORY = [  # the outputs' words are free until they are written
    *forms(
        "str {a}, [r7]; strb {b}, [r7, #1]; ldrh {d}, [r7]", "strh {a}, [r7, #2]; ldr {d}, [r7]"
    ),
    *forms("str {a}, [r7]; movs {c}, #3; ldrsb {d}, [r7, {c}]", "push {{{a}}}; pop {{{d}}}"),
    *forms(
        "str {a}, [r7, #4]; movs {c}, #6; ldrsh {d}, [r7, {c}]", "push {{r0-r3}}; pop {{r0-r3}}"
    ),
]
LANES = [
    f"{sign}{what}{wide}" + " {d}, {a}, {b}"
    for sign in ("s", "u", "sh", "uh")
    for what, wide in (("add", 8), ("add", 16), ("sub", 8), ("sub", 16), ("asx", ""), ("sax", ""))
]
SATURATED = [
    f"{sign}{what}" + " {d}, {a}, {b}"
    for sign in ("q", "uq")
    for what in ("add8", "add16", "sub8", "sub16", "asx", "sax")
]
FLOATS = [
    *about("vmov s0, {a}; vmov s1, {b}; vadd.f32 s2, s0, s1; vmov {d}, s2"),
    *about("vmov s0, {a}; vmov s1, {b}; vmov s2, {c}; vfma.f32 s2, s0, s1; vmov {d}, s2"),
    *about("vmov s3, {a}; vcvt.f32.s32 s4, s3; vdiv.f32 s4, s4, s3; vmov {d}, s4"),
    *about("vmov s0, {a}; vcvt.s32.f32 s1, s0; vcvt.u32.f32 s2, s0; vmov {d}, {c}, s1, s2"),
    *about(
        "vmov s0, {a}; vmov s1, {b}; vcmp.f32 s0, s1; vmrs apsr_nzcv, fpscr; it hi; movhi {d}, {c}"
    ),
    *forms(
        "vmov s0, s1, {a}, {b}; vmov.f32 s2, s1; vmov {d}, s2",
        "vmov s5, {a}; vneg.f32 s5, s5; vmov {d}, s5",
    ),
    *forms("vmov s0, s1, {a}, {b}; vpush {{s0, s1}}; vpop {{s6, s7}}; vmov {d}, {c}, s6, s7"),
    *forms(
        "vmov s2, {a}; vabs.f32 s2, s2; vstr s2, [r7]; ldr {d}, [r7]",
        "vmov d1, {a}, {b}; vmov {d}, s3",
    ),
    *about(
        "vmov s0, {a}; vcvt.f32.s32 s0, s0, #5; vmov {d}, s0",
        "vmov s0, {a}; vmov s1, {b}; vcvtt.f16.f32 s1, s0; vmov {d}, s1",
        "vmov s0, {a}; vcvtb.f32.f16 s0, s0; vmov {d}, s0",
        "vmov.f32 s0, #1.0; vcmp.f32 s0, s0; cmp {a}, {b}; it eq; vcmpeq.f32 s0, #0.0; "
        "vmrs apsr_nzcv, fpscr; it eq; moveq {d}, {c}",
    ),
    # values that are known decide what stays undefined
    *(
        Form(f"movs {{a}}, #{{n}}; vmov s0, {{a}}; {body}; vmov {{a}}, s2; ands {{d}}, {{a}}")
        for body in (
            "vcvt.f32.u32 s0, s0; vmov.f32 s2, #1.5; vnmls.f32 s2, s0, s0",
            "vcvt.f32.u32 s0, s0; vmov.f32 s2, #1.5; vnmla.f32 s2, s0, s0",
            "vcvt.f32.u32 s0, s0; vmov.f32 s2, #1.5; vmls.f32 s2, s0, s0",
            "vcvt.f32.u32 s0, s0; vmov.f32 s2, #1.5; vfnms.f32 s2, s0, s0",
            "vcvt.f32.u32 s0, s0; vmul.f32 s0, s0, s0; vmul.f32 s0, s0, s0; vmul.f32 s0, s0, s0; "
            "vcvt.u32.f32 s2, s0",
        )
    ),
]
NEWER_FLOATS = [  # of Armv8-M's unit
    *about(
        "vmov s0, {a}; vmov s1, {b}; vmaxnm.f32 s2, s0, s1; vmov {d}, s2",
        "vmov s1, {a}; vrintx.f32 s2, s1; vmov {d}, s2",
        "vmov s0, {a}; vcvta.s32.f32 s3, s0; vmov {d}, s3",
        "vmov s0, {a}; vmov s1, {b}; cmp {b}, {c}; vselge.f32 s0, s0, s1; vmov {d}, s0",
    ),
    *(
        Form(
            "movs {a}, #{n}; vmov s0, {a}; vcvt.f32.u32 s0, s0; vmov.f32 s1, #7.5; "
            f"vdiv.f32 s0, s0, s1; {body} s2, {operands}; vmov {{a}}, s2; ands {{d}}, {{a}}"
        )
        for body, operands in (
            *(("vmaxnm.f32", "s0, s1"), ("vminnm.f32", "s0, s1"), ("vrinta.f32", "s0")),
            *(("vrintm.f32", "s0"), ("vrintz.f32", "s0"), ("vcvtp.u32.f32", "s0")),
            *(("vcvtn.s32.f32", "s0"), ("cmp r6, r7; vselgt.f32", "s0, s1")),
        )
    ),
]
THUMB2 = [
    *THUMB,
    *MEMORY,
    *FLOATS,
    *forms("strd {a}, {b}, [r7]; ldrd {c}, {d}, [r7]"),
    *forms("strd {b}, {a}, [r7, #8]!; ldr {d}, [r7, #4]; subs r7, #8"),
    *forms("stm r7!, {{r0, r2}}; ldmdb r7!, {{r1, r3}}"),
    *forms("str {a}, [r7], #4; ldrb {d}, [r7, #-1]!; subs r7, #3"),
    *forms("add.w {d}, {a}, {b}, lsl #{n}", "sub.w {d}, {a}, {b}, lsr #{n}"),
    *forms("and.w {d}, {a}, #0xff00ff", "orr.w {d}, {a}, #0xf0", "eor.w {d}, {a}, {b}, ror #{n}"),
    *forms("orn {d}, {a}, {b}", "bic.w {d}, {a}, {b}, lsr #{n}", "ror.w {d}, {a}, #{n}"),
    *forms("rsb.w {d}, {a}, {b}", "rrx {d}, {a}", "mvn.w {d}, {a}", "movt {d}, #0x1234"),
    *forms("bfi {d}, {a}, #5, #9", "bfc {d}, #3, #20", "ubfx {d}, {a}, #7, #12"),
    *forms("sbfx {d}, {a}, #11, #8", "pkhbt {d}, {a}, {b}, lsl #{n}", "pkhtb {d}, {a}, {b}"),
    *forms("pkhtb {d}, {a}, {b}, asr #{n}", "rbit {d}, {a}", "uxtb16 {d}, {a}", "sxtb16 {d}, {a}"),
    *forms("uxtab {d}, {a}, {b}, ror #16", "uxtab16 {d}, {a}, {b}"),
    *about("sxtab16 {d}, {a}, {b}, ror #8", "sxtah {d}, {a}, {b}"),
    *forms(*LANES),
    *about(*SATURATED, "qadd {d}, {a}, {b}", "qdsub {d}, {a}, {b}", "clz {d}, {a}"),
    *about("ssat {d}, #9, {a}", "usat {d}, #7, {a}, asr #3", "ssat16 {d}, #5, {a}"),
    *about("mul {d}, {a}, {b}", "mla {d}, {a}, {b}, {c}", "mls {d}, {a}, {b}, {c}"),
    *about("smlad {d}, {a}, {b}, {c}", "smlsdx {d}, {a}, {b}, {c}", "smuad {d}, {a}, {b}"),
    *about("smlabb {d}, {a}, {b}, {c}", "smultb {d}, {a}, {b}", "smlawt {d}, {a}, {b}, {c}"),
    *about("smmulr {d}, {a}, {b}", "smmla {d}, {a}, {b}, {c}", "usada8 {d}, {a}, {b}, {c}"),
    *about("smmls {d}, {a}, {b}, {c}", "smulwb {d}, {a}, {b}", "usad8 {d}, {a}, {b}"),
    *about("umull {d}, {c}, {a}, {b}", "smlal {d}, {c}, {a}, {b}", "umaal {d}, {c}, {a}, {b}"),
    *about("smlald {d}, {c}, {a}, {b}", "smlaltb {d}, {c}, {a}, {b}", "smlsldx {d}, {c}, {a}, {b}"),
    *about("udiv {d}, {a}, {b}", "sdiv {d}, {a}, {b}"),
    *about("uadd8 {d}, {a}, {b}; sel {d}, {a}, {b}"),
    *(
        Form(f"cmp {{a}}, {{b}}; it {condition}; mov{condition} {{d}}, {{c}}")
        for condition in ("eq", "ne", "hs", "lo", "hi", "ls", "ge", "lt", "gt", "le")
    ),
    *about("cmp {a}, {b}; ite mi; addmi {d}, {c}; subpl {d}, {c}"),
]  # fmt: skip
RISCV = [
    *forms("add {d}, {a}, {b}", "sub {d}, {a}, {b}", "and {d}, {a}, {b}", "or {d}, {a}, {b}"),
    *forms("xor {d}, {a}, {b}", "sll {d}, {a}, {b}", "srl {d}, {a}, {b}", "sra {d}, {a}, {b}"),
    *forms("slt {d}, {a}, {b}", "sltu {d}, {a}, {b}", "slti {d}, {a}, {n}", "sltiu {d}, {a}, {n}"),
    *forms("addi {d}, {a}, {n}", "andi {d}, {a}, {n}", "ori {d}, {a}, {n}", "xori {d}, {a}, -1"),
    *forms("slli {d}, {a}, {n}", "srli {d}, {a}, {n}", "srai {d}, {a}, {n}", "mv {d}, {a}"),
    *forms("sw {a}, 0(s1); sb {b}, 1(s1); lh {d}, 0(s1)", "sw {a}, 4(s1); lbu {d}, 7(s1)"),
    *forms("sh {a}, 2(s1); lw {d}, 0(s1)", "addi sp, s1, 0; sw {a}, 8(sp); lw {d}, 8(sp)"),
    *forms("neg {d}, {a}", "seqz {d}, {a}", "snez {d}, {a}", "li {d}, {n}", "lui {d}, {n}"),
    *about("mul {d}, {a}, {b}", "mulh {d}, {a}, {b}", "mulhu {d}, {a}, {b}"),
    *about("mulhsu {d}, {a}, {b}", "div {d}, {a}, {b}", "remu {d}, {a}, {b}"),
]
RISCV_FLOATS = [
    *RISCV,
    *about("fmv.w.x f0, {a}; fmv.w.x f1, {b}; fadd.s f2, f0, f1; fmv.x.w {d}, f2"),
    *about("fmv.w.x f0, {a}; fmv.w.x f1, {b}; fmadd.s f2, f0, f1, f0; fmv.x.w {d}, f2"),
    *about(
        "fcvt.s.w f3, {a}; fcvt.w.s {d}, f3, rtz",
        "fmv.w.x f0, {a}; fmv.w.x f1, {b}; flt.s {d}, f0, f1",
    ),
    *forms("fmv.w.x f4, {a}; fmv.w.x f5, {b}; fsgnj.s f4, f4, f5; fmv.x.w {d}, f4"),
    *forms("fmv.w.x f6, {a}; fsw f6, 0(s1); flw f7, 0(s1); fmv.x.w {d}, f7"),
    *forms(
        "li {a}, {n}; slli {a}, {a}, 25; fmv.w.x f0, {a}; fcvt.wu.s {a}, f0, rtz; "
        "and {d}, {d}, {a}",
        "li {a}, -{n}; slli {a}, {a}, 24; fmv.w.x f0, {a}; fcvt.w.s {a}, f0, rtz; "
        "and {d}, {d}, {a}",
        numbers=(31, 63),
    ),
]
CORES = {
    "stm32l4r5": THUMB2,
    "cortex-m7": [*NEWER_FLOATS, *FLOATS],
    "cortex-m0plus": [*THUMB, *MEMORY],
    "riscv32": RISCV,
    "riscv32f": RISCV_FLOATS,
}


def text_of(form: Form, registers: Sequence[str], chance: random.Random) -> str:
    d, a, b, c = chance.sample(registers, 4)
    return form.text.format(d=d, a=a, b=b, c=c, n=chance.randint(*form.numbers))


def arm_piece(body: str, has_flags: bool) -> str:
    """Each register is (undefined & mask) | known; flags are as after a comparison."""
    loads = "".join(
        f"ldr r{n}, [r6, #{12 * n}]; ldr r5, [r6, #{12 * n + 4}]; ands r{n}, r5; "
        f"ldr r5, [r6, #{12 * n + 8}]; orrs r{n}, r5; "
        for n in range(INPUTS)
    )
    stores = "".join(f"str r{n}, [r7, #{4 * n}]; " for n in range(INPUTS))
    flags = "mrs r5, apsr; lsrs r5, r5, #28; str r5, [r7, #16]; " if has_flags else ""
    return f"{loads} cmp r6, r7; {body}; {stores} {flags} adds r6, #48; adds r7, #20"


def riscv_piece(body: str) -> str:
    loads = "".join(
        f"lw a{n}, {12 * n}(s0); lw a5, {12 * n + 4}(s0); and a{n}, a{n}, a5; "
        f"lw a5, {12 * n + 8}(s0); or a{n}, a{n}, a5; "
        for n in range(INPUTS)
    )
    stores = "".join(f"sw a{n}, {4 * n}(s1); " for n in range(INPUTS))
    return f"{loads} {body}; {stores} addi s0, s0, 48; addi s1, s1, 20"


class Pieces:
    """Some pieces of code one after the other, and what they leave."""

    def __init__(self, program, platform: str, bodies: Sequence[str], chance: random.Random):
        self.count, ram = len(bodies), load_platform(platform).ram.start + 0x4000
        self.inputs, self.outputs = ram, ram + len(bodies) * INPUTS * 12
        if platform.startswith("riscv32"):
            start = f"start: li s0, {self.inputs}; li s1, {self.outputs}"
            text = [riscv_piece(body) for body in bodies]
        else:
            words = f".balign 4; 1: .word {self.inputs}; 2: .word {self.outputs}"
            start = f"start: ldr r6, 1f; ldr r7, 2f; mov sp, r6; b 3f; {words}; 3:"
            text = [arm_piece(body, platform != "cortex-m0plus") for body in bodies]
        self.loaded = program(platform, "\n".join([start, *text, "end: nop; .balign 4"]))
        self.device = self.loaded.device
        # words of input: undefined, mask, known
        self.words = np.zeros((self.count, INPUTS, 3), np.uint32)
        self.places: list[list[tuple[int, int]]] = []
        values = (0, 1, WHOLE, 0x7FFFFFFF, 0x80000000, 0xFF, 0x8000, 31, 33)
        for piece in range(self.count):
            places = {
                (
                    chance.randrange(INPUTS),
                    chance.randrange(32) if chance.random() < 0.7 else chance.randrange(6),
                )
                for _ in range(UNDEFINED_BITS)
            }
            self.places.append(sorted(places))
            for register in range(INPUTS):
                mask = sum(1 << bit for one, bit in places if one == register)
                known = chance.choice(values) if chance.random() < 0.4 else chance.getrandbits(32)
                self.words[piece, register] = 0, mask, known & ~mask & WHOLE

    def run(self, number: int) -> NDArray[np.uint32]:
        """The outputs with one of the values of the undefined bits; shape (pieces, OUTPUTS)."""
        words = self.words.copy()
        for piece, places in enumerate(self.places):
            for position, (register, bit) in enumerate(places):
                words[piece, register, 0] |= np.uint32((number >> position & 1) << bit)
        self.device.write(self.inputs, words.tobytes() + bytes(self.count * OUTPUTS * 4))
        self.before()
        self.loaded.run()
        raw = self.device.read(self.outputs, self.count * OUTPUTS * 4)
        return np.frombuffer(raw, np.uint32).reshape(self.count, OUTPUTS)

    def before(self) -> None:
        """Called before a run, with the inputs in memory."""


class Checked(Pieces):
    """The same on a device that carries undefined bits."""

    def check(self) -> None:
        self.states = self.device.abilities.memory.check_memory(self.fault)

    def fault(self, finding: ForbiddenAccess) -> DeviceFault:
        raise AssertionError(f"{finding.decides} at 0x{finding.pc:x}")

    def before(self) -> None:
        ram, flash = self.device.platform.ram, self.device.platform.flash
        for memory in (ram, flash):
            self.states.set(memory.start, memory.end - memory.start, Forbidden.NOTHING)
        self.states.set_stack(ram.start, ram.start + 16, 16, 0)
        self.states.begin()
        for piece in range(self.count):
            for register in range(INPUTS):
                at = self.inputs + 12 * (piece * INPUTS + register)
                self.states.set(at, 4, Forbidden.UNWRITTEN)

    def undefined(self) -> NDArray[np.uint32]:
        """The undefined bits of the outputs of the latest run."""
        bits = self.states.undefined_bits(self.outputs, self.count * OUTPUTS * 4)
        return np.asarray(bits.view(np.uint32)).reshape(self.count, OUTPUTS)


def compared(program, platform: str, bodies: Sequence[str], seed: int):
    """What covp calls undefined, and the bits that other values of the undefined bits change."""
    plain = Pieces(program, platform, bodies, random.Random(seed))
    checked = Checked(program, platform, bodies, random.Random(seed))
    checked.check()
    first = plain.run(0)
    changed = np.zeros_like(first)
    for number in range(1, 1 << UNDEFINED_BITS):
        changed |= first ^ plain.run(number)
    for number in (0, random.Random(seed).randrange(1 << UNDEFINED_BITS)):
        assert np.array_equal(checked.run(number), plain.run(number))
        yield checked.undefined(), changed


@pytest.mark.parametrize("platform", CORES)
@pytest.mark.parametrize("seed", range(3))
def test_one_instruction(program, platform, seed):
    chance = random.Random(seed)
    registers = [f"a{n}" if platform.startswith("riscv32") else f"r{n}" for n in range(INPUTS)]
    drawn = [form for form in CORES[platform] for _ in range(4)]
    bodies = [text_of(form, registers, chance) for form in drawn]
    for found, changed in compared(program, platform, bodies, seed):
        for form, body, has, can in zip(drawn, bodies, found, changed, strict=True):
            assert not (can & ~has).any(), f"{body}: defined, but it changes: {has} {can}"
            if form.is_exact:
                assert np.array_equal(has[:INPUTS], can[:INPUTS]), f"{body}: {has} {can}"


@pytest.mark.parametrize("platform", CORES)
@pytest.mark.parametrize("seed", range(3))
def test_sequences(program, platform, seed):
    chance = random.Random(100 + seed)
    registers = [f"a{n}" if platform.startswith("riscv32") else f"r{n}" for n in range(INPUTS)]
    bodies = [
        "; ".join(text_of(chance.choice(CORES[platform]), registers, chance) for _ in range(length))
        for length in (2, 3, 4, 6)
        for _ in range(60)
    ]
    for found, changed in compared(program, platform, bodies, seed):
        for body, has, can in zip(bodies, found, changed, strict=True):
            assert not (can & ~has).any(), f"{body}: defined, but it changes: {has} {can}"
