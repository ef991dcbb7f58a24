"""Serial ports of QEMU's machines: the same loads and stores give what QEMU's own models give."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass

import numpy as np
import pytest

from covp.runtime.session import Session

# Three words an operation: bytes | kind, offset, value. What loads give goes to `out`.
STORE, LOAD, LOAD_IF_READY = 0, 0x100, 0x200
PROBE = """
#include <stdint.h>

void probe(uint32_t base, const uint32_t *script, uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++, script += 3) {
        uint32_t at = base + script[1];
        switch (script[0]) {
        case 1: *(volatile uint8_t *)at = (uint8_t)script[2]; break;
        case 4: *(volatile uint32_t *)at = script[2]; break;
        case 0x101: out[i] = *(volatile uint8_t *)at; break;
        case 0x104: out[i] = *(volatile uint32_t *)at; break;
        /* a 16550's data, which mean nothing before LSR says that there are any */
        default: out[i] = *(volatile uint8_t *)(base + 5) & 1 ? *(volatile uint8_t *)at : 256;
        }
    }
}
"""


@dataclass(frozen=True)
class Port:
    """A port, and the stores after which QEMU's model does what the manual says.

    Attributes:
        size: bytes of its registers.
        first: stores, (offset, value), that come first.
        stores: (offset, bits that may be 1, bits that are 1) of random ones.
        loads: offsets.
    """

    size: int
    first: tuple[tuple[int, int], ...]
    stores: tuple[tuple[int, int, int], ...]
    loads: tuple[int, ...]


# QEMU never sends a byte that was written before the transmitter is on.
CMSDK = Port(
    4,
    ((8, 1), (16, 217)),
    ((0, 0xFF, 0), (4, ~0, 0), (8, ~0, 1), (12, ~0, 0), (16, ~0, 16)),
    (0, 4, 8, 12, 16, *range(0xFD0, 0x1000, 4)),
)
# QEMU's transmitter is always on; it has no DIV after reset, and keeps reserved bits.
SIFIVE = Port(
    4,
    ((8, 1), (24, 542)),
    ((0, 0xFF, 0), (8, 0x70003, 1), (12, 0x70001, 0), (16, 3, 0), (24, 0xFFFF, 0)),
    (0, 4, 8, 12, 16, 20, 24),
)
# The divisor and MCR of QEMU are not 0 after reset. Its time-out comes some time after the byte:
# the receiver triggers at one byte. Bytes come by the loop of MCR.
NS16550 = Port(
    1,
    ((3, 0x80), (0, 1), (1, 0), (3, 3), (4, 0)),
    ((0, 0xFF, 0), (1, 0xFF, 0), (2, 0x3F, 0), (3, 0xBF, 0), (4, 0xFF, 0), (7, 0xFF, 0)),
    (0, 1, 2, 3, 4, 5, 6, 7),
)
PORTS = {
    "mps2-an386": CMSDK,
    "mps2-an500": CMSDK,
    "mps3-an547": CMSDK,
    "hifive1": SIFIVE,
    "qemu-riscv32": NS16550,
}


def script(port: Port, count: int, seed: int) -> list[tuple[int, int, int]]:
    draw = random.Random(seed)
    operations = [(STORE | port.size, offset, value) for offset, value in port.first]
    operations += [(LOAD | port.size, offset, 0) for offset in port.loads if offset]
    for _ in range(count):
        offset, allowed, always = draw.choice(port.stores)
        if draw.random() < 0.4:
            value = draw.getrandbits(32) & allowed | always
            operations.append((STORE | port.size, offset, value & 0xFFFFFFFF))
        else:
            offset = draw.choice(port.loads)
            ready = port is NS16550 and offset == 0
            operations.append((LOAD_IF_READY if ready else LOAD | port.size, offset, 0))
    return operations


def answers(platform: str, device: str, operations: list[tuple[int, int, int]]) -> list[int]:
    with Session(platform, device=device) as session:
        base = next(p.base for p in session.platform.peripherals if p.name == "uart0")
        words = session.tensor(np.array(operations, np.uint32).reshape(-1))
        out = session.tensor(np.zeros(len(operations), np.uint32))
        session.load_c(PROBE)["probe"](base, words, len(operations), out)
        return [int(value) for value in out.numpy()]


@pytest.mark.parametrize("platform", PORTS)
def test_random_accesses(platform: str) -> None:
    if not shutil.which("qemu-system-riscv32" if "mps" not in platform else "qemu-system-arm"):
        pytest.skip("QEMU is not installed: no oracle")
    operations = script(PORTS[platform], 500, random.getrandbits(32))
    ours, theirs = (answers(platform, device, operations) for device in ("virtual", "gdb:qemu"))
    for at, (operation, one, other) in enumerate(zip(operations, ours, theirs, strict=True)):
        assert one == other, f"operation {at}: {operation} after {operations[max(0, at - 8) : at]}"
    assert any(theirs)
