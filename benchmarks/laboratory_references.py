"""References of benchmarks/laboratory.py: the same C function through CFFI, and under QEMU.

CFFI (`pip install cffi`, ABI mode) calls a shared library that GCC made for the host. QEMU's user
mode (Debian's qemu-user) runs a static program for Linux on the core's instruction set, which the
bundled compiler makes with musl: it reads arguments from a pipe and writes results to another, or
starts anew for each call.
"""

from __future__ import annotations

import importlib
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SOURCE = """
#include <stdint.h>
int32_t dot(const int8_t *a, const int8_t *b, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}
"""
_SERVER = """
#include <unistd.h>
int main(void)
{
    static int8_t x[2 * COUNT];
    while (read(0, x, sizeof x) == sizeof x) {
        int32_t sum = dot(x, x + COUNT, COUNT);
        if (write(1, &sum, sizeof sum) != sizeof sum) return 1;
    }
    return 0;
}
"""
_QEMU = {
    "arm": ("qemu-arm", "arm-linux-musleabi", "-mcpu=cortex_a7"),
    "riscv": ("qemu-riscv32", "riscv32-linux-musl", "-mcpu=generic_rv32+m+a+c"),
}
Vectors = tuple[NDArray[np.int8], NDArray[np.int8]]
Dot = Callable[[NDArray[np.int8], NDArray[np.int8], int], object]


def host_dot(folder: Path) -> Dot | None:
    """The function on this machine, through CFFI; None where that or GCC is not installed."""
    try:
        cffi = importlib.import_module("cffi")
    except ModuleNotFoundError:
        return None
    if shutil.which("gcc") is None:
        return None
    source, library = folder / "dot.c", folder / "dot.so"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    ffi = cffi.FFI()
    ffi.cdef("int32_t dot(const int8_t *a, const int8_t *b, int32_t n);")
    function = ffi.dlopen(str(library)).dot

    def call(a: NDArray[np.int8], b: NDArray[np.int8], n: int) -> object:
        return function(ffi.from_buffer("int8_t[]", a), ffi.from_buffer("int8_t[]", b), n)

    return call


def qemu_program(architecture: str, count: int, folder: Path) -> list[str] | None:
    """The command that runs the function's server; None where QEMU is not installed."""
    emulator, target, core = _QEMU[architecture]
    if shutil.which(emulator) is None:
        return None
    source, program = folder / "server.c", folder / f"server-{architecture}-{count}"
    source.write_text(f"#define COUNT {count}\n{SOURCE}{_SERVER}")
    options = ["-target", target, core, "-static", "-O2", "-o", str(program), str(source)]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *options], check=True)
    return [emulator, str(program)]


def through_pipes(command: list[str], vectors: Vectors, calls: int) -> float:
    """CPU seconds of a call, both processes together, of so many in one process of QEMU."""
    content, expected = _content(vectors)
    before, start = _children(), time.process_time()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(calls):
            process.stdin.write(content)
            process.stdin.flush()
            assert process.stdout.read(4) == expected
        process.stdin.close()
    return (_children() - before + time.process_time() - start) / calls


def by_processes(command: list[str], vectors: Vectors, calls: int) -> float:
    """CPU seconds of a call, of so many in a process of QEMU each."""
    content, expected = _content(vectors)
    before, start = _children(), time.process_time()
    for _ in range(calls):
        done = subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True)
        assert done.stdout == expected
    return (_children() - before + time.process_time() - start) / calls


def _content(vectors: Vectors) -> tuple[bytes, bytes]:
    """What a program reads, and what it has to write."""
    a, b = vectors
    return a.tobytes() + b.tobytes(), int(a.astype(int) @ b).to_bytes(4, "little", signed=True)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
