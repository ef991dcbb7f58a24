"""Pools of a program that has its session already: ``python pools.py DEVICE METHOD POOLS``.

Prints each result that is wrong or refused, of both processes and of the program itself.
"""

from __future__ import annotations

import multiprocessing
import sys

import numpy as np

import covp

CODE = """
#include <stdint.h>
static uint32_t sums[1024];
uint32_t mixed(const uint32_t *values, uint32_t count) {
    uint32_t result = 0;
    for (uint32_t i = 0, sum = 0; i < 1024; i++) sums[i] = sum += values[i % count] * i;
    for (uint32_t i = 0; i < 1024; i++) result ^= sums[i];
    return result;
}
"""
PLATFORMS = {"virtual": "riscv32", "rtl": "picorv32", "host": "host"}
DEVICE, METHOD, POOLS = sys.argv[1], sys.argv[2], int(sys.argv[3])
session = covp.Session(PLATFORMS[DEVICE], device=DEVICE)
mixed = session.load_c(CODE)["mixed"]


def values(number: int) -> np.ndarray:
    """An input of `mixed`."""
    return np.random.default_rng(number).integers(0, 1 << 32, 8, np.uint32)


def expected(number: int) -> int:
    """`mixed` by numpy, whose sums of uint32 are modulo 2**32, too."""
    factors = np.arange(1024, dtype=np.uint32)
    terms = np.resize(values(number), 1024) * factors
    return int(np.bitwise_xor.reduce(np.cumsum(terms, dtype=np.uint32)))


def on_device(number: int) -> str:
    """Nothing where the device is right."""
    try:
        found = mixed(session.tensor(values(number)), 8).result()
    except covp.CovpError as error:
        return f"{type(error).__name__}: {error}"
    return "" if found == expected(number) else f"wrong: {found} for input {number}"


def main() -> None:
    said: list[str] = []

    def report(answer: str, who: str) -> None:
        if answer:
            said.append(f"{who}: {answer}")

    context = multiprocessing.get_context(METHOD)
    for pool_number in range(POOLS):
        with context.Pool(2) as pool:
            inputs = range(pool_number * 100, pool_number * 100 + 20)
            answers = pool.map_async(on_device, inputs, chunksize=1)
            while not answers.ready():  # at the same time as the others
                report(on_device(99), "program")
            for answer in answers.get():
                report(answer, "pool")
    print(*said, sep="\n", end="")


if __name__ == "__main__":
    main()
