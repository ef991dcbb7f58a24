"""Conditions: masking MC/DC from counts of edges, against its definition on the expression."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covp
from covp.laboratory.coverage import Coverage
from tests.laboratory.coverage.test_lines import PLATFORMS, toolchains

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Expression:
    """A variable, or two expressions with an operator between them."""

    parts: tuple[Expression, ...] = ()
    operator: str = ""
    name: int = 0

    def text(self) -> str:
        if not self.parts:
            return f"x{self.name} > 0"
        return f" {self.operator} ".join(f"({part.text()})" for part in self.parts)

    def value(self, vector: Vector) -> bool:
        if not self.parts:
            return vector[self.name] > 0
        values = (part.value(vector) for part in self.parts)
        return all(values) if self.operator == "&&" else any(values)

    def names(self) -> list[int]:
        return [n for part in self.parts for n in part.names()] or [self.name]

    def operators(self) -> set[str]:
        inside = (part.operators() for part in self.parts)
        return {self.operator} - {""} | set().union(*inside)

    def decides(self, name: int, vector: Vector) -> bool:
        """Whether a variable is evaluated and no other operand masks it, by the definition."""
        if not self.parts:
            return True
        left, right = self.parts
        passes = self.operator == "&&"  # the value that an operand has where the other decides
        if name in left.names():
            ended = left.value(vector) != passes  # the right one is not evaluated
            return left.decides(name, vector) and (ended or right.value(vector) == passes)
        return left.value(vector) == passes and right.decides(name, vector)

    def shown(self, name: int, vectors: list[Vector]) -> bool:
        """Masking MC/DC: with both values it decided, and the outcomes differ."""
        seen = [(v[name] > 0, self.value(v)) for v in vectors if self.decides(name, v)]
        return any(one != other and gave != got for one, gave in seen for other, got in seen)


@st.composite
def expressions(draw: st.DrawFn, names: list[int]) -> Expression:
    if len(names) == 1:
        return Expression(name=names[0])
    cut = draw(st.integers(1, len(names) - 1))
    parts = draw(expressions(names[:cut])), draw(expressions(names[cut:]))
    return Expression(parts, draw(st.sampled_from(["&&", "||"])))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    count=st.integers(2, 5),
    data=st.data(),
    platform=st.sampled_from(PLATFORMS),
    level=st.sampled_from(["-O0", "-Og"]),
)
def test_masking(count: int, data: st.DataObject, platform: str, level: str) -> None:
    expression = data.draw(expressions(list(range(count))))
    vectors = data.draw(st.lists(st.tuples(*[st.integers(0, 1)] * count), min_size=1, max_size=9))
    toolchain = data.draw(st.sampled_from(toolchains(platform)))
    parameters = ", ".join(f"volatile int x{n}" for n in range(count))
    text = f"int f({parameters}) {{\n if ({expression.text()})\n return 7;\n return 1;\n}}\n"
    with covp.Session(platform, toolchain=toolchain) as session:
        f = session.load_c(text, flags=(level,))["f"]
        with Coverage(session) as c:
            for vector in vectors:
                assert f(*vector).result() == (7 if expression.value(vector) else 1)
        found = c.conditions(next(iter(c.data.files)))
    is_whole = len(found) == count and all(condition.of == count for condition in found)
    assert is_whole or level != "-O0"
    if not is_whole:
        return  # the compiler has merged comparisons, or made several decisions of the one
    for name, condition in enumerate(found):
        evaluated = [v for v in vectors if is_evaluated(expression, name, v)]
        assert condition.both == (len({v[name] > 0 for v in evaluated}) == 2)
        shown = expression.shown(name, vectors)
        assert condition.status != "unknown" or len(expression.operators()) > 1
        if condition.status != "unknown":
            assert shown == (condition.status == "shown"), (name, found)


def is_evaluated(expression: Expression, name: int, vector: Vector) -> bool:
    if not expression.parts:
        return True
    left, right = expression.parts
    if name in left.names():
        return is_evaluated(left, name, vector)
    passes = expression.operator == "&&"
    return left.value(vector) == passes and is_evaluated(right, name, vector)
