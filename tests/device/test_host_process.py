"""The process of device host: what a program does to its descriptors and its children."""

import os
import platform
import sys
import time
from pathlib import Path

import pytest

import covp
from covp.runtime.session import Session

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="needs Linux on x86-64"
)

SOURCE = """
#include <stdint.h>
/* Linux' 64-bit system calls, from code with 32-bit pointers */
static int64_t call3(int64_t number, int64_t a, int64_t b, int64_t c)
{
    int64_t result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}
static const char text[64] = "a program that prints, much longer than a report";
int print(int descriptor, int times)
{
    int64_t done = 0;
    for (int i = 0; i < times; ++i)
        done += call3(1, descriptor, (int64_t)(uintptr_t)text, sizeof text);
    return (int)(done / times);
}
int take(void) { char c; return (int)call3(0, 0, (int64_t)(uintptr_t)&c, 1); }
int close_standard(void)
{
    return (int)(call3(3, 0, 0, 0) | call3(3, 1, 0, 0) | call3(3, 2, 0, 0));
}
/* a child that waits for ever; its id */
int fork_one(void)
{
    int64_t pid = call3(57, 0, 0, 0);
    if (pid == 0)
        for (;;)
            call3(34, 0, 0, 0);
    return (int)pid;
}
int add(int a, int b) { return a + b; }
"""


@pytest.mark.parametrize("descriptor", [1, 2])
def test_printing_does_not_break_the_report(descriptor: int) -> None:
    """2,000 lines fill any pipe."""
    with Session("host", device="host") as session:
        module = session.load_c(SOURCE)
        assert module["print"](descriptor, 2000).result() == 64
        assert module["add"](20, 22).result() == 42


def test_reading_and_closing_standard_streams() -> None:
    with Session("host", device="host") as session:
        module = session.load_c(SOURCE)
        assert module["take"]().result() == 0
        assert module["close_standard"]().result() == 0
        assert module["add"](20, 22).result() == 42


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_forked_child_ends_with_the_session() -> None:
    with Session("host", device="host") as session:
        child = session.load_c(SOURCE)["fork_one"]().result()
        assert isinstance(child, int)
        assert is_running(child)
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)


def test_a_forked_child_ends_with_a_process_that_faulted() -> None:
    source = SOURCE + "int bad(void) { int pid = fork_one(); __builtin_trap(); return pid; }"
    before = {name for name in os.listdir("/proc") if name.isdigit()}
    with Session("host", device="host") as session:
        with pytest.raises(covp.DeviceFault):
            session.load_c(source)["bad"]().result()
        deadline = time.monotonic() + 10
        while runners(before) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not runners(before)


def runners(before: set[str]) -> list[str]:
    """Processes of device host that were started since, by their ids."""
    found = []
    for name in set(os.listdir("/proc")) - before:
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            # those of other tests have another parent's id as first argument
            words = line.split(b"\0")
            if b"/host-" in words[0] and words[1] == str(os.getpid()).encode():
                found.append(name)
    return [name for name in found if is_running(int(name))]
