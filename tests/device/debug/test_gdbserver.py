"""The real GDB at a virtual device: what a person who debugs a program sees."""

from __future__ import annotations

import re
import signal
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from covp.device.debug.target import HaltReason
from covp.hardware.serial_port import SerialPort

from .gdb_bench import Bench, gdb_command, line, open_bench, run_gdb

EVERY = [(p, t) for p in ("stm32f746", "riscv32") for t in ("zig", "gcc")]
RESULT = {"arm": "r0", "riscv": "a0"}


@pytest.fixture(params=EVERY, ids="-".join)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with open_bench(*request.param) as opened:
        yield opened


@pytest.fixture(params=["stm32f746", "riscv32"])
def one(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Where the compiler makes no difference."""
    with open_bench(request.param, "zig") as opened:
        yield opened


def frames(backtrace: str) -> list[tuple[str, str]]:
    """(function, file:line) of each frame."""
    pattern = r"#\d+\s+(?:0x\w+ in )?(\w+) \(.*?\) at \S*?(\w+\.\w+:\d+)"
    return re.findall(pattern, backtrace)


def test_load_writes_what_is_in_the_file(bench: Bench) -> None:
    answer = bench.gdb("compare-sections", "print/x $pc", "info symbol $pc")
    assert answer[0].count(": matched.") >= 3 and "MIS-MATCHED" not in answer[0]
    assert answer[2].startswith("covp_reset in section")


def test_break_by_line_shows_where_it_is(bench: Bench) -> None:
    answer = bench.gdb(
        f"break {line('add')}", "continue", "backtrace", "print y", "up", "print i", "info locals"
    )
    assert f"Breakpoint 1, square (x=3) at {program(answer[1])}" in answer[1]
    assert frames(answer[2])[:3] == [
        ("square", line("add")), ("sum_squares", line("call")), ("main", next_line("main")),
    ]  # fmt: skip
    assert answer[3] == "$1 = 9"
    assert answer[5] == "$2 = 0"
    assert sorted(answer[6].splitlines()) == ["i = 0", "sum = 0"]


def test_a_breakpoint_counts_every_time(bench: Bench) -> None:
    answer = bench.gdb(
        f"break {line('add')} if x == 4", "continue", "info breakpoints", "print total"
    )
    assert "square (x=4)" in answer[1]
    assert answer[3] == "$1 = 10"  # 3 * 3 + 1 * 1


def test_step_goes_into_next_goes_over(bench: Bench) -> None:
    answer = bench.gdb(
        "break main", "continue", "next", "step", "bt", "next", "next", "step", "bt", "info source"
    )
    assert [name for name, _ in frames(answer[4])][:2] == ["sum_squares", "main"]
    assert frames(answer[4])[0] == ("sum_squares", line("start"))
    assert frames(answer[8])[:2] == [("square", line("square")), ("sum_squares", line("call"))]


def test_finish_gives_the_result_and_until_leaves_the_loop(bench: Bench) -> None:
    answer = bench.gdb(
        "break square",
        "continue",
        "finish",
        "delete",
        f"until {line('summed')}",
        "print sum",
        "print total",
        "finish",
    )
    assert "Value returned is $1 = 9" in answer[2]
    assert line("summed").split(":")[1] in answer[4]
    assert answer[5] == "$2 = 27" and answer[6] == "$3 = 27"
    assert "Value returned is $4 = 27" in answer[7]


def test_next_over_a_long_line(bench: Bench) -> None:
    answer = bench.gdb(f"break {line('long')}", "continue", "next", "print sum")
    assert "total < 0" in answer[2]
    assert answer[3] == f"$1 = {27 + 50}"


def test_watchpoints(bench: Bench) -> None:
    answer = bench.gdb(
        "break main", "continue", "watch total", "continue", "continue", "delete",
        "rwatch table[2]", "continue", "print i", "up 0", "delete", "awatch total", "continue",
        "continue",
    )  # fmt: skip
    assert re.search(r"Old value = 0\s+New value = 9", answer[3])
    assert re.search(r"Old value = 9\s+New value = 10", answer[4])
    assert "square (x=1)" in answer[4]
    assert "Value = 4" in answer[7] and "sum_squares" in answer[7]
    assert answer[8] == "$1 = 2"
    assert "Value = 10" in answer[12]
    assert re.search(r"Old value = 10\s+New value = 26", answer[13])


def test_a_watchpoint_counts_in_next(bench: Bench) -> None:
    answer = bench.gdb(
        "break sum_squares", "continue", "watch total", "next", "next", "next", "next"
    )
    assert any(re.search(r"Old value = 0\s+New value = 9", answer[n]) for n in (3, 4, 5))


def test_registers_and_variables_can_be_changed(bench: Bench) -> None:
    register = {"arm": "r5", "riscv": "t3"}[bench.target.architecture]
    answer = bench.gdb(
        f"set ${register} = 0x12345678", f"print/x ${register}", "break square", "continue",
        "delete", "return 100", "backtrace", f"tbreak {line('result')}", "set var table[1] = 6",
        "continue", "print total", f"tbreak {line('summed')}", "continue", "print sum",
    )  # fmt: skip
    assert answer[1] == "$1 = 0x12345678"
    assert frames(answer[6])[0][0] == "sum_squares"
    assert answer[10] == "$2 = 36"  # the first call was taken away
    assert answer[13] == f"$3 = {100 + 36 + 16 + 1}"  # and gave 100


def test_floats(bench: Bench) -> None:
    answer = bench.gdb(
        "tbreak sum_squares",
        "print ratio",
        "continue",
        "print ratio",
        "set var ratio = 0.25",
        "print ratio * 3",
    )
    assert [answer[n] for n in (3, 5)] == ["$2 = 3", "$3 = 0.75"]


@pytest.mark.parametrize("platform", ["stm32f746", "riscv32f", "cortex-m0plus", "cortex-m33"])
def test_every_register_is_the_device_s(platform: str) -> None:
    with open_bench(platform, "zig") as bench:
        target = bench.target
        arm = target.architecture == "arm"
        names = ["r0", "r7", "r12", "sp", "lr", "pc"] if arm else ["ra", "sp", "a3", "t6", "pc"]
        for position, name in enumerate(names):
            target.write_register(name, 0x20000100 + 0x1010 * position)
        commands = [f"print/x (unsigned)${name}" for name in names]
        if target.device.platform.core.has("fpu"):
            for position in range(4):
                bits = int.from_bytes(struct.pack("<f", position + 0.5), "little")
                target.write_register(f"{'s' if arm else 'f'}{position}", bits)
            names += [f"{'s' if arm else 'ft'}{position}" for position in range(4)]
            commands += [f"print ${name}" for name in names[-4:]]
            commands += ["print/x $d1" if arm else "print/x $fa0"]
            commands += ["set $d1 = 1.0" if arm else "set $fs0 = 1.0"]
        answer = bench.gdb(*commands, load=False)
        for position, shown in enumerate(answer.parts[: len(names)]):
            if names[position].strip("0123456789") in ("s", "ft"):
                wanted = f"{position - len(names) + 4.5:g}"
            else:
                wanted = f"{0x20000100 + 0x1010 * position:#x}"
            assert shown == f"${position + 1} = {wanted}", names[position]
        if arm and target.device.platform.core.has("fpu"):
            assert (target.read_register("s2"), target.read_register("s3")) == (0, 0x3FF00000)
        elif target.device.platform.core.has("fpu"):
            assert target.read_register("f8") == 0x3F800000


def test_every_register_can_be_listed(one: Bench) -> None:
    answer = one.gdb("info all-registers", "maint print reggroups", load=False)
    shown = [text.split()[0] for text in answer[0].splitlines() if text.split()]
    wanted = ["r12", "xpsr", "d15", "s31", "fpscr", "psp", "basepri"]
    if one.target.architecture == "riscv":
        wanted = ["zero", "t6", "pc", "mstatus", "mcause", "mcycle"]
    assert not set(wanted) - set(shown)


def test_memory_and_peripherals(one: Bench) -> None:
    name = "uart0" if one.target.architecture == "riscv" else "usart1"
    base, port = one.target.device.peripherals[name]
    # STATUS and TX of covp's own port; BRR and TDR of the STM32's, which sends when it is set up
    read, written = (8, 0) if name == "uart0" else (0x0C, 0x28)
    if name == "usart1":
        _, rcc = one.target.device.peripherals["rcc"]
        rcc.write_register(0x44, 4, 1 << 4)  # USART1EN
        port.write_register(0x0C, 4, 0x3AA)
        port.write_register(0x00, 4, 9)
    ram = one.target.device.platform.ram.start
    answer = one.gdb(
        f"x/wx {base + read:#x}", f"set {{unsigned}}{base + written:#x} = 0x41", f"x/2hx {ram:#x}",
        f"set {{short}}{ram + 2:#x} = -2", f"x/wx {ram:#x}", "x/wx 0x60000000", "info mem",
    )  # fmt: skip
    assert answer[0].endswith("0x00000001" if name == "uart0" else "0x000003aa")
    assert isinstance(port, SerialPort) and port.text == "A"
    assert answer[4].endswith("0xfffe0000")
    assert "Cannot access memory at address 0x60000000" in answer.console
    assert "flash blocksize 0x400" in answer[6]


def test_monitor(one: Bench) -> None:
    answer = one.gdb(
        "monitor instructions", "break main", "continue", "monitor instructions", "monitor cycles",
        "monitor reset halt", "maintenance flush register-cache", "info symbol $pc",
        "monitor help", "monitor halt", "monitor peripherals", "monitor fautl",
    )  # fmt: skip
    counts = re.findall(r"(\d+) instructions, (\d+) since last asked", answer.console)
    assert counts[0] == ("0", "0") and counts[1][0] == counts[1][1] != "0"
    assert int(counts[1][0]) <= one.target.device.instructions
    assert re.search(r"[1-9]\d+ cycles", answer.console)
    assert answer[7].startswith("covp_reset in section")
    assert re.search("uart0|usart1", answer.console) and "did you mean fault?" in answer.console


def test_reset_runs_the_program_again(one: Bench) -> None:
    answer = one.gdb(
        f"break {line('return')}",
        "continue",
        "print total",
        "monitor reset",
        "maintenance flush register-cache",
        "continue",
        "print total",
    )
    assert answer[2] == "$1 = 27" and answer[6] == "$2 = 27"
    assert "Breakpoint 1, main" in answer[5]


def test_run_restarts_in_extended_mode(one: Bench) -> None:
    answer = run_gdb(
        one.elf, f"target extended-remote {one.where}", "load", f"break {line('return')}",
        "run", "print total", "run", "print total", "kill", "run", "print total",
    )  # fmt: skip
    assert [answer[n] for n in (4, 6, 9)] == ["$1 = 27", "$2 = 27", "$3 = 27"]


def test_a_fault_is_shown_with_covp_s_words(bench: Bench) -> None:
    answer = bench.gdb(
        "break main", "continue", "print poke(0x60000000)", "backtrace", "monitor fault"
    )
    assert "received signal SIGSEGV" in answer[2] + answer.console
    fault = re.search(
        r"covp: (unmapped write at address 0x60000000 \(4 bytes\), pc .*)", answer.console
    )
    assert fault and "in poke+0x" in fault[1] and f"({line('poke')})" in fault[1]
    assert answer.console.count(fault[1]) == 2
    assert frames(answer[3])[0] == ("poke", line("poke"))


def test_an_illegal_instruction_is_sigill(one: Bench) -> None:
    word = {"arm": "0xde00", "riscv": "0"}[one.target.architecture]
    ram = one.target.device.platform.ram
    answer = one.gdb(
        f"set {{short}}{ram.end - 64:#x} = {word}", f"set $pc = {ram.end - 64:#x}", "continue"
    )
    assert "SIGILL" in answer[2]
    assert "covp: illegal instruction" in answer.console


TICKING = """
#include <stdint.h>
volatile uint32_t ticks, work;
void SysTick_Handler(void) { ticks++; }
int main(void)
{
    *(volatile uint32_t *)0xE000E014 = 99; /* SYST_RVR */
    *(volatile uint32_t *)0xE000E018 = 0;  /* SYST_CVR */
    *(volatile uint32_t *)0xE000E010 = 7;  /* SYST_CSR: on, with its interrupt */
    while (ticks < 3) work++;
    return ticks;
}
"""


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_backtrace_through_an_interrupt(tmp_path: Path, toolchain: str) -> None:
    source = tmp_path / "ticking.c"
    source.write_text(TICKING)
    with open_bench("stm32f746", toolchain, source) as bench:
        answer = bench.gdb(
            "break SysTick_Handler", "continue", "backtrace", "finish", "print ticks"
        )
    assert [name for name, _ in frames(answer[2])][:2] == ["SysTick_Handler", "main"]
    assert "<signal handler called>" in answer[2]
    assert "main () at" in answer[3] and answer[4] == "$1 = 1"


def test_ctrl_c_stops_an_endless_loop(bench: Bench) -> None:
    commands = [
        "break main",
        f"target remote {bench.where}",
        "load",
        "continue",
        "jump spin",
        "backtrace",
        "print total > 0",
    ]
    process = subprocess.Popen(
        gdb_command(bench.elf, *commands), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        functions = bench.target.device.board.names.symbols.functions()
        start, end = next(f[:2] for f in functions if f[2] == "spin")
        while bench.target.is_halted or not start <= bench.target.read_register("pc") < end:
            assert process.poll() is None, process.communicate()
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert "Program received signal SIGINT" in output
    assert ("spin", line("spin")) in frames(output) or ("spin", previous_line("spin")) in frames(
        output
    )
    assert "$1 = 1" in output


def test_detach_lets_it_run_on_and_attach_stops_it(one: Bench) -> None:
    answer = one.gdb("break main", "continue", "detach")
    assert "detached" in answer[2]
    assert not one.target.is_halted
    answer = one.gdb("print total", "print (int)covp_exit_status", "info symbol $pc", load=False)
    assert answer[0] == "$1 = 27" and answer[1] == f"$2 = {27 + 50}"
    assert answer[2].startswith("covp_exit")
    assert not one.target.is_halted  # the end of a batch detaches


def test_kill_resets(one: Bench) -> None:
    one.gdb("break main", "continue", "kill")
    assert one.target.is_halted and one.target.reason is HaltReason.RESET


def program(answer: str) -> str:
    """The path of program.c as GDB shows it, with the line."""
    found = re.search(r"\S*program\.c:\d+", answer)
    return found[0] if found else "nowhere"


def next_line(remark: str) -> str:
    name, number = line(remark).split(":")
    return f"{name}:{int(number) + 1}"


def previous_line(remark: str) -> str:
    name, number = line(remark).split(":")
    return f"{name}:{int(number) - 1}"
