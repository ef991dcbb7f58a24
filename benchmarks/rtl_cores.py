"""Estimated cycles beside those of the cores' own RTL, for the whole of a model and each layer.

    python benchmarks/rtl_cores.py --cores cv32e40p ibex --models toycar kws [--json FILE]
    python -m benchmarks.rtl_cores --cores cv32e40p ibex --programs 100
    python -m benchmarks.rtl_cores --cores cv32e40p ibex --compiled 300 [--first 0]

Prints for every core and model: instructions (the virtual device's, which have to be those that the
RTL retires), cycles of the RTL, the timing model's estimate and its error, the worst error of a
layer of at least 1000 cycles, and million cycles per second of processor time that were simulated.
Needs ``pip install '.[rtl]'``. --platform takes platform files in place of cores, for wait states.

With --programs it takes so many random programs of each kind instead, those of the tests of timing
models: mixes of instructions, and look-ups in tables with misaligned accesses where the core allows
them, of which every second one has its wait states in flash alone.

With --compiled it takes programs of what compilers make (loops that are entered anywhere, branches
after loads, calls, switches), and prints for each core and number of wait states how many of them
have the RTL's cycles exactly, how many are more than 0.1 % off, and the worst.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from covp.chip.platform_file import Platform, load_platform
from covp.device.rtl.cores import rtl_names
from covp.evaluation import Sample, build
from covp.runtime.profile import Profile
from covp.runtime.session import Session

LEAST = 1000
"""Cycles of a layer below which its relative error says nothing."""


@dataclass(frozen=True)
class Row:
    """One model on one core.

    Attributes:
        instructions: by the virtual device.
        retired: by the RTL.
        rtl, estimate: cycles.
        layer: name and error of the layer with the largest one.
        megahertz: million cycles simulated per second of processor time.
        assumes: of both figures.
    """

    core: str
    model: str
    instructions: int
    retired: int
    rtl: int
    estimate: int
    layer: tuple[str, float]
    megahertz: float
    assumes: str

    @property
    def error(self) -> float:
        """Of the estimate."""
        return self.estimate / self.rtl - 1


def compare(platform: Platform, model: str) -> Row:
    """Run a model on the RTL of a platform's core and on the virtual device."""
    made = build(model, platform)
    sample = Sample.random(made.graph, 0)
    profiles: dict[str, Profile] = {}
    seconds = 0.0
    for device in ("virtual", "rtl"):
        with Session(platform, device=device) as session:
            module = session.load(made.program)
            before = time.process_time()
            module.run(*sample.inputs)
            seconds = time.process_time() - before
            profiles[device] = module.profile()
    rtl, virtual = profiles["rtl"], profiles["virtual"]
    errors = [
        (f"{ours.index} {ours.op}", theirs.cycles / ours.cycles - 1)
        for ours, theirs in zip(rtl.layers, virtual.layers, strict=True)
        if ours.cycles and theirs.cycles and ours.cycles >= LEAST
    ]
    return Row(
        core=platform.core.name,
        model=model,
        instructions=virtual.instructions or 0,
        retired=rtl.instructions or 0,
        rtl=rtl.cycles or 0,
        estimate=virtual.cycles or 0,
        layer=max(errors, key=lambda item: abs(item[1]), default=("", 0.0)),
        megahertz=(rtl.cycles or 0) / seconds / 1e6,
        assumes=platform.wait_states,
    )


def compare_programs(cores: Sequence[str], count: int) -> None:
    """Print the errors of random programs, for each core and number of wait states."""
    from tests.device.rtl.test_timing_models import WAITS, memory_cycles, mix_cycles

    print(f"{'core':14} {'waits':6} {'programs':9} {'worst':>8} {'mean':>8}  cycles of the worst")
    kinds = {"tables": memory_cycles, "mixes": mix_cycles}
    for core, waits, (kind, cycles) in itertools.product(cores, WAITS, kinds.items()):
        errors = []
        for seed in range(count):
            ours, theirs = cycles(core, seed, waits)
            errors.append((abs(ours / theirs - 1), ours, theirs))
        worst, ours, theirs = max(errors)
        mean = sum(error for error, *_ in errors) / count
        print(
            f"{core:14} {waits[0]}, {waits[1]}   {kind:9} {worst:8.3%} {mean:8.4%}  "
            f"{ours:,}, RTL {theirs:,}",
            flush=True,
        )


def compare_compiled(cores: Sequence[str], count: int, first: int) -> bool:
    """Print the errors of what compilers make; whether none is more than 0.1 % off."""
    from tests.device.rtl.test_compiled_programs import WAITS, WORST, compiled_cycles

    print(f"{'core':14} {'waits':6} {'programs':>8} {'exact':>6} {'beyond 0.1 %':>12} {'worst':>9}")
    good = True
    for core, waits in itertools.product(cores, WAITS):
        found = (compiled_cycles(core, seed, waits) for seed in range(first, first + count))
        errors = [ours / theirs - 1 for ours, theirs in found]
        exact, far = errors.count(0), sum(abs(error) > WORST for error in errors)
        print(
            f"{core:14} {waits[0]}, {waits[1]}   {count:8} {exact:6} {far:12} "
            f"{max(errors, key=abs):+9.3%}",
            flush=True,
        )
        good &= not far
    return good


def main() -> int:
    """Print the table; 1 where instructions differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    quick = [name for name in rtl_names() if name != "serv"]  # bit-serial: minutes a model
    parser.add_argument("--cores", nargs="+", default=quick, choices=rtl_names())
    parser.add_argument("--models", nargs="+", default=["toycar", "kws"], metavar="MODEL")
    parser.add_argument("--platform", nargs="+", metavar="FILE.yaml", help="in place of --cores")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows")
    parser.add_argument("--programs", type=int, metavar="N", help="random programs, no models")
    parser.add_argument("--compiled", type=int, metavar="N", help="programs as compilers make them")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="of these")
    arguments = parser.parse_args()
    if arguments.programs:
        compare_programs(arguments.cores, arguments.programs)
        return 0
    if arguments.compiled:
        return 0 if compare_compiled(arguments.cores, arguments.compiled, arguments.first) else 1
    rows = []
    print(
        f"{'core':14} {'model':9} {'instructions':>13} {'RTL cycles':>12} {'estimate':>12} "
        f"{'error':>8}  {'worst layer':32} {'MHz':>5}"
    )
    same = True
    for name in arguments.platform or arguments.cores:
        platform = load_platform(name)
        for model in arguments.models:
            row = compare(platform, model)
            rows.append({**asdict(row), "error": row.error})
            same &= row.instructions == row.retired
            note = "" if row.instructions == row.retired else f"  RTL retires {row.retired:,}"
            layer = f"{row.layer[1]:+.2%} {row.layer[0]}"
            print(
                f"{row.core:14} {row.model:9} {row.instructions:13,} {row.rtl:12,} "
                f"{row.estimate:12,} {row.error:+8.2%}  {layer:32} {row.megahertz:5.2f}"
                f"  {row.assumes}{note}",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
