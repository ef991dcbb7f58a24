"""Speed of emulated models: covp's virtual device, the same without inlined calls, and QEMU.

Used by emulation_speed.py. Million instructions a second of CPU time spent in executions, the best
of several interleaved runs. "plain" is the virtual device with Unicorn's translated code as it is,
"edges" the time with the targets of returns and register jumps counted as well, as a ratio.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from typing import Any

import covp.device.machine.counter as counter
from covp.device.virtual import VirtualDevice
from covp.errors import CovpError
from covp.evaluation import Build, Runner, Sample, build
from covp.runtime.abi import word_task
from covp.runtime.graph_module import void_call

MODELS = ("kws", "resnet")
CASES = (
    ("riscv32", "qemu-riscv32"),
    ("cortex-m0plus", None),
    ("cortex-m4", "mps2-an386"),
    ("cortex-m7", "mps2-an500"),
    ("cortex-m33", None),
)
"""Platforms, and for QEMU those with the same core on a machine that it emulates."""
INSTRUCTIONS = 60e6  # of a run that is measured, about
QEMU_INFERENCES = 50


@dataclass
class Emulated:
    """A model on a virtual device of its own; the CPU time of the executions of one inference."""

    runner: Runner
    sample: Sample
    seconds: float = 0.0

    @classmethod
    def of(cls, built: Build, sample: Sample, inlining: bool) -> Emulated:
        """With inlined calls or without; warmed up."""
        counter.INLINING = inlining
        try:
            emulated = cls(Runner(built), sample)
        finally:
            counter.INLINING = True
        device = emulated.device
        execute = device.execute

        def timed(*arguments: Any, **options: Any) -> Any:
            begin = time.process_time()
            stop = execute(*arguments, **options)
            emulated.seconds += time.process_time() - begin
            return stop

        device.execute = timed  # type: ignore[method-assign]
        emulated.run()
        return emulated

    @property
    def device(self) -> VirtualDevice:
        device = self.runner.session.device
        assert isinstance(device, VirtualDevice)
        return device

    @property
    def instructions(self) -> int:
        return self.runner.session.profile().instructions or 0

    def run(self, times: int = 1) -> float:
        """CPU seconds of one of so many inferences."""
        self.seconds = 0.0
        for _ in range(times):
            self.runner.run(self.sample)
        return self.seconds / times


def infer(runner: Runner, times: int) -> None:
    """Many inferences in one execution, on whatever lies in the arena."""
    module = runner._module
    function = module.program.run_function
    symbols = module._demand_image().elf.symbols
    arena = symbols[module.program.arena_symbol].address
    task = word_task(symbols[function].value, (arena,))
    runner.session.queue.run([void_call(function, task) for _ in range(times)])


def qemu_seconds(built: Build, sample: Sample, times: int) -> float:
    """CPU seconds of one inference in QEMU: of sessions that differ by so many.

    They are one execution: QEMU translates anew after a breakpoint was set.
    """
    spent = []
    for runs in (1, 1 + times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        with Runner(built, "gdb:qemu") as runner:
            runner.run(sample)
            infer(runner, runs)
        spent.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return (spent[1] - spent[0]) / times


def qemu_speed(model: str, platform: str | None, rounds: int) -> float | None:
    """Million instructions a second, or None without such a QEMU."""
    if platform is None:
        return None
    built = build(model, platform)
    sample = Sample.random(built.graph).unchecked()
    with Runner(built) as runner:
        instructions = runner.run(sample).profile.instructions or 0
    try:
        best = min(qemu_seconds(built, sample, QEMU_INFERENCES) for _ in range(rounds))
    except CovpError as error:
        print(f"{platform}: {error}")
        return None
    return instructions / best / 1e6


def measured(model: str, platform: str, machine: str | None, rounds: int) -> dict[str, Any]:
    """One row."""
    built = build(model, platform)
    sample = Sample.random(built.graph).unchecked()
    inlined, plain = (Emulated.of(built, sample, inlining) for inlining in (True, False))
    with inlined.runner, plain.runner:
        times = max(1, round(INSTRUCTIONS / inlined.instructions))
        best = {"covp": 1e9, "plain": 1e9, "edges": 1e9}
        for _ in range(rounds):
            for name, emulated in (("covp", inlined), ("plain", plain), ("edges", inlined)):
                emulated.device.core.counter.trace_edges(name == "edges")
                emulated.run()
                best[name] = min(best[name], emulated.run(times))
        inlined.device.core.counter.trace_edges(False)
        count = inlined.instructions
    other = qemu_speed(model, machine, rounds)
    return {
        "model": model,
        "platform": platform,
        "core": built.platform.core.name,
        "compiler": inlined.runner.session.toolchain.version,
        "instructions": count,
        "covp": round(count / best["covp"] / 1e6),
        "plain": round(count / best["plain"] / 1e6),
        "edges": round(best["edges"] / best["covp"], 3),
        "qemu": other and round(other),
    }


def models(rounds: int) -> list[dict[str, Any]]:
    """Measure and print all rows."""
    print(
        f"\n{'core':10} {'model':8} {'plain':>7} {'covp':>7} {'QEMU':>6}   Minstr/s  / plain edges"
    )
    rows = []
    for platform, machine in CASES:
        for model in MODELS:
            row = measured(model, platform, machine, rounds)
            rows.append(row)
            print(
                f"{row['core']:10.10} {model:8} {row['plain']:7} {row['covp']:7} "
                f"{row['qemu'] or '-':>6}            {row['covp'] / row['plain']:6.2f}  "
                f"{row['edges']:.2f}",
                flush=True,
            )
    return rows
