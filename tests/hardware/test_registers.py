"""Register maps: their rules, and what is generated from them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import covp
from covp.errors import AcceleratorError, DeviceFault, PlatformError
from covp.hardware.clock import Clock
from covp.hardware.peripheral import Peripheral
from covp.hardware.peripheral_models import load_peripheral
from covp.hardware.registers import Field, Register, RegisterMap

MAP = RegisterMap(
    Register("LENGTH", 0x08, reset=7, doc="Elements."),
    Register(
        "CTRL",
        0x00,
        fields=[
            Field("START", 0, access="wo", on_write="start", doc="Begin."),
            Field("MODE", 4, 3, reset=5),
            Field("DONE", 31, access="w1c"),
        ],
    ),
    Register("ID", 0x0C, access="ro", reset=0xAB),
)


class Model(Peripheral):
    registers = MAP

    def __init__(self, limit: int = 1) -> None:
        self.started: list[int] = []
        self.limit = limit
        super().__init__()

    def start(self, value: int) -> None:
        self.started.append(self.get("CTRL", "MODE"))
        self.set("CTRL", "DONE", 1)


def test_lookup():
    assert [register.name for register in MAP] == ["CTRL", "LENGTH", "ID"]
    assert MAP["LENGTH"] is MAP.at(8)
    assert MAP.at(4) is None and "ID" in MAP and MAP.size == 16
    assert MAP["CTRL"].reset_value == 5 << 4
    assert MAP["CTRL"]["MODE"].get(0xFF) == 7 and MAP["CTRL"]["MODE"].put(0xFF, 1) == 0x9F


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Register("A", 2),
        lambda: Register("a", 0),
        lambda: Register("A", 0, reset=1 << 32),
        lambda: Register("A", 0, access="rx"),  # type: ignore[arg-type]
        lambda: Register("A", 0, fields=[Field("X", 0, 4), Field("Y", 3)]),
        lambda: Register("A", 0, fields=[Field("X", 0), Field("X", 3)]),
        lambda: Field("X", 30, 3),
        lambda: Field("X", 0, 2, reset=4),
        lambda: RegisterMap(Register("A", 0), Register("A", 4)),
        lambda: RegisterMap(Register("A", 0), Register("B", 0)),
    ],
)
def test_wrong_maps_are_rejected(wrong):
    with pytest.raises(ValueError):
        wrong()


def test_access_rules():
    model = Model()
    assert model.read_register(0, 4) == 5 << 4
    model.write_register(0, 4, 1 | 2 << 4)
    assert model.started == [2]
    assert model.read_register(0, 4) == 1 << 31 | 2 << 4  # START reads as 0
    model.write_register(0, 4, 1 << 31 | 3 << 4)
    assert model.read_register(0, 4) == 3 << 4
    with pytest.raises(DeviceFault, match="ID, which is read-only"):
        model.write_register(0xC, 4, 0)
    with pytest.raises(DeviceFault, match="sets reserved bits 0x100"):
        model.write_register(0, 4, 0x100)
    model.write_register(8, 4, 0xFFFFFFFF)
    model.reset()
    assert model.read_register(8, 4) == 7


def test_exact_time_is_asked_for_where_a_method_runs():
    model = Model()
    assert model.needs_exact_time(0, True)
    assert not model.needs_exact_time(0, False)
    assert not model.needs_exact_time(8, True)


@pytest.mark.process
def test_c_header_compiles_and_agrees(tmp_path):
    header = MAP.c_header("DEV", 0x50000000)
    (tmp_path / "dev.h").write_text(header)
    (tmp_path / "test.c").write_text(
        '#include "dev.h"\n'
        '_Static_assert(DEV_CTRL_MODE_MASK == 0x70, "");\n'
        '_Static_assert(DEV_CTRL_MODE(9) == 0x10, "");\n'
        '_Static_assert(DEV_CTRL_DONE_BIT == 31, "");\n'
        '_Static_assert(DEV_LENGTH_OFFSET == 8 && DEV_BASE == 0x50000000, "");\n'
        "uint32_t f(void);\n"
        "uint32_t f(void) { DEV_CTRL = DEV_CTRL_START_MASK; return DEV_ID; }\n"
    )
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "thumb-freestanding-eabi"]
    command += ["-mcpu=cortex_m4", "-Wall", "-Wextra", "-Werror", "-c", "test.c", "-o", "test.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "test.c").write_text(
        '#include "dev.h"\nvoid f(void);\nvoid f(void) { DEV_ID = 1; }\n'
    )
    wrong = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert wrong.returncode and "read-only" in wrong.stderr


def test_markdown():
    table = MAP.markdown().splitlines()
    assert table[2] == "| 0x00 | CTRL | 31:0 | read/write | 0x00000050 |  |"
    assert "| | .MODE | 6:4 | read/write | 5 |  |" in table
    assert "| 0x0c | ID | 31:0 | read-only | 0x000000ab |  |" in table
    assert len({line.count("|") for line in table}) == 1


def test_clock():
    now = [100]

    def skip(cycles):
        now[0] += cycles

    clock = Clock(lambda: now[0], skip, hertz=1000)
    assert clock.wait_until(150) == 50 and clock.now == 150
    assert clock.wait_until(150) == 0 and clock.wait_until(3) == 0
    assert clock.seconds == 0.15


def test_peripherals_by_name(tmp_path):
    assert type(load_peripheral("uart")).__name__ == "Uart"
    assert type(load_peripheral("covp.peripherals.uart:Uart")).__name__ == "Uart"
    path = tmp_path / "mine.py"
    path.write_text(
        "from covp.hardware.peripheral import Peripheral\n"
        "class Mine(Peripheral):\n"
        "    def __init__(self, size=1):\n        self.amount = size\n        super().__init__()\n"
    )
    mine: Any = load_peripheral(f"{path}:Mine", {"size": 3})
    assert mine.amount == 3
    mine = load_peripheral(str(path))
    assert mine.amount == 1


def test_wrong_names(tmp_path):
    with pytest.raises(PlatformError, match="unknown peripheral 'uarx': did you mean uart"):
        load_peripheral("uarx")
    with pytest.raises(PlatformError, match="no such file"):
        load_peripheral("nowhere/x.py:X")
    with pytest.raises(PlatformError, match="Uat is not a Peripheral class"):
        load_peripheral("uart:Uat")
    with pytest.raises(AcceleratorError, match=r"uart: .*speed"):
        load_peripheral("uart", {"speed": 1})
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_that_name\n")
    with pytest.raises(AcceleratorError, match="nothing_of_that_name"):
        load_peripheral(f"{broken}:X")


def test_the_protocol_s_header_has_the_numbers_of_the_model() -> None:
    from covp.hardware.job import PROTOCOL

    package = Path(covp.__file__).parent
    header = (package / "device_runtime" / "include" / "covp_job.h").read_text()
    words = re.search(r"enum \{ (.*?) \}", header)
    assert words is not None
    order = [register.name for register in sorted(PROTOCOL, key=lambda r: r.offset)]
    assert words[1].split(", ") == [f"COVP_{name}" for name in order]
    assert [register.offset for register in PROTOCOL] == [0, 4, 8]
    masks = {m[1]: int(m[2], 16) for m in re.finditer(r"define COVP_(\w+_\w+) (0x\w+)u\n", header)}
    assert len(masks) == 5
    for name, mask in masks.items():
        register, field = name.split("_")
        assert next(r for r in PROTOCOL if r.name == register)[field].mask == mask
