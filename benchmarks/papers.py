"""What papers measured beside what covp gives, as the tables of docs/papers.md.

    python benchmarks/papers.py codai23|codai22|microtvm|cmsis-nn|mlperf-tiny

codai22 and mlperf-tiny run now, in seconds. The others read what longer benchmarks stored:
accelerators.py, thesis.py, and results/boards.json, which no command here makes. A ratio is
covp's figure divided by the paper's: below 1 is less work or time than theirs. `python
benchmarks/printed.py papers_codai23` renews one table of the page.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from accelerator_paper import PAPER
from results import DATA, rows_of, table
from thesis import ANCHORS, BOARD, BOARD_HZ, FIRST, NETWORK, THIRD

UNKNOWN = "not known"
Cycles = dict[tuple[str, str, bool], int]
"""Workload, with or without SIMD, tuned: estimated cycles."""


class Source(NamedTuple):
    """Where a paper's figures are from."""

    text: str
    where: str

    def __str__(self) -> str:
        return f"- Theirs: {self.text}; {self.where}."


CODAI23 = Source(
    "S. Ahmadifarsani, R. Stahl, P. van Kempen, D. Mueller-Gritschneder, U. Schlichtmann, Towards "
    "Rapid Exploration of Heterogeneous TinyML Systems using Virtual Platforms and TVM's UMA, "
    "CODAI 2023",
    "Table 2, also slide 15 of the talk",
)
CODAI22 = Source(
    "C. Liu, M. Jobst, L. Guo, X. Shi, J. Partzsch, C. Mayr, Deploying Machine Learning Models to "
    "Ahead-of-Time Runtime on Edge Using MicroTVM, CODAI 2022, arXiv 2304.04842",
    "the number of parameters is the one that examples/codai22.py was written for",
)
MICROTVM = Source(
    "L. Weber, A. Reusch, TinyML - How TVM is Taming Tiny, 2020",
    "github.com/areusch/microtvm-blogpost-eval 9c5043cd, graph.png for the network and "
    "autotune-logs/eval for the operators",
)
CMSIS_NN = Source(
    "L. Lai, N. Suda, V. Chandra, CMSIS-NN: Efficient Neural Network Kernels for Arm Cortex-M "
    "CPUs, arXiv 1801.06601",
    "the table of the CIFAR-10 network's layers, those of single layers as in a second-hand copy",
)
MLPERF_TINY = Source(
    "MLCommons, MLPerf Tiny",
    "github.com/mlcommons/tiny_results_vX, closed division, at the commits in the table",
)


def ratio(ours: float, theirs: float) -> str:
    """Ours divided by theirs, for a cell."""
    return f"{ours / theirs:.2f}"


def codai23() -> Iterator[str]:
    """Table 2 beside the row "qconv2d, the paper's split" of accelerators.py."""
    found = {(row["model"], row["accelerator"]): row for row in rows_of("accelerators")}
    cells = []
    for model, paper in PAPER.items():
        alone, beside = found[model, "core alone"], found[model, "qconv2d, the paper's split"]
        core, accelerated = alone["instructions"], beside["instructions"]
        saved = 1 - accelerated / core
        cells += [
            (model, "instructions, core alone", f"{paper.core:,.0f}", f"{core:,}",
             ratio(core, paper.core)),
            (model, "instructions, with the accelerator", f"{paper.accelerated:,.0f}",
             f"{accelerated:,}", ratio(accelerated, paper.accelerated)),
            (model, "instructions saved", f"{paper.saved:.0%}", f"{saved:.0%}", "-"),
            (model, "MACs offloaded", f"{paper.coverage:.0%}", f"{beside['coverage']:.0%}", "-"),
            (model, "time to simulate an inference", f"{paper.simulation_seconds:.2f} s",
             f"{beside['seconds']:.3f} s", ratio(beside["seconds"], paper.simulation_seconds)),
        ]  # fmt: skip
    yield table(("model", "figure", "paper", "covp", "ratio"), cells, text_columns=2)
    yield f"{CODAI23}\n- covp: `python benchmarks/accelerators.py`, platform `riscv32`, simulated."


def codai22() -> Iterator[str]:
    """The network, run now, in float32."""
    import codai22_network
    from codai22 import samples, weights

    name, graph, model = next(codai22_network.networks(128, False))
    inputs = [samples(128, seed) for seed in range(codai22_network.INPUTS)]
    wanted = codai22_network.outputs_of(model, inputs)
    row = codai22_network.measured(name, graph, "cortex-m4", wanted, wanted)
    count = sum(values.size for values in weights().values())
    cells = [
        ("parameters", "1,525", f"{count:,}", ratio(count, 1525)),
        *(
            (figure, UNKNOWN, value, "-")
            for figure, value in (
                ("instructions of an inference", f"{row.instructions:,}"),
                ("cycles of an inference, estimated", f"{row.cycles:,}"),
                ("flash, bytes", f"{row.flash:,}"),
                ("RAM for tensors, bytes", f"{row.arena:,}"),
                ("largest difference of a probability from onnxruntime", f"{row.error:.1e}"),
            )
        ),
    ]
    yield table(("figure", "paper", "covp", "ratio"), cells)
    where = "platform `cortex-m4`, 128 samples of 6 channels, simulated"
    yield f"{CODAI22}\n- covp: this command, {where}."


def cycles_of_thesis() -> Cycles:
    """The estimates for the Cortex-M7 that thesis.py printed last."""
    text = (DATA / "printed" / "thesis.txt").read_text(encoding="utf-8")
    row = re.compile(rf"^(.+?) +{BOARD} +(with|without) +(tuned|untuned) +[\d,]+ +([\d,]+) ", re.M)
    return {
        (found[1], found[2], found[3] == "tuned"): int(found[4].replace(",", ""))
        for found in row.finditer(text)
    }


def microtvm() -> Iterator[str]:
    """Times of microTVM's evaluation beside those of thesis.py, and what tuning gives."""
    ours = cycles_of_thesis()
    cells, network = [], {}
    for anchor in ANCHORS:
        if not anchor.runtime.startswith("microTVM"):
            continue
        estimate = ours[anchor.workload, anchor.simd, anchor.tuned] / BOARD_HZ * 1000
        how = f"{'tuned' if anchor.tuned else 'untuned'}, {anchor.simd} SIMD"
        cells.append(
            (anchor.workload, how, f"{anchor.milliseconds:.1f} ms", f"{estimate:.1f} ms",
             ratio(estimate, anchor.milliseconds))
        )  # fmt: skip
        if anchor.workload == NETWORK:
            network[anchor.tuned] = anchor.milliseconds, estimate
    (theirs, ours_before), (theirs_after, ours_after) = network[False], network[True]
    gain, own_gain = theirs / theirs_after, ours_before / ours_after
    cells.append(
        (NETWORK, "gain by SIMD and tuning", f"{gain:.2f}x", f"{own_gain:.2f}x",
         ratio(own_gain, gain))
    )  # fmt: skip
    yield table(("workload", "how", "microTVM", "covp", "ratio"), cells, text_columns=2)
    where = f"platform `{BOARD}` at 216 MHz, simulated"
    yield f"{MICROTVM}\n- covp: `python benchmarks/thesis.py`, {where}."


LAYERS = {"conv 5x5, 3 to 32, 32x32": FIRST, "conv 5x5, 32 to 64, 8x8": THIRD, "all": NETWORK}
"""Rows of boards.json that thesis.py has as well."""


def cmsis_nn() -> Iterator[str]:
    """The paper's times beside its kernels on the virtual device, and beside covp's kernels."""
    own = cycles_of_thesis()
    content = json.loads((DATA / "boards.json").read_text(encoding="utf-8"))
    cells = []
    for row in content["rows"]:
        if not row["source"].startswith("arXiv 1801.06601"):
            continue
        layer = row["program"].removeprefix("CIFAR-10: ")
        published, emulated = row["published"], row["cycles"]["-O3, memory"]
        covp = own[LAYERS[layer], "with", True] if layer in LAYERS else None
        cells.append(
            (
                layer,
                *(f"{cycles / BOARD_HZ * 1000:.1f} ms" for cycles in (published, emulated)),
                ratio(emulated, published),
                "-" if covp is None else f"{covp / BOARD_HZ * 1000:.1f} ms",
                "-" if covp is None else ratio(covp, published),
            )
        )
    head = ("layer", "paper", "its kernels in covp", "ratio", "covp's kernels", "ratio")
    yield table(head, cells)
    yield (
        f"{CMSIS_NN}\n- Its kernels: benchmarks/results/boards.json, platform `disco-f746ng`, -O3, "
        f"simulated.\n- covp's kernels: `python benchmarks/thesis.py`, platform `{BOARD}`, tuned, "
        "simulated. All at 216 MHz."
    )


MODELS = ("resnet", "kws", "vww", "toycar")


def mlperf_tiny() -> Iterator[str]:
    """Published times on the NUCLEO-L4R5ZI beside covp's estimates for it, run now."""
    from covp.evaluation import Runner, Sample, build

    ours = {}
    for model in MODELS:
        made = build(model, "nucleo-l4r5zi")
        with Runner(made) as runner:
            result = runner.run(Sample.random(made.graph))
        assert result.matches_reference and result.profile.seconds is not None
        ours[model] = result.profile.seconds * 1000
    path = Path(__file__).with_name("energy_anchors.json")
    published: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    cells = [
        ("covp", "", "generated C, simulated", *(f"{ours[model]:.1f} ms" for model in MODELS)),
        *(
            (row["results"], row["submitter"], row["stack"], *(
                f"{row['ms_uj'][model][0]:.1f} ms ({ratio(ours[model], row['ms_uj'][model][0])})"
                for model in MODELS
            ))
            for row in published
            if row["platform"] == "stm32l4r5"
        ),
    ]  # fmt: skip
    head = ("results", "submitter", "software", *(f"{model} (ratio)" for model in MODELS))
    yield table(head, cells, text_columns=3)
    yield f"{MLPERF_TINY}\n- covp: this command, platform `nucleo-l4r5zi` at 120 MHz, simulated."


PAPERS: dict[str, Callable[[], Iterator[str]]] = {
    "codai23": codai23,
    "codai22": codai22,
    "microtvm": microtvm,
    "cmsis-nn": cmsis_nn,
    "mlperf-tiny": mlperf_tiny,
}


def main() -> None:
    """Print one paper's table and where its figures are from."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paper", choices=PAPERS)
    print("\n\n".join(PAPERS[parser.parse_args().paper]()))


if __name__ == "__main__":
    main()
