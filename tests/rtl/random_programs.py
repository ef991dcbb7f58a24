"""Random programs of mixed instructions: loops over bodies with hazards of every kind."""

from __future__ import annotations

from hypothesis import strategies as st

REGISTERS = [*(f"a{n}" for n in range(8)), *(f"t{n}" for n in range(7))]
TIMES = 20
_THREE = ["add", "sub", "xor", "and", "or", "sltu", "sll", "srl", "sra"]
_MULTIPLY = ["mul", "mul", "mulh", "mulhu", "mulhsu"]
_DIVIDE = ["div", "divu", "rem", "remu"]

register = st.sampled_from(REGISTERS)


def _line(*parts: object) -> str:
    name, *rest = parts
    return f" {name} {', '.join(map(str, rest))}\n"


_three = st.builds(_line, st.sampled_from(_THREE), register, register, register)
_constant = st.builds(
    _line, st.sampled_from(["addi", "xori", "andi"]), register, register, st.integers(-2048, 2047)
)
_shift = st.builds(
    _line, st.sampled_from(["slli", "srli", "srai"]), register, register, st.integers(0, 31)
)
_li = st.builds(_line, st.just("li"), register, st.integers(-(1 << 31), (1 << 31) - 1))
_multiply = st.builds(_line, st.sampled_from(_MULTIPLY), register, register, register)
_divide = st.builds(_line, st.sampled_from(_DIVIDE), register, register, register)


def _access(size: int) -> st.SearchStrategy[str]:
    names = {1: ["lb", "lbu", "sb"], 2: ["lh", "lhu", "sh"], 4: ["lw", "sw"]}[size]
    place = st.integers(0, 60 // size).map(lambda n: f"{n * size}(s1)")
    return st.builds(_line, st.sampled_from(names), register, place)


_misaligned = st.builds(
    _line, st.sampled_from(["lw", "lh", "sw", "sh"]), register, st.sampled_from(["1(s1)", "7(s1)"])
)
_call = st.sampled_from([" jal ra, leaf\n", " la t2, leaf\n jalr t2\n"])


@st.composite
def _branch(draw: st.DrawFn) -> str:
    """A branch over one to four instructions."""
    name = draw(st.sampled_from(["beq", "bne", "blt", "bgeu"]))
    body = draw(st.lists(st.one_of(_three, _constant, _access(4)), min_size=1, max_size=4))
    return f" {name} {draw(register)}, {draw(register)}, 1f\n{''.join(body)}1:\n"


def programs(misaligned: bool) -> st.SearchStrategy[str]:
    """Assembly from `start` to `end`, of more than 1,000 executed instructions.

    Args:
        misaligned: with accesses that cross a word.
    """
    kinds = [_three] * 4 + [_constant] * 4 + [_access(1), _access(2), _access(4), _access(4)]
    kinds += [_shift, _li, _multiply, _multiply, _divide, _branch(), _branch(), _call]
    if misaligned:
        kinds.append(_misaligned)
    return st.lists(st.one_of(kinds), min_size=50, max_size=90).map(_program)


def _program(body: list[str]) -> str:
    values = (f" li {name}, {n * 0x9E3779B1 % (1 << 31)}\n" for n, name in enumerate(REGISTERS))
    return (
        f"start:\n li s0, {TIMES}\n li s1, 0x80002000\n{''.join(values)} j loop\n.balign 4\n"
        f"loop:\n{''.join(body)} addi s0, s0, -1\n beqz s0, end\n j loop\n"
        "leaf:\n xor a0, a0, a1\n ret\nend:\n j end\n"
    )
