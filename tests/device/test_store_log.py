"""`StoreLog`: every store of the core to some memory, with its instruction."""

from __future__ import annotations

import numpy as np
import pytest

import covp
from covp.device.machine.store_log import StoreLog
from covp.device.virtual import VirtualDevice

SOURCE = """
#include <stdint.h>
void walk(uint8_t *p, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        p[i] = (uint8_t)(i + 250);
        *(volatile uint16_t *)(p + 32) = 0xfffe;
        ((volatile uint32_t *)p)[9] = (uint32_t)-i;
    }
}
"""
CONDITIONAL = """
#include <stdint.h>
int32_t mixed(volatile int32_t *p, int32_t n)
{
    int32_t result = 5;
    __asm__ volatile("cmp %2, #0\\n\\titet gt\\n\\tstrgt %2, [%1]\\n\\tstrle %0, [%1, #4]\\n\\t"
                     "addgt %0, %0, #2\\n\\tadd %0, %0, #1\\n\\t"
                     "cmp %3, %2\\n\\tb 1f\\n1:\\tadds %0, #7\\n\\tadds %0, #70"
                     : "+r"(result) : "r"(p), "r"(n), "r"(-n) : "cc", "memory");
    return result;
}
"""


@pytest.fixture(params=["riscv32", "cortex-m4", "cortex-m0plus"])
def session(request):
    with covp.Session(request.param, strict=True) as session:
        yield session


def test_address_size_value_and_instruction(session):
    walk = session.load_c(SOURCE)["walk"]
    p = session.tensor(np.zeros(40, np.uint8))
    with StoreLog(session.device.core, p.address, 40) as log:
        walk(p, 8)
    stores = log.stores
    assert log.count == stores.size == 24
    assert [int(s["address"]) - p.address for s in stores[::3]] == list(range(8))
    assert [int(s["value"]) for s in stores[::3]] == [(i + 250) % 256 for i in range(8)]
    assert {(int(s["size"]), int(s["value"])) for s in stores[1::3]} == {(2, 0xFFFE)}
    assert [int(s["value"]) for s in stores[2::3]] == [-i % 2**32 for i in range(8)]
    lines = [session.device.board.names.symbols.locate(int(s["pc"]))[1] for s in stores]
    assert lines == ["module.c:6", "module.c:7", "module.c:8"] * 8
    walk(p, 8)
    assert log.count == 24  # it was left


def test_part_of_a_store_and_the_first_ones(session):
    walk = session.load_c(SOURCE)["walk"]
    p = session.tensor(np.zeros(40, np.uint8))
    for first, size, expected in ((33, 1, 8), (38, 8, 8), (4, 2, 2), (34, 2, 0), (34, 3, 8)):
        with StoreLog(session.device.core, p.address + first, size) as log:
            walk(p, 8)
        assert log.count == expected
    with StoreLog(session.device.core, p.address, 40, most=5) as log:
        walk(p, 8)
    assert (log.count, log.stores.size) == (24, 5)


def test_a_store_is_told_of_before_it_is_done(session):
    walk = session.load_c(SOURCE)["walk"]
    p = session.tensor(np.zeros(40, np.uint8))
    core, seen = session.device.core, []

    def told():
        memory = session.device.read(p.address, 40)
        seen.append((core.read_register("pc"), memory[0:3]))

    with StoreLog(core, p.address, 40, number=6, on_store=told) as log:
        walk(p, 8)
    assert seen == [(int(log.stores["pc"][6]), bytes([250, 251, 0]))]

    def fail():
        raise KeyError("told")

    with pytest.raises(KeyError), StoreLog(core, p.address, 40, number=0, on_store=fail):
        walk(p, 1)


def test_conditional_stores_leave_the_condition():
    with covp.Session("cortex-m4", strict=True) as session:
        mixed = session.load_c(CONDITIONAL)["mixed"]
        for n, result, memory in ((3, 85, [3, 0]), (-3, 83, [0, 5])):
            p = session.tensor(np.zeros(2, np.int32))
            assert isinstance(session.device, VirtualDevice)
            with StoreLog(session.device.core, p.address, 8) as log:
                assert mixed(p, n).result() == result
            assert p.numpy().tolist() == memory
            assert log.stores["value"].tolist() == [v for v in memory if v]
