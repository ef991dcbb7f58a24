"""What kernels cost in tests: calls, Hypothesis examples, restored snapshots, checks.

    python benchmarks/laboratory.py [--rounds 7] [--json FILE]

Everything is CPU time, ours and that of processes that a reference starts, the best of interleaved
rounds: the ratios hold on other machines. Calls of a kernel of about 1000 instructions (a dot
product of int8 vectors, numpy arrays in) in a plain loop, and in Hypothesis examples that go back
to a snapshot before each call, beside the same C on the host through CFFI and under QEMU's user
mode, where they are installed (laboratory_references.py). Snapshots by the pages that a kernel
stored to, beside a copy of all memory. The sanitizer in time, the checks of undefined behaviour in
instructions, for that kernel and a whole model. Targets: 10,000 calls and 2,000 examples a second,
20 microseconds for a snapshot, the sanitizer at most 8 times as slow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from document import write_document
from hypothesis import HealthCheck, Phase, given, settings
from laboratory_references import (
    SOURCE,
    Dot,
    Vectors,
    by_processes,
    host_dot,
    qemu_program,
    through_pipes,
)
from numpy.typing import NDArray

import covp
from covp.chip.platform_file import load_platform
from covp.testing import Kernel
from covp.testing.arrays import arrays

ROUNDS = 7
PLATFORMS = ("cortex-m4", "cortex-m0plus", "riscv32")
INSTRUCTIONS = 1000
MODEL = "kws"
PAGES = (1, 4, 16, 64)
_LOOP, _PROCESSES, _EXAMPLES = 1000, 20, 500
_TOUCH = """
#include <stdint.h>
void touch(volatile uint8_t *p, int32_t pages)
{
    for (int32_t i = 0; i < pages; i++)
        p[4096 * i]++;
}
"""
Row = dict[str, Any]


def seconds_of(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def best(rounds: int, *works: Callable[[], float] | None) -> list[float | None]:
    """The least of each, in rounds of all of them."""
    found: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for times, work in zip(found, works, strict=True):
            if work is not None:
                times.append(work())
    return [min(times) if times else None for times in found]


def rate(seconds: float | None) -> int | None:
    """How often a second, to three digits."""
    return None if seconds is None else int(float(f"{1 / seconds:.3g}"))


def opened(platform: str, sanitize: bool = False, ubsan: bool = False) -> Kernel:
    """The dot product, in a session of its own."""
    session = covp.Session(platform, sanitize=sanitize, ubsan=ubsan)
    return Kernel(session.load_c(SOURCE)["dot"])


def vectors_for(kernel: Kernel) -> Vectors:
    """Vectors for about `INSTRUCTIONS` instructions."""
    rng = np.random.default_rng(1)
    long = rng.integers(-128, 128, (2, 400)).astype(np.int8)
    kernel(long[0], long[1], 400)
    count = round(400 * INSTRUCTIONS / (kernel.latest.instructions or 1))
    a, b = long[0, :count].copy(), long[1, :count].copy()
    assert kernel(a, b, count) == a.astype(int) @ b
    return a, b


def loop(call: Dot, vectors: Vectors, calls: int) -> float:
    """CPU seconds of a call in a plain loop."""
    a, b = vectors
    n = len(a)

    def work() -> None:
        for _ in range(calls):
            call(a, b, n)

    return seconds_of(work) / calls


def calls(rounds: int, folder: Path) -> list[Row]:
    """Calls a second, ours and the references'."""
    host, rows = host_dot(folder), []
    for platform in PLATFORMS:
        kernel = opened(platform)
        vectors = vectors_for(kernel)
        architecture = load_platform(platform).core.architecture
        qemu = qemu_program(architecture, len(vectors[0]), folder)
        ours, theirs, pipes, processes = best(
            rounds,
            lambda k=kernel, v=vectors: loop(k, v, _LOOP),  # type: ignore[misc]
            (lambda v=vectors: loop(host, v, _LOOP)) if host else None,  # type: ignore[misc]
            (lambda q=qemu, v=vectors: through_pipes(q, v, _LOOP)) if qemu else None,  # type: ignore[misc]
            (lambda q=qemu, v=vectors: by_processes(q, v, _PROCESSES)) if qemu else None,  # type: ignore[misc]
        )
        row = {"what": "calls", "platform": platform, "instructions": kernel.latest.instructions}
        row |= {"ours": rate(ours), "cffi": rate(theirs), "qemu": rate(pipes)}
        rows.append(row | {"qemu_processes": rate(processes)})
        print(rows[-1])
        kernel.session.close()
    return rows


def examples(rounds: int, folder: Path) -> list[Row]:
    """Hypothesis examples a second: ours go back to a snapshot before each."""
    host, rows = host_dot(folder), []
    for platform in PLATFORMS:
        kernel = opened(platform)
        count = len(vectors_for(kernel)[0])
        state = kernel.session.snapshot()

        def ours(a: NDArray[np.int8], b: NDArray[np.int8], n: int) -> object:
            kernel.session.restore(state)  # noqa: B023
            return kernel(a, b, n)  # noqa: B023

        times = best(
            rounds,
            lambda o=ours, c=count: _given(o, c),  # type: ignore[misc]
            (lambda c=count: _given(host, c)) if host else None,  # type: ignore[misc]
            lambda c=count: _given(None, c),  # type: ignore[misc]
        )
        row = {"what": "examples", "platform": platform}
        rows.append(row | dict(zip(("ours", "cffi", "empty"), map(rate, times), strict=True)))
        print(rows[-1])
        kernel.session.close()
    return rows


def _given(call: Dot | None, count: int) -> float:
    """CPU seconds of an example; None: of one without a call."""

    @settings(max_examples=_EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(a=arrays("int8", count), b=arrays("int8", count))
    def check(a: NDArray[np.int8], b: NDArray[np.int8]) -> None:
        assert call is None or call(a, b, count) == a.astype(np.int32) @ b

    return seconds_of(check) / _EXAMPLES


def snapshots(rounds: int) -> list[Row]:
    """Microseconds to go back, by the pages stored to, and to copy all memory instead."""
    rows = []
    for platform in PLATFORMS:
        with covp.Session(platform) as session:
            touch = Kernel(session.load_c(_TOUCH)["touch"])
            room = session.platform.ram.bytes // 4096 - 4
            buffer = session.tensor(np.zeros(min(room, max(PAGES)) * 4096, np.uint8))
            memories = session.device.board.memories  # type: ignore[attr-defined]
            for pages in [pages for pages in PAGES if pages <= room]:
                state = session.snapshot()
                ours, copies = best(
                    rounds,
                    lambda p=pages, s=state, t=touch, b=buffer: _restore(t, b, p, s),  # type: ignore[misc]
                    lambda m=memories: seconds_of(lambda: [one.content.copy() for one in m]),  # type: ignore[misc]
                )
                assert ours is not None and copies is not None
                row = {"what": "restore", "platform": platform, "pages": pages}
                rows.append(row | {"ours": round(ours * 1e6, 1), "copy": round(copies * 1e6)})
                print(rows[-1])
    return rows


def _restore(touch: Kernel, buffer: Any, pages: int, state: Any) -> float:
    spent = []
    for _ in range(200):
        touch(buffer, pages)
        spent.append(seconds_of(lambda: touch.session.restore(state)))
    return sum(sorted(spent)[:100]) / 100


def checks(rounds: int) -> list[Row]:
    """Times of the sanitizer, and instructions of the checks of undefined behaviour."""
    rows = []
    for platform in PLATFORMS:
        plain, sanitized = opened(platform), opened(platform, sanitize=True)
        vectors = vectors_for(plain)
        off, on = best(
            rounds,
            lambda k=plain, v=vectors: loop(k, v, _LOOP),  # type: ignore[misc]
            lambda k=sanitized, v=vectors: loop(k, v, _LOOP),  # type: ignore[misc]
        )
        ubsan = opened(platform, ubsan=True)
        loop(ubsan, vectors, 1)
        rows.append(_checked("dot", platform, off, on, plain.latest, ubsan.latest))
        for kernel in (plain, sanitized, ubsan):
            kernel.session.close()
        rows.append(_model(platform, rounds))
        print(*rows[-2:], sep="\n")
    return rows


def _model(platform: str, rounds: int) -> Row:
    program = covp.compile(MODEL, platform)
    inputs = [np.zeros(one.shape, one.dtype) for one in program.inputs]
    sessions = [
        covp.Session(platform),
        covp.Session(platform, sanitize=True),
        covp.Session(platform, ubsan=True),
    ]
    modules = [session.load(program) for session in sessions]
    for module in modules:
        module.run(*inputs)
    off, on = best(
        rounds,
        lambda: seconds_of(lambda: modules[0].run(*inputs)),
        lambda: seconds_of(lambda: modules[1].run(*inputs)),
    )
    costs = [session.profile() for session in sessions]
    for session in sessions:
        session.close()
    return _checked(MODEL, platform, off, on, costs[0], costs[2])


def _checked(what: str, platform: str, off: Any, on: Any, plain: Any, ubsan: Any) -> Row:
    return {
        "what": "checks", "program": what, "platform": platform,
        "sanitized": round(on / off, 2),
        "ubsan": round(ubsan.instructions / plain.instructions, 2),
    }  # fmt: skip


def missed(rows: list[Row]) -> list[Row]:
    """Those that do not reach a target."""
    return [
        row
        for row in rows
        if (row["what"] == "calls" and row["ours"] < 10_000)
        or (row["what"] == "examples" and row["ours"] < 2_000)
        or (row["what"] == "restore" and row["pages"] <= 4 and row["ours"] > 20)
        or (row["what"] == "checks" and row["sanitized"] > 8)
    ]


def main() -> int:
    """Exit status 1 where a target was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rounds = options.rounds
    with tempfile.TemporaryDirectory() as folder:
        rows = [*calls(rounds, Path(folder)), *examples(rounds, Path(folder))]
    rows += [*snapshots(rounds), *checks(rounds)]
    if options.json:
        write_document(options.json, rows)
    for row in missed(rows):
        print(f"missed: {row}")
    return int(bool(missed(rows)))


if __name__ == "__main__":
    sys.exit(main())
