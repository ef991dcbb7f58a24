"""Arguments and results across the calling conventions of all cores and both compilers."""

import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp.errors import UsageError
from covp.runtime.session import Session
from covp.runtime.signature import read_signatures

INTEGERS = {
    "int8_t": "b",
    "uint8_t": "B",
    "int16_t": "h",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
}
FORMATS = {**INTEGERS, "float": "f", "void *": "I"}


def random_signatures(count: int) -> list[list[str]]:
    """Parameter lists of up to 12 words and 8 floats, mixed so that pairs fall on odd places."""
    generator = random.Random(5)
    found: list[list[str]] = [[name] for name in FORMATS]
    while len(found) < count:
        types = [generator.choice(list(FORMATS)) for _ in range(generator.randint(1, 9))]
        # a pair may cost one word more; 5 pairs leave room for that in every convention
        words = sum(3 if "64" in name else 1 for name in types)
        if words <= 12 and types.count("float") <= 8:
            found.append(types)
    return found


SIGNATURES = random_signatures(40)


def recorder(index: int, types: list[str]) -> str:
    """A function that stores the bytes of all its arguments, in order."""
    parameters = ", ".join(f"{name} p{i}" for i, name in enumerate(types))
    lines = "".join(
        f"    memcpy(seen + at, &p{i}, sizeof p{i}); at += sizeof p{i};\n"
        for i in range(len(types))
    )
    return f"void f{index}({parameters})\n{{\n    unsigned at = 0;\n{lines}}}\n"


RECORDERS = "#include <stdint.h>\n#include <string.h>\nuint8_t seen[128];\n" + "".join(
    recorder(index, types) for index, types in enumerate(SIGNATURES)
)


def values_of(name: str) -> st.SearchStrategy[Any]:
    if name == "float":
        return st.floats(width=32, allow_nan=False)
    if name == "void *":
        return st.integers(0, 2**32 - 1)
    bits = int("".join(filter(str.isdigit, name)))
    if name.startswith("u"):
        return st.integers(0, 2**bits - 1)
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


CALLS = st.integers(0, len(SIGNATURES) - 1).flatmap(
    lambda index: st.tuples(
        st.just(index), st.tuples(*(values_of(name) for name in SIGNATURES[index]))
    )
)


def test_every_argument_arrives_as_it_was_given(session: Session) -> None:
    module = session.load_c(RECORDERS, flags=("-Werror",))
    seen = module.address("seen")

    @settings(max_examples=150, deadline=None)
    @given(CALLS)
    def check(call: tuple[int, tuple[Any, ...]]) -> None:
        index, values = call
        module[f"f{index}"](*values).result()
        layout = "<" + "".join(FORMATS[name] for name in SIGNATURES[index])
        expected = struct.pack(layout, *values)
        assert session.device.read(seen, len(expected)) == expected

    check()


ECHO = "#include <stdint.h>\n#include <stdbool.h>\n" + "".join(
    f"{name} echo_{name}({name} x) {{ return x; }}\n" for name in [*INTEGERS, "float", "bool"]
)


def test_every_result_comes_back(session: Session) -> None:
    module = session.load_c(ECHO)

    @settings(max_examples=40, deadline=None)
    @given(
        st.sampled_from([*INTEGERS, "float"]).flatmap(lambda n: st.tuples(st.just(n), values_of(n)))
    )
    def check(call: tuple[str, Any]) -> None:
        name, value = call
        assert module[f"echo_{name}"](value).result() == value

    check()
    assert module["echo_bool"](True).result() is True


def test_tensors_pass_as_pointers_and_pointers_come_back(session: Session) -> None:
    module = session.load_c("short *third(short *p) { return p + 2; }")
    tensor = session.tensor(np.arange(5, dtype=np.int16))
    assert module["third"](tensor).result() == tensor.address + 4
    assert module["third"](None).result() == 4


C = """
#include <stdint.h>
typedef struct { int a, b; } pair;
typedef enum { RED, GREEN } colour;
void bytes(const int8_t *p, uint32_t n) { (void)p; (void)n; }
void anything(void *p) { (void)p; }
void text(char *p) { (void)p; }
void rows(float (*p)[4]) { (void)p; }
void structure(pair p) { (void)p; }
int32_t pointed(pair *p, colour c) { return p->a + c; }
void wide(double x) { (void)x; }
double result(void) { return 1; }
int32_t many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l,
             int m) { return a + b + c + d + e + f + g + h + i + j + k + l + m; }
int32_t dots(int a, ...) { return a; }
"""


@pytest.mark.parametrize(
    "call, reason",
    [
        (lambda m, s: m["bytes"](), r"takes 2 arguments, not 0"),
        (
            lambda m, s: m["bytes"](s.tensor(np.zeros(4, np.uint8)), 4),
            "does not fit a tensor of uint8",
        ),
        (lambda m, s: m["bytes"](s.tensor(np.zeros(4, np.int16)), 4), "tensor of int16"),
        (lambda m, s: m["bytes"](np.zeros(4, np.int8), 4), r"make it session\.tensor"),
        (lambda m, s: m["bytes"](s.tensor(np.zeros(4, np.int8)), -1), "-1 is outside uint32_t"),
        (
            lambda m, s: m["bytes"](s.tensor(np.zeros(4, np.int8)), 1.0),
            "needs an integer, not a float",
        ),
        (lambda m, s: m["bytes"](s.tensor(np.zeros(4, np.int8)), 2**32), "outside uint32_t"),
        (lambda m, s: m["rows"](s.tensor(np.zeros(4, np.int32))), "does not fit a tensor of int32"),
        (lambda m, s: m["structure"](1), "cannot be passed by value"),
        (lambda m, s: m["wide"](1.0), "double is not supported"),
        (lambda m, s: m["result"](), "cannot return double"),
        (lambda m, s: m["many"](*range(13)), "13 argument words"),
        (lambda m, s: m["dots"](1), "cannot be called"),
        (lambda m, s: m["bites"], "no function 'bites': did you mean bytes"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(
    open_session: Callable[..., Session], call: Callable[[Any, Session], Any], reason: str
) -> None:
    session = open_session("riscv32")
    module = session.load_c(C)
    with pytest.raises(UsageError, match=reason) as refused:
        call(module, session)
    assert "\n" not in str(refused.value)


def test_what_fits_is_taken(open_session: Callable[..., Session]) -> None:
    session = open_session("cortex-m4")
    module = session.load_c(C)
    raw = session.tensor(np.array([7, 8], np.int32))
    module["anything"](raw)
    module["text"](session.tensor(np.zeros(3, np.uint8)))
    module["text"](session.tensor(np.zeros(3, np.int8)))
    module["rows"](session.tensor(np.zeros((2, 4), np.float32)))
    assert module["pointed"](raw, 1).result() == 8
    assert module["pointed"](raw, np.int8(1)).result() == 8


def test_signatures_read_as_the_c_declares_them(session: Session) -> None:
    module = session.load_c(C)
    text = {name: str(signature) for name, signature in module.signatures.items()}
    assert text["bytes"] == "void bytes(const int8_t *p, uint32_t n)"
    assert text["result"] == "double result(void)"
    assert text["dots"] == "int32_t dots(int a, ...)"
    assert module.signatures == read_signatures(module.image.elf.content)
