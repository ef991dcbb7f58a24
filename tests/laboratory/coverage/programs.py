"""Random C functions with one statement on each line, for coverage to be compared on."""

from __future__ import annotations

import re

from hypothesis import assume
from hypothesis import strategies as st

ATOMS = ["a", "b", "c", "s", "1", "3", "-2"]


@st.composite
def functions(draw: st.DrawFn) -> str:
    """``int f(int a, int b, int c)`` that ends after few steps, and a helper that it may call."""
    lines = [
        "int half(int x)",
        "{",
        "  if (x < 0)",
        "    return -x;",
        "  return x / 2;",
        "}",
        "int f(int a, int b, int c)",
        "{",
        "  int s = 0;",
        "  int budget = 200;",
    ]
    counter = [0]
    for _ in range(draw(st.integers(1, 4))):
        lines += draw(statement(2, counter))
    return "\n".join([*lines, "  return s;", "}", ""])


@st.composite
def operand(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(ATOMS))


@st.composite
def comparison(draw: st.DrawFn) -> str:
    operator = draw(st.sampled_from(["<", ">", "==", "!=", "<=", ">="]))
    return f"{draw(operand())} {operator} {draw(operand())}"


@st.composite
def condition(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return draw(comparison())
    operator = draw(st.sampled_from(["&&", "||"]))
    parts = [draw(condition(depth - 1)), draw(condition(depth - 1))]
    text = f" {operator} ".join(f"({part})" for part in parts)
    # GCC folds comparisons of the same operands into one, and gcov counts what is left of them
    compared = [frozenset(pair) for pair in re.findall(r"([-\w]+) [<>=!]+ ([-\w]+)", text)]
    assume(len(set(compared)) == len(compared) and all(len(pair) == 2 for pair in compared))
    return text


@st.composite
def statement(draw: st.DrawFn, depth: int, counter: list[int]) -> list[str]:
    simple = st.sampled_from(["assign", "call", "choose"])
    nested = st.sampled_from(["if", "else", "for", "while", "do", "switch"])
    kind = draw(simple if depth == 0 else st.one_of(simple, nested))
    if kind == "assign":
        return [f"  s += {draw(operand())} - {draw(operand())};"]
    if kind == "call":
        return [f"  s -= half({draw(operand())});"]
    if kind == "choose":
        return [f"  s ^= {draw(comparison())} ? {draw(operand())} : {draw(operand())};"]
    body = draw(statement(depth - 1, counter)) + draw(statement(depth - 1, counter))
    if kind == "if":
        return [f"  if ({draw(condition())}) {{", *body, "  }"]
    if kind == "else":
        other = draw(statement(depth - 1, counter))
        return [f"  if ({draw(condition())}) {{", *body, "  } else {", *other, "  }"]
    if kind == "while":
        return [f"  while (budget-- > 0 && ({draw(condition())})) {{", *body, "  }"]
    counter[0] += 1
    name, times = f"i{counter[0]}", draw(st.integers(0, 4))
    if kind == "for":
        return [f"  for (int {name} = 0; {name} < {times}; {name}++) {{", *body, "  }"]
    if kind == "do":
        return [f"  int {name} = 0;", "  do {", *body, f"  }} while (++{name} < {times});"]
    other = draw(statement(depth - 1, counter))
    cases = ["  case 0:", *body, "  break;", "  case 1:", *other, "  default:", "  s++;"]
    return [f"  switch (({draw(operand())}) & 3) {{", *cases, "  }"]
