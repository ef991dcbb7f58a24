"""The pictures of the documentation that covp makes: docs/assets, anew.

    python benchmarks/site_pictures.py [--only NAME ...]

Runs the commands that the pages show, takes the figures of their reports, and opens one report in
headless Chromium for the picture of the first page. Needs the extra `report` and Chromium.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "assets"
UNIT = "gemm:technology=horowitz-45nm,bytes_per_cycle=2"
RUNS = {
    "first-page": "kws -p riscv32 -a gemm --traffic",
    "getting-started": "kws -p riscv32 --traffic",
    "accelerator": "kws -p riscv32 -a gemm --traffic",
    "report": f"kws -p nrf52840 -a {UNIT} --traffic",
    "boards": "kws -p stm32h743 --traffic",
    "firmware": "kws -p nucleo-l4r5zi --traffic",
    "tflite": "kws -p stm32l4r5 --traffic",
    "energy": "resnet -p stm32l4r5 -a gemm:technology=horowitz-45nm",
    "timing": "kws -p stm32l4r5",
}
"""A name to the arguments of `covp run`."""
FIGURES = {
    "getting-started": ("layers",),
    "accelerator": ("layers",),
    "report": ("layers", "roofline"),
    "boards": ("memory",),
    "firmware": ("memory",),
    "first-page": (),
    "tflite": ("arena",),
    "energy": ("energy",),
    "timing": ("causes",),
}
"""Which figures of a run's report are kept, as docs/assets/NAME-FIGURE.svg."""


def covp(*arguments: str, folder: Path) -> str:
    """Return what a command of this checkout prints."""
    call = [sys.executable, "-c", "from covp.cli.main import main; main()", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"covp {' '.join(arguments)}: exit status {done.returncode}")
    return done.stdout


def figures(name: str, folder: Path) -> None:
    """Make a report of a run, and keep figures of it."""
    (folder / f"{name}.json").write_text(covp("run", *RUNS[name].split(), "--json", folder=folder))
    covp(
        *("report", f"{name}.json", "-o", f"{name}.html"),
        *("--figures", f"{name}.figures", "--format", "svg"),
        folder=folder,
    )
    for figure in FIGURES[name]:
        shutil.copyfile(
            folder / f"{name}.figures" / f"{figure}.svg", ASSETS / f"{name}-{figure}.svg"
        )
    if name == "first-page":
        screenshot(folder / "first-page.html", ASSETS / "report.png", folder)


def screenshot(page: Path, to: Path, folder: Path) -> None:
    """Take a picture of the beginning of a page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("no browser: apt install chromium")
    subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--window-size=1200,1312", "--force-device-scale-factor=0.75"),
            "--virtual-time-budget=10000",
            *(f"--user-data-dir={folder / 'profile'}", f"--screenshot={to}", page.as_uri()),
        ],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip


def sweep(folder: Path) -> None:
    """The front of the sweep of docs/sweep.md."""
    text = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")
    (folder / "sweep.yaml").write_text(text.split("```yaml\n")[1].split("```")[0])
    covp("sweep", "sweep.yaml", "-o", "rows", folder=folder)
    covp(
        *("report", "rows", "-o", "designs.html", "--figures", "designs", "--format", "svg"),
        folder=folder,
    )
    shutil.copyfile(folder / "designs" / "cycles-flash_bytes.svg", ASSETS / "sweep-front.svg")


def timeline(folder: Path) -> None:
    """The run of docs/timeline.md in time, drawn of the file that `--trace` writes."""
    covp(*("run", "kws", "-p", "stm32l4r5", "-a", "qconv2d", "--trace", "kws.json"), folder=folder)
    events = json.loads((folder / "kws.json").read_text(encoding="utf-8"))["traceEvents"]
    (ASSETS / "timeline.svg").write_text(tracks(events), encoding="utf-8")


SHOWN = (("core", "layers"), ("core", "waiting"), ("qconv2d", "jobs"))
COLOURS = ("#0969da", "#bc4c00", "#1a7f37")


def tracks(events: list[dict[str, Any]]) -> str:
    """Draw threads of a trace, one below the other."""
    names = {
        kind: {(e["pid"], e["tid"] if kind == "thread" else 0): e["args"]["name"]
               for e in events if e.get("name") == f"{kind}_name"}
        for kind in ("process", "thread")
    }  # fmt: skip
    slices = [e for e in events if e.get("ph") == "X"]
    rows = [
        [e for e in slices
         if names["process"].get((e["pid"], 0)) == process
         and names["thread"].get((e["pid"], e["tid"])) == thread]
        for process, thread in SHOWN
    ]  # fmt: skip
    last = max(e["ts"] + e["dur"] for row in rows for e in row)
    scale = 820 / last
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 190" role="img">',
        "<style>text{font:12px system-ui,sans-serif;fill:#1f2328}.s{font-size:11px}</style>",
        '<rect width="960" height="190" fill="white"/>',
    ]
    for number, ((process, thread), row) in enumerate(zip(SHOWN, rows, strict=True)):
        top = 16 + 46 * number
        parts.append(f'<text x="8" y="{top + 13}">{process}</text>')
        parts.append(f'<text class="s" x="8" y="{top + 27}" fill-opacity="0.7">{thread}</text>')
        for e in row:
            left, width = 120 + e["ts"] * scale, max(e["dur"] * scale, 0.8)
            title = html.escape(f"{e['name']}: {e['dur']:.1f} us")
            parts.append(
                f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="30" stroke="white"'
                f' fill="{COLOURS[number]}"><title>{title}</title></rect>'
            )
            if width > 90 and thread == "layers":
                label = html.escape(e["name"].removeprefix("layer "))[: int(width / 7)]
                place = f'x="{left + 5:.1f}" y="{top + 19}"'
                parts.append(f'<text class="s" {place} style="fill:white">{label}</text>')
    step = 200
    for at in range(0, int(last) + 1, step):
        x = 120 + at * scale
        parts.append(f'<path d="M{x:.1f} 154v6" stroke="#818b98"/>')
        parts.append(f'<text class="s" x="{x:.1f}" y="176" text-anchor="middle">{at} us</text>')
    parts.append('<path d="M120 154h820" stroke="#818b98"/></svg>\n')
    return "\n".join(parts)


DIAGRAMS = {
    "flow-kernel": (
        "pytest",
        "numpy arrays|drawn by Hypothesis",
        "memory of the|emulated core",
        "your C function|compiled for it",
        "result|and every fault",
    ),
    "flow-board": (
        "the same commands with and without a board",
        "covp run|--device openocd:",
        "OpenOCD|Tcl port 6666",
        "probe, or|covp debug port",
        "board, or|virtual board",
    ),
    "flow-onnx": (
        "covp run net.onnx",
        "net.onnx|opsets from 13",
        "inlined, fused|as operators",
        "read in one walk|converters",
        "graph|shapes folded",
        "C|check of every layer",
    ),
    "flow-ci": (
        "in each job",
        "covp compare|--json > results.json",
        "covp check|against baseline.json",
        "summary|Markdown",
        "exit status|1 where it got worse",
    ),
    "flow-devices": (
        "--device",
        "virtual, host|this machine",
        "gdb:qemu|another emulator",
        "rtl|the core's Verilog",
        "gdb:, openocd:|boards",
    ),
    "flow-two-cores": (
        "one memory, turns of some cycles",
        "recording|samples in time",
        "sensor|takes samples",
        "shared memory|of both cores",
        "main|classifies",
    ),
    "flow-retiming": (
        "one run, many designs",
        "covp run|once, recorded",
        "record|blocks and jobs",
        "parameters of time|clock, wait states",
        "cycles|of each design",
    ),
    "flow-data": (
        "covp run --data",
        "samples|x_test.npy",
        "virtual device|every sample",
        "outputs|beside the labels",
        "accuracy|top-1, AUC, error",
    ),
    "flow-streaming": (
        "covp run --streaming",
        "new rows|of the stream",
        "layers|on new rows alone",
        "states|old rows, in the arena",
        "output|of the whole window",
    ),
    "flow-accelerators": (
        "-a ACCEL",
        "model|operators",
        "patterns and limits|which ones it accepts",
        "cheapest cover|simulated, estimated",
        "driver|on the core",
        "unit|checked to the byte",
    ),
    "flow-bisect": (
        "covp bisect",
        "each layer alone|on the reference's inputs",
        "first wrong layer|and its element",
        "store that made it|function, line, callers",
        "a small test|fails until it is right",
    ),
    "flow-coverage": (
        "nothing is instrumented",
        "calls|on the virtual device",
        "counts of blocks|of machine code",
        "line tables|of the ELF file",
        "lines, branches|and conditions",
    ),
    "flow-interrupts": (
        "check_interrupts, check_answers, constant_time, worst_case",
        "your function|compiled for the core",
        "run again and again|one thing changed",
        "event|interrupt, answer, input",
        "outcome and time|compared",
    ),
    "flow-mlperf-board": (
        "covp board",
        "MLPerf Tiny's runner|not modified",
        "serial port|a pseudo terminal",
        "firmware|on the emulated core",
        "inferences|in virtual time",
    ),
    "flow-peripherals": (
        "the same in every run",
        "recording|file, socket, generator",
        "peripheral|in virtual time",
        "interrupt or DMA|to the core",
        "your driver|and program",
    ),
    "flow-own-operators": (
        "register_operator",
        "model file|an unknown operator",
        "convert|its options",
        "compose, body|known operators, or C",
        "reference|checks every byte",
    ),
}
"""A name to the caption, and boxes from left to right, each of a title and a line."""
STYLE = (
    "svg{--ink:#1f2328;--soft:#59636e;--line:#0969da;--box:#ddf4ff}"
    "@media(prefers-color-scheme:dark)"
    "{svg{--ink:#f0f6fc;--soft:#9198a1;--line:#4493f8;--box:#0c2d4d}}"
    "text{font:14px system-ui,sans-serif;fill:var(--ink);text-anchor:middle}"
    ".s{font-size:12px;fill:var(--soft)}rect{fill:var(--box);stroke:var(--line)}"
    "path{stroke:var(--ink);fill:none;stroke-width:1.6}"
)


def diagram(boxes: list[str], caption: str) -> str:
    """Draw boxes with arrows between them; colours follow the system's."""
    gap, wide = 32, 176
    width = len(boxes) * (wide + gap) - gap + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 104" role="img">',
        f"<style>{STYLE}</style>",
        f'<text class="s" x="{width / 2}" y="18">{html.escape(caption)}</text>',
    ]
    for number, box in enumerate(boxes):
        title, _, line = box.partition("|")
        x = 4 + number * (wide + gap)
        middle = x + wide / 2
        parts += [
            f'<rect x="{x}" y="32" width="{wide}" height="64" rx="6"/>',
            f'<text x="{middle}" y="60">{html.escape(title)}</text>',
            f'<text class="s" x="{middle}" y="80">{html.escape(line)}</text>',
        ]
        if number:
            parts.append(f'<path d="M{x - gap + 2} 64h{gap - 6}m-7 -5l7 5l-7 5"/>')
    return "\n".join([*parts, "</svg>\n"])


def diagrams(folder: Path) -> None:
    """Draw the diagrams."""
    for name, (caption, *boxes) in DIAGRAMS.items():
        (ASSETS / f"{name}.svg").write_text(diagram(boxes, caption), encoding="utf-8")


def main() -> None:
    others = {"sweep": sweep, "timeline": timeline, "diagrams": diagrams}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=[*RUNS, *others])
    with tempfile.TemporaryDirectory() as name:
        for each in parser.parse_args().only or [*RUNS, *others]:
            if each in others:
                others[each](Path(name))
            else:
                figures(each, Path(name))


if __name__ == "__main__":
    main()
