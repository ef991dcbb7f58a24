"""NE16's own RTL beside covp's `ne16`: are the bits right, and the cycles the RTL's?

    python benchmarks/ne16_rtl.py                # what benchmarks/ne16_rtl.csv says
    python benchmarks/ne16_rtl.py --rtl FOLDER   # the RTL runs all layers anew: some minutes

FOLDER has checkouts from github.com/pulp-platform: ne16 (6bd7272), hwpe-stream (v1.6), hci
(v1.0.6), hwpe-ctrl (v1.6), tech_cells_generic (v0.2.9). The RTL runs by its own ports, as any
Verilog does (docs/rtl-units.md); the memory answers in each cycle. What its reset does not set
begins with zeros: with other values its bytes are wrong.

Layers are those that the unit's public model is asked for (published_units.py), those of the MLPerf
Tiny models, and random ones: 2 to 8 bits, padding. Inputs, weights, biases and shifts are random.
Results follow from the unit's own arithmetic: sums in 32 bits, times a scale, plus a bias, shifted
without rounding, clipped to int8. With stride 2 the unit needs a job for each tile: one tile runs.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from published_units import GAP9, cases

from covp.accel_backends.ne16.backend import LINEAR, Ne16, pack
from covp.accelerator.partition import partition
from covp.accelerator.rtl.library import UnitModel, build_unit
from covp.accelerator.rtl.sources import UnitRtl
from covp.chip.platform_file import Region
from covp.graph.models import load_model
from covp.hardware.bus import Memory
from covp.hardware.job import JobValues

HERE = Path(__file__).parent
FILE = HERE / "ne16_rtl.csv"
MODES = ("1x1", "3x3", "depthwise", "linear")
SOURCES = (
    "tech_cells_generic/src/rtl/tc_clk.sv",
    "tech_cells_generic/src/deprecated/*_clk_cells.sv",
    *(f"hwpe-stream/rtl/hwpe_stream_{name}.sv" for name in ("package", "interfaces")),
    *(f"hwpe-stream/rtl/{name}/*.sv" for name in ("basic", "fifo", "streamer")),
    *(f"hwpe-ctrl/rtl/{name}.sv" for name in ("hwpe_ctrl_package", "hwpe_ctrl_interfaces", "*")),
    *(f"hci/rtl/{name}.sv" for name in ("common/hci_package", "common/hci_interfaces", "core/*")),
    *(f"ne16/rtl/{name}.sv" for name in ("ne16_package", "*/*", "*")),
)
"""Packages come before what uses them."""
INCLUDE = ("hwpe-ctrl/rtl", "hci/rtl")
_CONFIGURATION = 1 << 25 | 1 << 24 | 1 << 23 | 1 << 15 | 2 << 12 | 1 << 11 | 1 << 4
"""Biases, shifts, no ReLU, an offset of weights, 32-bit scales, no rounding, a result of int8."""
_TRIGGER, _ACQUIRE, _CLEAR, _JOB = 0x00, 0x04, 0x14, 0x40
"""Offsets of HWPE's registers, and of the first one of a job."""
_MOST = 10**7
"""Cycles after which a job counts as one that does not end."""


@dataclass(frozen=True)
class Layer:
    """A layer as the unit's registers describe it: sizes of the output, padding on each side."""

    mode: str
    height: int
    width: int
    inputs: int
    outputs: int
    bits: int = 8
    stride: int = 1
    top: int = 0
    right: int = 0
    bottom: int = 0
    left: int = 0

    @property
    def job(self) -> JobValues:
        """What covp's timing needs of it."""
        return JobValues(
            MODE=MODES.index(self.mode),
            WEIGHT_BITS=self.bits,
            STRIDE=self.stride,
            OUT_HEIGHT=self.height,
            OUT_WIDTH=self.width,
            IN_CHANNELS=self.inputs,
            OUT_CHANNELS=self.outputs,
        )


Row = dict[str, Any]
"""A layer with "cycles", 0 where its job does not end, and "wrong", bytes of its result."""


def layers() -> list[Layer]:
    """Return all layers, each once."""
    found = [*_published(), *_of_models(), *_random()]
    return list(dict.fromkeys(found))


def _published() -> Iterator[Layer]:
    for row in cases():
        mode = "depthwise" if row["depthwise"] else "3x3" if row["kernel"] == 3 else "1x1"
        yield Layer(mode, row["height"], row["width"], row["inputs"], row["outputs"])


def _of_models() -> Iterator[Layer]:
    """Yield the layers of the MLPerf Tiny models; of those with stride 2 a tile."""
    unit = Ne16()
    for model in GAP9:
        for one in partition(load_model(model), [unit]).placements:
            if one.match is None:
                continue
            layer = unit.layer(one.match)
            values = unit.registers(layer)
            stride, kernel = layer.stride[0], layer.kernel[0]
            height, width, pads = layer.out_height, layer.out_width, [0, 0, 0, 0]
            if stride == 2:
                height, width = min(height, 2), min(width, 2)
            else:
                top, left = layer.padding.top, layer.padding.left
                pads[0], pads[3] = top, left
                pads[1] = max(0, width - 1 + kernel - left - layer.in_width)
                pads[2] = max(0, height - 1 + kernel - top - layer.in_height)
            sizes = (height, width, layer.in_channels, layer.out_channels)
            yield Layer(MODES[values["MODE"]], *sizes, values["WEIGHT_BITS"], stride, *pads)


def _random() -> Iterator[Layer]:
    draw = random.Random(0)
    for _ in range(200):
        mode, bits = draw.choice(MODES), draw.randint(2, 8)
        inputs = draw.choice((1, 2, 8, 15, 16, 17, 24, 32, 40))
        outputs = draw.choice((1, 2, 8, 9, 16, 24, 31, 32, 33, 40, 64))
        if mode == "linear":
            yield Layer(mode, 1, 1, LINEAR * draw.randint(1, 3), outputs, bits)
            continue
        height, width, stride = draw.randint(1, 8), draw.randint(1, 8), draw.randint(1, 2)
        if stride == 2:  # half of a pixel's outputs is a register
            height, width = min(height, 2), min(width, 2)
            inputs, outputs = inputs + inputs % 2, outputs + outputs % 2
        pads = (0, 0, 0, 0)
        if mode != "1x1" and stride == 1 and min(height, width) > 2:
            pads = draw.choice((pads, (1, 1, 1, 1), (0, 1, 1, 0), (1, 0, 0, 1)))
        if mode == "depthwise":
            outputs = inputs
        yield Layer(mode, height, width, inputs, outputs, bits, stride, *pads)


def _tiles(size: int, tile: int) -> tuple[int, int]:
    """Return how many tiles there are, and the size of the last one."""
    return -(-size // tile), (size - 1) % tile + 1


class _Memory:
    """The memory of a job, in which tensors are placed one behind the other."""

    def __init__(self) -> None:
        self.content = np.zeros(1 << 12, np.uint8)

    def place(self, values: NDArray[Any]) -> int:
        """Append the bytes of an array and some zeros; return its address."""
        address, content = len(self.content), np.frombuffer(values.tobytes(), np.uint8)
        self.content = np.concatenate([self.content, content, np.zeros(128, np.uint8)])
        return address


def run(layer: Layer, rtl: UnitModel) -> tuple[int, int]:
    """Return the cycles of a layer on the RTL and how many bytes of its result are wrong."""
    draw = np.random.default_rng(0)
    mode, kernel = MODES.index(layer.mode), 3 if layer.mode in ("3x3", "depthwise") else 1
    channels = -(-layer.inputs // LINEAR) * LINEAR if layer.mode == "linear" else layer.inputs
    rows = (layer.height - 1) * layer.stride + kernel - layer.top - layer.bottom
    columns = (layer.width - 1) * layer.stride + kernel - layer.left - layer.right
    image = draw.integers(0, 256, (rows, columns, channels), dtype=np.uint8)
    outer = 1 if layer.mode == "depthwise" else layer.outputs
    weights = draw.integers(0, 1 << layer.bits, (outer, kernel**2, channels), dtype=np.uint8)
    offset = int(draw.integers(-128, 128))
    sums = _sums(layer, image, weights.astype(np.int64) + offset, kernel)
    # a product has to stay within the 32 bits of the unit's sums
    scale = np.full(layer.outputs, max(1, min(255, 2**29 // int(np.abs(sums).max() + 1))), np.int32)
    shift = draw.integers(8, 20, layer.outputs, dtype=np.uint8)
    bias = draw.integers(-(2**18), 2**18, layer.outputs, dtype=np.int32)
    expected = np.clip((sums * scale + bias) >> shift, -128, 127).astype(np.int8)

    memory = _Memory()
    places = [memory.place(pack(weights, mode, layer.bits)), memory.place(image)]
    parameters = [memory.place(values) for values in (scale, shift, bias)]
    target = memory.place(np.zeros(expected.size, np.int8))
    places[1] -= (layer.top * columns + layer.left) * channels  # as if padding lay there
    words = _registers(layer, kernel, columns, channels, [*places, target, *parameters], offset)
    content = memory.content
    rtl.begin([Memory(Region("memory", "ram", 0, content.size), content)])
    rtl.write(_CLEAR, 0)
    rtl.advance(rtl.now + 40)  # it stays in effect for some cycles
    rtl.read(_ACQUIRE)
    for number, word in enumerate(words):
        rtl.write(_JOB + 4 * number, word & 0xFFFFFFFF)
    rtl.write(_TRIGGER, 0)
    cycles = rtl.run(_MOST)
    if rtl.error:
        raise RuntimeError(rtl.error)
    for address, data in rtl.stores():
        content[address : address + data.size] = data
    found = content[target : target + expected.size].view(np.int8).reshape(expected.shape)
    return cycles, int((found != expected).sum())


def _sums(
    layer: Layer, image: NDArray[Any], weights: NDArray[Any], kernel: int
) -> NDArray[np.int64]:
    """Return the sums of products, (height, width, outputs), by their definition."""
    padding = ((layer.top, layer.bottom), (layer.left, layer.right), (0, 0))
    padded = np.pad(image, padding).astype(np.int64)
    sums = np.zeros((layer.height, layer.width, layer.outputs), np.int64)
    for tap, weight in enumerate(weights.transpose(1, 0, 2)):
        row, column = divmod(tap, kernel)
        pixels = padded[row :: layer.stride, column :: layer.stride]
        pixels = pixels[: layer.height, : layer.width]
        sums += pixels * weight[0] if layer.mode == "depthwise" else pixels @ weight.T
    return sums


def _registers(
    layer: Layer, kernel: int, columns: int, channels: int, addresses: list[int], offset: int
) -> list[int]:
    """Return a job's 24 registers, by the package of its RTL.

    Args:
        layer, kernel: what is computed.
        columns, channels: of the input.
        addresses: of weights, input, result, scales, shifts and biases.
        offset: added to each weight.
    """
    depthwise, linear = layer.mode == "depthwise", layer.mode == "linear"
    # with stride 2 the unit computes all pixels of the tile, and keeps every second one
    seen = [3 if layer.stride == 2 and n == 2 else n for n in (layer.height, layer.width)]
    (down, last_row), (right, last_column) = (_tiles(size, 3) for size in seen)
    outputs, last_output = _tiles(layer.outputs, 16 if depthwise else 32)
    inputs, last_input = _tiles(channels, LINEAR if linear else 16)
    strides = {
        "1x1": (2 * layer.bits, 2 * layer.bits * inputs, 0),
        "3x3": (18, 18 * layer.bits * inputs, 0),
        "depthwise": (18, 0, 0),
        "linear": (32 * inputs, 32 * inputs * layer.bits, 32 * 32 * inputs * layer.bits),
    }[layer.mode]
    halo = kernel - 1
    filters = {"1x1": 2, "3x3": 0, "depthwise": 1, "linear": 3}[layer.mode]
    padding = (layer.top, layer.right, layer.bottom, layer.left)
    return [
        *addresses,
        *((16, LINEAR, 0) if linear else (channels, columns * channels, 0)),
        *(32, layer.outputs // layer.stride, layer.width * layer.outputs // layer.stride),
        *strides,
        last_output << 16 | (0 if linear else last_input),
        last_row << 16 | last_column,
        last_row + halo - layer.bottom << 16 | last_column + halo - layer.right,
        outputs << 16 | inputs,
        down << 16 | right,
        sum(pad << place for pad, place in zip(padding, (28, 24, 20, 16), strict=True)),
        offset,
        0,
        _CONFIGURATION | (layer.stride == 2) << 8 | linear << 7 | filters << 5 | layer.bits - 1,
    ]


def build(folder: Path) -> UnitModel:
    """Return the RTL in simulation, by its own ports.

    Args:
        folder: with the checkouts.
    """
    found = (path for pattern in SOURCES for path in sorted(folder.glob(pattern)))
    rtl = UnitRtl(
        sources=tuple(str(path) for path in dict.fromkeys(found)),
        top="ne16_top_wrap",
        include=INCLUDE,
        interrupt="evt_o",
        busy="busy_o",
        ties={"test_mode_i": 0},
        initial="zeros",
    )
    model = UnitModel(build_unit("ne16", rtl, folder, {}), rtl.latency)
    model.reset()
    return model


def read_rows() -> list[tuple[Layer, int, int]]:
    """Return each layer of the file with its cycles and wrong bytes."""
    with FILE.open(encoding="utf-8") as file:
        rows = [dict(row) for row in csv.DictReader(file)]
    names = [field.name for field in fields(Layer)]
    return [
        (
            Layer(row["mode"], *(int(row[name]) for name in names[1:])),
            int(row["cycles"]),
            int(row["wrong"]),
        )
        for row in rows
    ]


def measure(folder: Path) -> None:
    """Write the file anew: all layers on the RTL."""
    rtl = build(folder.resolve())
    rows: list[Row] = []
    for layer in layers():
        cycles, wrong = run(layer, rtl)
        rows.append({**asdict(layer), "cycles": cycles, "wrong": wrong})
    with FILE.open("w", encoding="utf-8", newline="") as written:
        writer = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rtl", type=Path, help="the folder of the checkouts")
    given = parser.parse_args()
    if given.rtl:
        measure(given.rtl)
    print("| kind | layers | of the same cycles | worst error | wrong bytes |")
    print("|---|---:|---:|---:|---:|")
    for mode in MODES:
        rows = [row for row in read_rows() if row[0].mode == mode]
        errors = [abs(Ne16().timing(layer.job, 0).cycles / cycles - 1) for layer, cycles, _ in rows]
        wrong = sum(row[2] for row in rows)
        same = errors.count(0)
        print(f"| {mode} | {len(rows)} | {same} | {max(errors):.2%} | {wrong} |")


if __name__ == "__main__":
    main()
