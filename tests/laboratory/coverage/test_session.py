"""`Coverage` of a session: what is loaded when, interrupts, snapshots, faults, assembly, files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import covp
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault, UsageError
from covp.laboratory.coverage import Coverage, CoverageData, collect
from covp.laboratory.handlers import Handler
from covp.laboratory.inside import Span, inside
from covp.testing import Kernel, interrupted
from tests.laboratory.coverage.test_lines import PLATFORMS, toolchains

LOOP = """\
volatile int ticks;
int count(int n, int odd)
{
  int found = 0;
  for (int i = 0; i < n; i++) {
    if ((i & 1) == odd)
      found++;
  }
  return found;
}
void tick(void)
{
  ticks++;
}
"""
ASSEMBLY = """\
    .text
    .globl half
    .type half, %function
#ifdef __arm__
    .syntax unified
    .thumb_func
half: movs r1, #0
1:  cmp r0, #1
    ble 2f
    subs r0, #2
    adds r1, #1
    b 1b
2:  movs r0, r1
    bx lr
#else
half: li a1, 0
    li a2, 1
1:  ble a0, a2, 2f
    addi a0, a0, -2
    addi a1, a1, 1
    j 1b
2:  mv a0, a1
    ret
#endif
    .size half, .-half
"""


def only(data: CoverageData) -> str:
    (file,) = data.files
    return file


@pytest.mark.parametrize("platform", PLATFORMS)
def test_interrupts_change_no_branch(platform: str) -> None:
    """At each boundary, also between a branch that is not taken and what follows it."""
    with covp.Session(platform) as session:
        kernel = Kernel(session.load_c(LOOP, flags=("-O0",))["count"])
        with Coverage(session) as alone:
            kernel(5, 1)
        with Coverage(session) as c:
            calls = len(list(interrupted(kernel, (5, 1), handler="tick")))
    file = only(alone.data)
    once, often = alone.branches(file), c.branches(file)
    runs = c.functions(file)["count"]
    assert calls > 20 and runs >= calls == c.functions(file)["tick"]
    assert any(branch.taken and branch.untaken for branch in once)
    assert [(b.taken, b.untaken) for b in often] == [
        ((b.taken or 0) * runs, (b.untaken or 0) * runs) for b in once
    ]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_interrupts_while_it_runs(platform: str) -> None:
    """At any cycle, without a stop before it."""
    with covp.Session(platform) as session:
        module = session.load_c(LOOP, flags=("-O0",))
        kernel, device = Kernel(module["count"]), session.device
        assert isinstance(device, VirtualDevice)
        handler = Handler(device, module, "tick")

        def body(span: Span, delay: int) -> None:
            handler.install()
            device.clock.at(device.clock.now + delay, handler.request)
            span.finish(span.start, 10_000)

        start = session.snapshot()
        with Coverage(session) as c:
            for delay in range(1, 120):
                session.restore(start)
                with inside(kernel, partial(body, delay=delay), 10_000):
                    kernel(5, 1)
        (file,) = (name for name in c.data.files if name.endswith(".c"))
        ticks = c.functions(file)["tick"]
        assert 80 < ticks <= 119
        counts = [(b.taken, b.untaken) for b in c.branches(file)]
        assert counts == [(119, 119 * 5), (119 * 3, 119 * 2)]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_restored_states_keep_their_counts(platform: str) -> None:
    with covp.Session(platform) as session, Coverage(session) as c:
        kernel = Kernel(session.load_c(LOOP, flags=("-O0",))["count"])
        start = session.snapshot()
        for _ in range(4):
            kernel(3, 1)
            session.restore(start)
        lines = c.lines(only(c.data))
    assert [lines[n] for n in (4, 5, 6, 7, 9, 13)] == [4, 4 * 4, 4 * 3, 4, 4, 0]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_modules_in_each_others_place(platform: str, tmp_path: Path) -> None:
    """The same addresses hold one module after the other; each count goes to what was there."""
    texts = {"a.c": "int f(int x)\n{\n  return x > 3 ? x * 5 : 7;\n}\n"}
    texts["b.c"] = "\n\nint f(int x)\n{\n  return x < 9 ? x - 5 : 2;\n}\n"
    addresses = set()
    with covp.Session(platform) as session, Coverage(session) as c:
        for name, times in (("a.c", 1), ("b.c", 2), ("a.c", 3), ("b.c", 4)):
            (tmp_path / name).write_text(texts[name])
            module = session.load_c(tmp_path / name, flags=("-O0",))
            addresses.add(module["f"].address)
            for _ in range(times):
                module["f"](5).result()
            module.unload()
    assert len(addresses) == 1
    assert c.lines("a.c")[3] == 4 and c.lines("b.c")[5] == 6
    assert c.functions("a.c") == {"f": 4} and c.functions("b.c") == {"f": 6}


def test_collecting() -> None:
    """Each `collect` gives what ran since the one before, and the sum survives JSON."""
    with covp.Session("riscv32") as session:
        f = session.load_c(LOOP, flags=("-O0",))["count"]
        f(2, 0).result()
        parts = [collect(session)]
        f(3, 0).result()
        f(4, 0).result()
        parts.append(collect(session))
        parts.append(collect(session))
    file = only(parts[0])
    assert [part.functions(file)["count"] for part in parts] == [1, 2, 0]
    sent = [CoverageData.from_json(part.to_json()) for part in parts]
    total = sent[0] + sent[1] + sent[2]
    assert total == parts[2] + parts[1] + parts[0]
    assert total.lines(file)[5] == 3 + 4 + 5
    with pytest.raises(UsageError, match="not coverage data"):
        CoverageData.from_json('{"files": []}')


def test_code_up_to_a_fault() -> None:
    text = "int f(int *p)\n{\n  int x = 1;\n  *p = x;\n  return x;\n}\n"
    with covp.Session("cortex-m4") as session, Coverage(session) as c:
        f = session.load_c(text, flags=("-O0",))["f"]
        with pytest.raises(DeviceFault):
            session.call(f.address | 1, 0xF0000000)
        lines = c.lines(only(c.data))
    assert lines[3] == lines[4] == 1 and lines[5] == 0


def test_queued_calls_and_closing() -> None:
    """A queued call that faults at the end, and a session that closes inside, are counted."""
    text = "int f(int n)\n{\n  if (n)\n    __builtin_trap();\n  return 1;\n}\n"
    with covp.Session("cortex-m4") as session:
        f = session.load_c(text, flags=("-O0",))["f"]
        with pytest.raises(DeviceFault), Coverage(session) as c:
            f(0)
            f(1)
        assert list(c.lines(only(c.data)).values())[:2] == [2, 2]
        assert session.image_watchers == []
        with Coverage(session) as late:
            f(0).result()
            session.close()
        assert late.functions(only(late.data)) == {"f": 1}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_assembly(platform: str, tmp_path: Path) -> None:
    source = tmp_path / "half.S"
    source.write_text(ASSEMBLY)
    loop = ASSEMBLY.splitlines().index("    j 1b" if platform == "riscv32" else "    b 1b") + 1
    for toolchain in toolchains(platform):
        with covp.Session(platform, toolchain=toolchain) as session:
            half = session.load_c(source).image.elf.symbols["half"].value
            with Coverage(session) as c:
                assert session.call(half, 9) == 4
            assert c.functions(source) == {"half": 1}
            assert c.lines(source)[loop] == 4
            listing = c.listing("half").splitlines()
            counts = [int(line.split()[0]) for line in listing[1:]]
            assert listing[0] == f"half: {len(counts)} of {len(counts)} instructions ran"
            assert sorted(set(counts)) == [1, 4, 5]
            assert "1 taken, 4 not taken" in c.listing("half")


def test_the_same_text_is_one_file() -> None:
    """On another platform and in another process: named by its content, not by the cache."""
    total = CoverageData()
    for platform in PLATFORMS:
        with covp.Session(platform) as session, Coverage(session) as c:
            session.load_c(LOOP)["count"](3, 1).result()
        total.add(c.data)
    assert total.functions(only(total)) == {"count": 3, "tick": 0}
    assert total.texts == {only(total): LOOP}


def test_what_cannot_be_covered() -> None:
    with covp.Session("host", device="host") as session:
        with pytest.raises(UsageError, match="virtual device"):
            Coverage(session)
        with pytest.raises(UsageError, match="virtual device"):
            collect(session)
    with covp.Session("riscv32") as session, Coverage(session) as c:
        session.load_c(LOOP)["count"](3, 1).result()
        with pytest.raises(UsageError, match="no code of such a file"):
            c.lines("modul.c")
        with pytest.raises(UsageError, match="counter"):
            c.listing("counter")
