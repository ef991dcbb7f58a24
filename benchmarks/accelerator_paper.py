"""The conv2d accelerator beside Table 2 of the CODAI'23 paper.

For each of the paper's models, on the generic RV32IMC platform: instructions of an inference on
the core alone and with the accelerator, what that saves, and the time to simulate one accelerated
inference (emulated core and accelerator model together, the program already loaded), each beside
the paper's figure. Outputs are checked against the reference, bit for bit.

Three ways to split a layer between accelerator and core are shown:

    qconv2d                                   the accelerator requantizes
    qconv2d:requantize=false                  it returns int32 sums, the core requantizes
    qconv2d:requantize=false,depthwise=false,max_stride=1
                                              as the paper: the same split, stride 1, one group

The paper's core runs TVM's kernels (5.73e7, 4.12e7, 1.43e7 instructions); the saving is against a
core alone that needs far fewer, so a given amount of work left on the core weighs more here.

    python benchmarks/accelerator_paper.py [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from statistics import median

from covp.evaluation import Comparison, Evaluation, Runner, Sample, build

PLATFORM = "riscv32"
SPLITS = (
    "qconv2d",
    "qconv2d:requantize=false",
    "qconv2d:requantize=false,depthwise=false,max_stride=1",
)
RUNS = 5


@dataclass(frozen=True)
class Paper:
    """A row of Table 2: share of instructions saved, MACs offloaded, instructions, seconds."""

    saved: float
    coverage: float
    core: float
    accelerated: float
    simulation_seconds: float


PAPER = {
    "resnet": Paper(0.75, 0.79, 5.73e7, 1.44e7, 0.68),
    "vww": Paper(0.65, 0.83, 4.12e7, 1.46e7, 1.33),
    "kws": Paper(0.63, 0.77, 1.43e7, 5.34e6, 0.54),
}


@dataclass(frozen=True)
class Row:
    """One model under one split; seconds are the median of a few runs.

    ``source`` is "official", "custom" or "synthetic".
    """

    model: str
    source: str
    accelerator: str
    core_instructions: int
    instructions: int
    saved: float
    mac_coverage: float
    simulation_seconds: float
    core_simulation_seconds: float
    matches_reference: bool
    paper: Paper


def run(model: str, accelerators: list[str]) -> tuple[Evaluation, float]:
    """The evaluation of a seeded random input, and the median of its host seconds."""
    made = build(model, PLATFORM, accelerators)
    sample = Sample.random(made.graph)
    with Runner(made) as runner:
        results = [runner.run(sample) for _ in range(RUNS)]
    return results[-1], median(result.simulation_seconds for result in results)


def rows() -> list[Row]:
    """Every model under every split."""
    found = []
    for model, paper in PAPER.items():
        core, core_seconds = run(model, [])
        for split in SPLITS:
            offloaded, seconds = run(model, [split])
            comparison = Comparison(core, offloaded)
            before, after = core.profile.instructions, offloaded.profile.instructions
            assert before is not None and after is not None
            found.append(
                Row(
                    model,
                    core.source,
                    split,
                    before,
                    after,
                    1 - after / before,
                    comparison.mac_coverage or 0.0,
                    seconds,
                    core_seconds,
                    comparison.matches_reference,
                    paper,
                )
            )
    return found


def show(table: list[Row]) -> None:
    """The table as text, with a line about models that are not the paper's."""
    synthetic = [row.model for row in table if row.source == "synthetic"]
    if synthetic:
        print(
            "SYNTHETIC stand-ins with random weights, not comparable with the paper: "
            f"{', '.join(dict.fromkeys(synthetic))}; `covp models fetch` gets the official files"
        )
    print(
        f"{'model':7}{'accelerator':39}{'core':>12}{'accelerated':>13}{'(paper)':>9}"
        f"{'saved':>7}{'(paper)':>9}{'MACs':>6}{'(paper)':>9}{'simulated':>11}{'(paper)':>9}"
        "  bit-exact"
    )
    for row in table:
        paper = row.paper
        print(
            f"{row.model:7}{row.accelerator:39}{row.core_instructions:12,}"
            f"{row.instructions:13,}{paper.accelerated:9.2e}{row.saved:7.1%}{paper.saved:9.0%}"
            f"{row.mac_coverage:6.0%}{paper.coverage:9.0%}{row.simulation_seconds:9.3f} s"
            f"{paper.simulation_seconds:7.2f} s  {'yes' if row.matches_reference else 'NO'}"
        )


def main() -> int:
    """Print the table; exit status 1 when an output differs from the reference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON document instead")
    as_json = parser.parse_args().json
    table = rows()
    if as_json:
        print(json.dumps([asdict(row) for row in table], indent=1))
    else:
        show(table)
    return 0 if all(row.matches_reference for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())
