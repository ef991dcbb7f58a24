"""Constants in RAM, where the flash is slow (`--ram-weights`)."""

from __future__ import annotations

import re
import shutil
import subprocess

import msgspec
import pytest

from covp.building.core_costs import simulated_cycles
from covp.building.ram_weights import constant_bytes, with_ram_weights
from covp.chip.platform_file import load_platform
from covp.cli.main import main
from covp.evaluation import build, run
from covp.graph.graph import Graph
from tests.exploration.retiming.network import small_network

BOARD = "nucleo-l4r5zi"


@pytest.fixture(scope="module")
def network() -> Graph:
    return small_network()


def moved(note: str) -> tuple[int, int, int]:
    """Bytes, cycles then and before, as the line says them."""
    found = re.search(r"RAM weights: ([\d,]+) B, for ([\d,]+) instead of ([\d,]+) cycles", note)
    assert found, note
    bytes_, now, before = (int(text.replace(",", "")) for text in found.groups())
    return bytes_, now, before


@pytest.mark.costly
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_layers_are_faster_and_the_same(network, toolchain):
    if toolchain == "gcc" and shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("needs arm-none-eabi-gcc")
    plain = build(network, BOARD, toolchain=toolchain)
    made = build(network, BOARD, toolchain=toolchain, ram_weights=1 << 20)
    nbytes, now, before = moved(made.program.warnings[-1])
    result = run(made, check="output")
    assert result.matches_reference and now < before
    layers = result.profile.layers
    assert sum(layer.cycles or 0 for layer in layers) == now
    # what is in RAM is in flash as well, as initial values
    more = made.memory().ram_bytes - plain.memory().ram_bytes
    assert nbytes <= more < nbytes + 256
    assert abs(made.memory().flash_bytes - plain.memory().flash_bytes) < nbytes


@pytest.mark.costly
def test_overlap_and_patches_stay_as_planned(network):
    for units, changes in (
        (("qconv2d:wait=sleep",), {"overlap": True, "allow_slower": True}),
        ((), {"patches": "2"}),
    ):
        plain = build(network, BOARD, units, **changes)
        made = build(network, BOARD, units, ram_weights=1 << 20, **changes)
        assert [each.parts for each in made.program.layers] == [
            each.parts for each in plain.program.layers
        ]
        assert made.program.arena_bytes == plain.program.arena_bytes
        assert "RAM weights" in made.program.warnings[-1]
        assert run(made, check="output").matches_reference


@pytest.mark.costly
@pytest.mark.parametrize("most", [200, 700, 2000])
def test_no_more_than_is_allowed_is_moved_and_more_saves_more(network, most):
    few, some = (build(network, BOARD, ram_weights=bytes_) for bytes_ in (most, most + 1500))
    nbytes, now, _ = moved(few.program.warnings[-1])
    assert nbytes <= most and now >= moved(some.program.warnings[-1])[1]


@pytest.mark.costly
def test_nothing_moves_where_it_saves_nothing(network):
    plain = build(network, "cortex-m4")
    for platform, most, says in (
        ("cortex-m4", 1 << 20, "nothing is faster"),
        (BOARD, 63, "63 B are no room"),
        ("host", 1 << 20, "not known"),
    ):
        made = build(network, platform, ram_weights=most)
        assert says in made.program.warnings[-1]
    assert build(network, "cortex-m4", ram_weights=1 << 20).program.sources == plain.program.sources


@pytest.mark.costly
def test_a_memory_without_room_keeps_its_program(network):
    board = load_platform(BOARD)
    ram = msgspec.structs.replace(board.ram, size=8192)
    small = msgspec.structs.replace(board, memory=(board.flash, ram), stack=1024)
    made = build(network, small, ram_weights=1 << 20)
    assert run(made, check="output").matches_reference
    assert made.memory().ram_bytes + small.stack_bytes <= 8192


def test_constants_of_layers_are_counted_and_stay_constants(network):
    program = build(network, BOARD).program
    sizes = [constant_bytes(program, layer) for layer in program.layers]
    every = with_ram_weights(program, range(len(sizes)))
    assert sum(sizes) > 1000
    assert not any(constant_bytes(every, layer) for layer in every.layers)
    cycles = simulated_cycles(every)
    assert cycles is not None and len(cycles) == len(sizes)


def call(*arguments: str) -> object:
    """The exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code


@pytest.mark.costly
def test_exported_firmware_copies_them_at_start(tmp_path, capsys):
    folder = tmp_path / "kws"
    assert call("export", "kws", "-p", BOARD, "--ram-weights", "24K", "-o", str(folder)) == 0
    assert "RAM weights" in capsys.readouterr().err
    subprocess.run(["make", "-j2"], cwd=folder, check=True, capture_output=True)
    assert call("firmware", str(folder / "firmware.elf"), "-p", BOARD) == 0
    assert "pass" in capsys.readouterr().out


@pytest.mark.parametrize(("size", "says"), [("64Q", "not a size"), ("K", "size")])
def test_sizes_on_the_command_line(size, says, capsys):
    assert call("run", "kws", "-p", BOARD, f"--ram-weights={size}") == 2
    assert says in capsys.readouterr().err
