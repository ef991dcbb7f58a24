"""One session, two threads: the second one is turned away, and nobody gets a wrong result."""

import threading

import numpy as np
import pytest

from covp import Session, UsageError, compile

SPIN = """
#include <stdint.h>
uint32_t spin(uint32_t rounds)
{
    volatile uint32_t i = 0;
    while (i < rounds) i = i + 1;
    return i;
}
"""


def test_a_second_thread_is_named_the_first():
    with Session("riscv32") as session:
        spin = session.load_c(SPIN)["spin"]
        results: list[object] = []
        busy = threading.Thread(
            target=lambda: results.append(spin(30_000_000).result()), name="worker-7"
        )
        busy.start()
        while not session.io.busy:
            pass
        for attempt in (session.sync, lambda: spin(1), lambda: session.read(0x80000000, 4)):
            with pytest.raises(UsageError, match="in use by thread worker-7"):
                attempt()
        busy.join()
        assert results == [30_000_000]
        # afterwards the other thread may go on
        assert spin(3).result() == 3


def test_inferences_of_several_threads_are_right_or_rejected():
    program = compile("toycar", "riscv32")
    rng = np.random.default_rng(0)
    tensor = program.inputs[0]
    inputs = [rng.integers(-128, 128, tensor.shape).astype(tensor.dtype) for _ in range(4)]
    wanted = [program.reference([values])[0] for values in inputs]
    wrong: list[int] = []
    done = [0] * len(inputs)

    with Session("riscv32") as session:
        module = session.load(program)

        def work(position: int) -> None:
            while done[position] < 5:
                try:
                    got = module.run(inputs[position])
                except UsageError:
                    continue
                done[position] += 1
                if not np.array_equal(got, wanted[position]):
                    wrong.append(position)

        threads = [threading.Thread(target=work, args=(p,)) for p in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert done == [5] * len(inputs) and not wrong
