"""covp's own kernels and drivers with interrupts: the same bits wherever one comes."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.errors import UsageError
from covp.runtime.module import Function
from covp.runtime.signature import VOID, CType, Signature, SignatureParameter
from covp.testing import Kernel, interrupted
from tests.accelerator.test_offload import network

ISR = """
#include <stdint.h>
volatile uint32_t ticks;
volatile float sum;
volatile uint64_t product = 3;
/* Uses much stack, the multiplier and the floating-point registers. */
void tick_isr(void)
{
    volatile uint8_t much[96];
    for (unsigned i = 0; i < sizeof much; i++) much[i] = (uint8_t)~i;
    sum = sum * 1.5f + (float)much[ticks % 96];
    product *= 0x100000001b3u;
    ticks = ticks + 1;
}
void nothing(void) {}
"""
ARENA = SignatureParameter(
    "arena", CType("pointer", "uint8_t *", 4, False, CType("int", "uint8_t", 1))
)


@pytest.mark.parametrize("platform", ["cortex-m4", "cortex-m0plus", "riscv32", "riscv32f"])
@pytest.mark.parametrize("accelerators", [[], ["qconv2d"], ["qconv2d:wait=sleep"]])
def test_a_network(platform, accelerators):
    """Layers on the core, and the driver of a unit that is polled, or waited for with WFI."""
    program = covp.compile(network(), platform, accelerators=accelerators)
    x = np.random.default_rng(2).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    (want,) = program.reference([x])
    with covp.Session(platform) as session:
        model = session.load(program)
        address = model.image.elf.symbols[program.run_function].value
        whole = Function(model, Signature(program.run_function, (ARENA,), VOID), address)
        isr = session.load_c(ISR)
        arena = model.address(program.arena_symbol)
        session.write(arena + program.inputs[0].offset, x.tobytes())
        output = program.outputs[0]
        taken = 0
        for call in interrupted(
            Kernel(whole), (arena,), handler=isr["tick_isr"], at="random", examples=12, seed=4,
            variables=(),
        ):  # fmt: skip
            raw = session.read(arena + output.offset, output.nbytes)
            assert np.array_equal(np.frombuffer(raw, np.int8).reshape(output.shape), want), call
            ticks = session.read(isr.address("ticks"), 4)[0]
            assert ticks == 1
            taken += call.taken is not None
        assert taken == 12


def test_a_handler_of_another_session():
    with covp.Session("riscv32") as one, covp.Session("riscv32") as other:
        kernel = Kernel(one.load_c(ISR)["nothing"])
        with pytest.raises(UsageError, match="tick_isr is in another session than nothing"):
            next(interrupted(kernel, handler=other.load_c(ISR)["tick_isr"]))
