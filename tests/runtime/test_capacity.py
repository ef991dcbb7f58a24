"""A program that does not fit: the error names the region, the excess, and what really helps."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

import covp
from covp import CapacityError, Session, load_platform
from covp.chip.platform_file import Platform, Region
from covp.graph.attributes import FullyConnected
from covp.graph.graph import Graph
from covp.graph.tflite import read_tflite
from covp.graph.zoo.builder import GraphBuilder
from covp.graph.zoo.tflite_writer import write_tflite


def dynamic_range(rows: int) -> Graph:
    """A layer of ``rows`` x 256 int8 weights under float activations."""
    builder = GraphBuilder("dynamic")
    x = builder.input((1, 256), np.float32)
    weights = builder.constant(np.ones((rows, 256), np.int8), 0.5)
    y = builder.add("FULLY_CONNECTED", x, weights, None, attributes=FullyConnected())
    return read_tflite(write_tflite(builder.graph(y)))


def refusal(model: Graph | str, platform: Platform) -> str:
    with Session(platform) as session, pytest.raises(CapacityError) as caught:
        session.load(covp.compile(model, platform))
    text = str(caught.value)
    assert "\n" not in text
    return text


def with_memory(name: str, flash: int, ram: int, **keys: object) -> Platform:
    """A platform with a Cortex-M4F and so many KB."""
    memory = (
        Region("rom", "flash", 0x08000000, flash << 10),
        Region("sram", "ram", 0x20000000, ram << 10),
    )
    return msgspec.structs.replace(load_platform("nrf52840"), name=name, memory=memory, **keys)


def named(text: str) -> list[str]:
    return re.split(", ", text.partition("platforms with room: ")[2].partition(";")[0])


@pytest.mark.costly
def test_the_platforms_that_are_named_have_room() -> None:
    text = refusal("kws", load_platform("hifive1"))
    assert "largest free piece of ram (16384 bytes)" in text
    assert named(text)
    for name in named(text):
        with Session(name) as session:
            session.load(covp.compile("kws", name))


def test_flash_too_small_for_code_names_the_smaller_schedules_and_the_region() -> None:
    text = refusal("resnet", with_memory("tight", 96, 256))
    assert "rom (98304 bytes)" in text and "--optimize size" in text
    assert "a further region of kind flash" in text and "nucleo-f401re" in named(text)
    assert "--optimize size" not in refusal("resnet", with_memory("tiny", 16, 256))


def test_the_stack_is_named_where_it_is_what_is_missing() -> None:
    arena = covp.compile("kws", with_memory("ample", 512, 256)).arena_bytes
    kilobytes = (arena // 4096 + 2) * 4
    stack = (kilobytes * 1024 - arena) // 16 * 16
    text = refusal("kws", with_memory("small", 512, kilobytes, stack=stack))
    assert f"a smaller `stack` in the platform file, now {stack} bytes" in text
    roomy = with_memory("small", 512, kilobytes, stack=1024)
    with Session(roomy) as session:
        session.load(covp.compile("kws", roomy))
    assert "`stack`" not in refusal("kws", with_memory("smaller", 512, 8))


@pytest.mark.costly
def test_a_dynamic_range_model_expanded_to_float_is_named() -> None:
    graph = dynamic_range(1500)
    assert graph.expanded_bytes == 3 * 1500 * 256
    text = refusal(graph, load_platform("nrf52840"))
    assert f"(dynamic range) take {3 * 1500 * 256} bytes more as float32" in text
    assert "dynamic range" not in refusal("kws", load_platform("hifive1"))


@pytest.mark.slow
def test_nothing_is_promised_where_nothing_has_room(tmp_path: Path) -> None:
    text = refusal(dynamic_range(6000), load_platform("nrf52840"))
    assert "no platform of covp's with such a core has room" in text
