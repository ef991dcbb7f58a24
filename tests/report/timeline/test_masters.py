"""A DMA controller beside the core: its bursts, its bytes, its interrupt line."""

from __future__ import annotations

from itertools import pairwise

from covp.hardware.peripheral_models import load_peripheral
from covp.report.timeline import timeline_of_log
from tests.conftest import load

BASE, LINE, ELEMENTS, PAUSE = 0x50000000, 3, 64, 400
COPY = f"""
 li a1, {ELEMENTS}
 sw a1, 8(s0)
 li a1, {1 | 2 << 1 | 3 << 3 | 1 << 25}
 sw a1, 12(s0)
1: lw a1, 0x80(s0)
 andi a1, a1, 0x100
 beqz a1, 1b
 sw a1, 0x80(s0)
"""
PROGRAM = f"""
start: li s0, 0x{BASE:08x}
 li a1, 0x80001000
 sw a1, 0(s0)
 li a1, 0x80002000
 sw a1, 4(s0)
{COPY}
 li a2, {PAUSE}
2: addi a2, a2, -1
 bnez a2, 2b
{COPY}
end: j end
"""


def test_bursts_of_a_dma_controller() -> None:
    program = load("riscv32", PROGRAM)
    with program.device as device:
        content = bytes(range(256))
        device.write(0x80001000, content)
        controller = load_peripheral("dma_controller", {"cycles": 2})
        device.attach(controller, BASE, "dma", LINE)
        with device.counts.record_timeline() as recorder:
            program.run()
        assert device.read(0x80002000, 256) == content
    assert recorder.log is not None
    timeline = timeline_of_log(recorder.log, 100_000_000)
    slices = timeline.track("dma", "transfers").slices
    # each copy in two halves, when each has taken its time
    half = {"bytes_read": 2 * ELEMENTS, "bytes_written": 2 * ELEMENTS}
    assert [dict(one.args) for one in slices] == [half] * 4
    gaps = [b.start - a.start for a, b in pairwise(slices)]
    assert min(gaps[0], gaps[2]) >= ELEMENTS and gaps[1] > PAUSE
    counters = {(one.owner, one.name): one.points[-1][1] for one in timeline.counters}
    for way in ("read", "written"):
        assert counters["dma", f"ram: bytes {way}"] == 2 * 4 * ELEMENTS
    first, second = timeline.track("interrupts", f"line {LINE}: dma").slices
    assert slices[1].start <= first.start < first.end < slices[2].start
    assert slices[3].start <= second.start < second.end <= timeline.cycles
