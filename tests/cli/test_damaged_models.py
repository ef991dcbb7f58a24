"""Damaged model files: the reader gives a graph or a ModelError, and what it gives can be used.

The reader is in front of every command, so that a file that gets past it must not break what comes
after it either.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import example, given, settings
from hypothesis import strategies as st

from covp.codegen.compile import compile
from covp.errors import CovpError, ModelError
from covp.frontend.tflite import read_tflite
from covp.graph.graph import Graph

from .conftest import small_model

MODEL = small_model()
HANGS_AFTER = 20
"""Seconds; reading takes a hundredth of one."""

flips = st.lists(
    st.tuples(st.integers(0, len(MODEL) - 1), st.integers(1, 255)), min_size=1, max_size=6
)


@contextmanager
def no_hang() -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise AssertionError(f"not done after {HANGS_AFTER} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(HANGS_AFTER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read(data: bytes) -> Graph | None:
    with no_hang():
        try:
            return read_tflite(data)
        except ModelError as error:
            assert "\n" not in str(error)
            assert str(error).startswith("model: ")
            return None


def flipped(changes: list[tuple[int, int]]) -> bytes:
    data = bytearray(MODEL)
    for at, mask in changes:
        data[at] ^= mask
    return bytes(data)


def test_the_undamaged_one_is_read() -> None:
    assert read(MODEL) is not None


@settings(max_examples=400, deadline=None)
@given(st.integers(0, len(MODEL) - 1))
@example(0)
@example(4)
@example(8)
def test_truncations(length: int) -> None:
    read(MODEL[:length])


@settings(max_examples=1500, deadline=None)
@given(flips)
def test_flipped_bytes(changes: list[tuple[int, int]]) -> None:
    read(flipped(changes))


@settings(max_examples=200, deadline=None)
@given(flips, st.integers(0, len(MODEL) - 1), st.binary(max_size=32))
def test_all_at_once(changes: list[tuple[int, int]], length: int, tail: bytes) -> None:
    read(flipped(changes)[:length] + tail)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_noise_behind_the_identifier(noise: bytes) -> None:
    assert read(MODEL[:8] + noise) is None


@settings(max_examples=150, deadline=None)
@given(flips)
def test_what_is_read_compiles_or_is_refused(changes: list[tuple[int, int]]) -> None:
    graph = read(flipped(changes))
    if graph is None:
        return
    with no_hang():
        try:
            program = compile(graph, "riscv32")
        except CovpError as error:
            assert "\n" not in str(error)
        else:
            assert program.layers
