"""Figures as files: pictures that decode, with the layers' names in them."""

import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from covp.evaluation.documents import Run
from covp.report.figures.layers import layers_figure
from covp.report.figures.roofline import roofline_figure
from covp.report.page import Figure
from covp.report.save import figures_of, save_figures
from covp.report.sweep_page import Sweep, sweep_sections
from tests.report import sweep_rows


def figures(run: Run) -> list[Figure]:
    found = [layers_figure(run), roofline_figure(run)]
    return [figure for figure in found if figure is not None]


def pixels(content: bytes) -> tuple[int, int, bytes]:
    """Width, height and the filtered rows of a PNG (ISO/IEC 15948) of 8-bit RGBA."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack(">IIBB", content[16:26])
    assert (depth, colour) == (8, 6)
    data, at = b"", 8
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        body = content[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", content[at + 8 + length : at + 12 + length])
        assert check == zlib.crc32(kind + body)
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    return width, height, zlib.decompress(data)


@pytest.mark.costly
def test_png(tmp_path: Path, kws: Run) -> None:
    paths = save_figures(figures(kws), tmp_path / "made", "png")
    assert [path.name for path in paths] == ["layers.png", "roofline.png"]
    for path in paths:
        width, height, rows = pixels(path.read_bytes())
        assert width > 1200 and height > 500 and len(rows) == height * (4 * width + 1)
        assert len({*rows}) > 50  # it is not blank


def test_svg(tmp_path: Path, kws: Run) -> None:
    layers, _ = save_figures(figures(kws), tmp_path, "svg")
    root = ElementTree.parse(layers).getroot()
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {f"{layer.index} {layer.op}" for layer in kws.layers} <= texts
    assert "Cycles by layer" in texts and "core cycles" in texts


@pytest.mark.costly
def test_points_of_a_sweep_are_in_the_files(tmp_path: Path) -> None:
    rows = [*sweep_rows.grid(models=("kws", "vww"))]
    found = figures_of(sweep_sections([Sweep("swept", rows)]))
    figure = next(figure for figure in found if figure.name == "seconds-area_um2")
    (path,) = save_figures([figure], tmp_path, "svg")
    text = path.read_text()
    known = [row for row in rows if row["seconds"] and row["area_um2"]]
    assert text.count("<path") > len(known) > 100
    assert ">kws</text>" in text and ">vww</text>" in text
