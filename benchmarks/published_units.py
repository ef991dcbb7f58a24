"""Accelerators that others published: covp's cycles beside their models' and their chips'.

    python benchmarks/published_units.py [--ne16-model Ne16PerfModel.py]

NE16's cycles are those of benchmarks/ne16_cycles.csv, which the unit's public model printed
(github.com/pulp-platform/dory, be3d6dda, dory/Hardware_targets/PULP/GAP9_NE16/Tiler);
``--ne16-model`` is that file and prints them anew. GAP9's are of MLPerf Tiny 1.0, closed division
(github.com/mlcommons/tiny_results_v1.0, greenwaves-technologies/results/gap9_800_370): 370 MHz by
the median of inferences a second, everything included: the layers of its cores, weights fetched.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from pathlib import Path
from typing import Any

from covp.accel_backends.ne16.backend import Ne16
from covp.accelerator.partition import partition
from covp.graph.models import load_model
from covp.graph.typed_convolution import QuantizedConv2D
from covp.hardware.job import JobValues

FILE = Path(__file__).with_name("ne16_cycles.csv")
GAP9 = {"toycar": 5691.597, "kws": 2103.206, "resnet": 1622.799, "vww": 889.048}
"""Inferences a second at 370 MHz."""
CLOCK = 370e6
SIZES = ((1, 1), (3, 3), (4, 7), (12, 10), (25, 5), (33, 32))
CHANNELS = ((1, 1), (3, 16), (16, 32), (17, 33), (64, 10), (100, 200))


def cases() -> list[dict[str, int]]:
    """Return the layers that the public model is asked for: sizes of the output."""
    found = []
    for kernel, depthwise in ((1, 0), (3, 0), (3, 1)):
        for height, width in SIZES:
            for inputs, outputs in CHANNELS:
                sizes = {"height": height, "width": width, "inputs": inputs}
                kind = {"kernel": kernel, "depthwise": depthwise}
                found.append({**kind, **sizes, "outputs": inputs if depthwise else outputs})
    return found


def run_public_model(file: Path) -> None:
    """Write the file of cycles anew, by the public model itself."""
    spec = importlib.util.spec_from_file_location("ne16_model", file)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = cases()
    for row in rows:
        kernel = (row["kernel"], row["kernel"])
        options = {"nq_shift": True, "nq_bias": True, "nq_bits": 32}
        model = module.Ne16PerfModel("conv", kernel, depthwise=bool(row["depthwise"]), **options)
        model.set_layer((row["height"], row["width"], row["outputs"], row["inputs"]))
        row["cycles"] = model.latency
    with FILE.open("w", encoding="utf-8", newline="") as written:
        writer = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def unit_cycles(row: dict[str, int]) -> int:
    """Return what the unit takes for a layer of the file."""
    mode = 2 if row["depthwise"] else int(row["kernel"] == 3)
    sizes = {"OUT_HEIGHT": row["height"], "OUT_WIDTH": row["width"], "STRIDE": 1}
    channels = {"IN_CHANNELS": row["inputs"], "OUT_CHANNELS": row["outputs"]}
    job = JobValues(MODE=mode, WEIGHT_BITS=8, **sizes, **channels)
    return Ne16().timing(job, 0).cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ne16-model", type=Path, help="Ne16PerfModel.py of DORY")
    given = parser.parse_args()
    if given.ne16_model:
        run_public_model(given.ne16_model)
    with FILE.open(encoding="utf-8") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    more = [unit_cycles(row) - row["cycles"] for row in rows]
    print("| unit | layers of its public model | cycles that a job takes more | at most |")
    print("|---|---:|---:|---:|")
    print(f"| ne16 | {len(rows)} | {min(more)} | {max(more)} |\n")
    print("| model | layers | MACs on it | cycles of the unit | GAP9, all of it | unit / GAP9 |")
    print("|---|---:|---:|---:|---:|---:|")
    for model, rate in GAP9.items():
        unit, total, layers, macs = Ne16(), 0, 0, 0
        graph = load_model(model)
        for one in partition(graph, [unit]).placements:
            if one.match is not None:
                layer = unit.layer(one.match)
                assert isinstance(layer, QuantizedConv2D)
                total, layers = total + (unit.estimate(one.match) or 0), layers + 1
                macs += int(layer.weights.size * layer.out_height * layer.out_width)
        chip = CLOCK / rate
        print(f"| {model} | {layers} | {macs:,} | {total:,} | {chip:,.0f} | {total / chip:.0%} |")


if __name__ == "__main__":
    main()
