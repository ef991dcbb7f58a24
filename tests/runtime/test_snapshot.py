"""Snapshots of a session: what follows a restore is what followed the snapshot."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covp import Session, UsageError, compile

COUNTER = """
#include <stdint.h>
static uint32_t calls;
uint32_t next(uint32_t step) { return calls += step; }
"""


@given(
    before=st.lists(st.integers(0, 1000), max_size=5),
    after=st.lists(st.integers(0, 1000), min_size=1, max_size=5),
)
@settings(max_examples=20, deadline=None)
def test_the_same_calls_give_the_same_results_again(before, after):
    with Session("cortex-m4") as session:
        step = session.load_c(COUNTER)["next"]
        tensor = session.tensor(np.arange(4, dtype=np.int32))
        for amount in before:
            step(amount)
        snapshot = session.snapshot()

        def go_on() -> list[object]:
            results: list[object] = [step(amount).result() for amount in after]
            return [*results, session.device.read(tensor.address, 16)]

        first = go_on()
        assert first[-2] == sum(before) + sum(after)
        tensor.write(np.zeros(4, np.int32))
        session.restore(snapshot)
        assert go_on() == first
        session.restore(snapshot)
        assert go_on() == first


@pytest.mark.parametrize("accelerator", ["qconv2d", "gemm:size=8,wait=sleep", "cfu"])
def test_an_inference_after_a_restore_costs_the_same(accelerator):
    program = compile("kws", "riscv32", [accelerator])
    values = np.random.default_rng(1).integers(-128, 128, program.inputs[0].shape).astype(np.int8)
    with Session("riscv32") as session:
        module = session.load(program)
        snapshot = session.snapshot()
        first = module.run(values), session.profile()
        module.run(np.zeros_like(values))
        session.restore(snapshot)
        again = module.run(values), session.profile()
        assert np.array_equal(first[0], again[0])
        assert first[1] == again[1]


def test_what_a_snapshot_does_not_fit():
    with Session("riscv32") as session, Session("riscv32") as other:
        code = session.load_c(COUNTER)
        snapshot = session.snapshot()
        with pytest.raises(UsageError, match="session that it was taken in"):
            other.restore(snapshot)
        code.unload()
        with pytest.raises(UsageError, match="other modules loaded"):
            session.restore(snapshot)
    with pytest.raises(UsageError, match="closed"):
        session.snapshot()
