"""The unit of ``covp new accelerator --rtl``: whole models and layers, on every bus."""

from __future__ import annotations

from pathlib import Path

import pytest

from covp.accelerator.registry import at_folder, find_backend
from covp.chip.platform_file import load_platform
from covp.cli.main import covp
from covp.errors import ToolchainError, UsageError
from covp.evaluation import Evaluation, Sample, build, run
from covp.testing.verify import verify
from tests.accelerator.rtl.unit_project import change, new_unit, with_two_ports
from tests.device.rtl.conftest import need_rtl

BUSES = [
    *(("apb", memory) for memory in ("obi", "ahb-lite", "tl-ul", "axi4")),
    *((registers, "axi4") for registers in ("axi4-lite", "wishbone", "obi")),
    ("hwpe", "tcdm"),
]


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the unit on APB and OBI."""
    return new_unit(tmp_path_factory.mktemp("unit"))


@pytest.mark.slow
@pytest.mark.parametrize(("registers", "memory"), BUSES)
def test_every_bus(registers: str, memory: str, tmp_path: Path) -> None:
    verdict = verify(str(new_unit(tmp_path, registers, memory)), examples=40, against_rtl=True)
    assert verdict.failure is None
    assert verdict.accepted == verdict.tried
    assert verdict.abuses > 20
    assert len(verdict.times) > 100


def _run(platform: str, accelerator: str, device: str = "virtual") -> Evaluation:
    made = build("toycar", load_platform(platform), [accelerator])
    found = run(made, Sample.random(made.graph, 0), device=device)
    assert found.matches_reference
    return found


def _jobs(found: Evaluation) -> list[int]:
    return [entry.offload.compute for entry in found.profile.layers if entry.offload]


@pytest.mark.costly
def test_a_model_has_the_bits_of_the_reference_and_the_cycles_of_the_rtl(unit: Path) -> None:
    python = _run("riscv32", str(unit))
    rtl = _run("riscv32", f"{unit}:rtl=yes,rtl_check=true")
    sleeping = _run("riscv32", f"{unit}:rtl={_top(unit)},wait=sleep")
    assert [entry.instructions for entry in rtl.profile.layers] == [
        entry.instructions for entry in python.profile.layers
    ]
    assert _jobs(rtl) == _jobs(sleeping)
    # 128 outputs: each a row of 640 or 8 weights, of which four come in a cycle, and 14 cycles more
    first, fifth = _jobs(rtl)[0], _jobs(rtl)[5]
    assert 128 * (640 // 4 + 12) < first < 128 * (640 // 4 + 16)
    assert 128 * (8 // 4 + 11) < fifth < 128 * (8 // 4 + 15)


def _top(unit: Path) -> Path:
    return unit.with_suffix(".v")


@pytest.mark.costly
def test_the_core_as_rtl_beside_the_unit_as_rtl(unit: Path) -> None:
    need_rtl("ibex")
    virtual, rtl = (_run("ibex", f"{unit}:rtl=yes", device) for device in ("virtual", "rtl"))
    assert virtual.profile.instructions == rtl.profile.instructions
    assert virtual.profile.cycles == pytest.approx(rtl.profile.cycles, rel=0.001)


@pytest.mark.costly
@pytest.mark.parametrize("wait", ["poll", "sleep"])
def test_exact_beside_the_core_and_the_cores_rtl(unit: Path, wait: str) -> None:
    need_rtl("ibex")
    fast = _run("ibex", f"{unit}:rtl=yes,wait={wait}")
    exact = f"{unit}:rtl=yes,wait={wait},rtl_mode=exact"
    virtual, rtl = (_run("ibex", exact, device) for device in ("virtual", "rtl"))
    assert _jobs(virtual) == _jobs(rtl) == _jobs(fast)
    traffic = [entry.offload and entry.offload.memory for entry in virtual.profile.layers]
    assert traffic == [entry.offload and entry.offload.memory for entry in fast.profile.layers]
    assert virtual.profile.cycles == pytest.approx(fast.profile.cycles, rel=0.002)
    # the core's RTL wakes some cycles later
    least = 0 if wait == "poll" else 0.001
    assert virtual.profile.cycles == pytest.approx(rtl.profile.cycles, rel=least)
    if wait == "poll":  # each look at STATUS is one, in place of a skip to the end of the job
        assert virtual.profile.instructions == rtl.profile.instructions
        assert (virtual.profile.instructions or 0) > 10 * (fast.profile.instructions or 0)


def test_the_verilog_is_written_anew_when_the_job_has_changed(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text().replace('number("HIGH", -128, 127', 'number("HIGH", -7, 0x7FFF')
    changed = tmp_path / unit.name
    changed.write_text(text)
    words = ["new", "rtl", str(changed), "-o", str(tmp_path), "--registers", "wishbone"]
    covp.main(words, standalone_mode=False)
    made = (tmp_path / "mac8_registers.v").read_text()
    assert "$signed(next_HIGH) < -32'sd7 || $signed(next_HIGH) > 32'sd32767" in made
    assert "s_stb_i" in made
    assert ".s_stb_i(s_stb_i)" in (tmp_path / "mac8.v").read_text()


@pytest.mark.costly
def test_a_changed_file_beside_is_built_anew(tmp_path: Path) -> None:
    unit = new_unit(tmp_path)
    assert find_backend(f"{unit}:rtl={_top(unit)}").make_peripheral() is not None
    change(unit, "_core", "integer lane;", "integer lane")
    with pytest.raises(ToolchainError, match=r"mac8_core\.v:\d+:\d+: syntax error"):
        find_backend(f"{unit}:rtl={_top(unit)}").make_peripheral()


def test_a_path_in_a_sweep_is_that_of_its_file() -> None:
    assert at_folder("m=unit.py:rtl=rtl/unit.v,wait=sleep", Path("/f")) == (
        "m=/f/unit.py:rtl=/f/rtl/unit.v,wait=sleep"
    )
    assert at_folder("unit.py:rtl=yes", Path("/f")) == "/f/unit.py:rtl=yes"


@pytest.mark.costly
def test_what_is_wrong_is_said_in_one_line(unit: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rtl=none\.v is no Verilog file, nor yes or no"):
        find_backend(f"{unit}:rtl=none.v")
    plain = tmp_path / "plain.py"
    text = unit.read_text().splitlines(keepends=True)
    plain.write_text("".join(line for line in text if "rtl = " not in line))
    with pytest.raises(UsageError, match=r"mac8 has no RTL of its own: rtl=FILE\.v"):
        _run("riscv32", f"{plain}:rtl=yes")
    with pytest.raises(UsageError, match="leave out rtl_mode"):
        verify(f"{unit}:rtl=yes,rtl_mode=exact")
    with pytest.raises(UsageError, match="rtl_check is for rtl_mode=fast"):
        _run("riscv32", f"{unit}:rtl=yes,rtl_mode=exact,rtl_check=yes")
    with pytest.raises(UsageError, match="qconv2d has no declared job"):
        verify("qconv2d", against_rtl=True)
    with pytest.raises(UsageError, match="no parameter 'rtl'"):
        find_backend("qconv2d:rtl=unit.v")


@pytest.mark.costly
def test_several_memory_ports(tmp_path: Path) -> None:
    verdict = verify(str(with_two_ports(tmp_path)), examples=20, against_rtl=True)
    assert verdict.failure is None and verdict.abuses > 20 and len(verdict.times) > 50


@pytest.mark.costly
def test_a_busy_port_that_is_not_waited_for_is_found(tmp_path: Path) -> None:
    unit = with_two_ports(tmp_path)
    file = unit.parent / "two_ports.v"
    text = file.read_text().replace("b_req && b_gnt;", "b_req;")
    file.write_text(text)
    verdict = verify(str(unit), examples=20, against_rtl=True)
    assert verdict.failure is not None
