"""Cores are data: each one compiles and runs, and none is recognized by its name."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

import covp
from covp.chip.cores import Core, all_cores, find_core
from covp.chip.platform_file import Platform, load_platform
from covp.device.debug.core_registers import CoreRegisters
from covp.device.debug.riscv_debug import DebugModule
from covp.device.debug.target import DebugTarget
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceFault
from covp.runtime.session import Session
from tests.conftest import PLATFORMS, load

EMULATED = [core for core in all_cores() if core.architecture != "x86"]
MADE_UP = "xyz-1"


def board(core: Core) -> Platform:
    """A board that exists with the core changed, and no peripherals: it may have fewer lines."""
    existing = load_platform(PLATFORMS[core.architecture])
    own = str(core.folders[0]) if core.content else core.name
    return msgspec.structs.replace(existing, core_name=own, peripherals=())


@pytest.fixture
def made_up(tmp_path: Path) -> Core:
    """An RV32IMAFC core with a name that says nothing."""
    folder = tmp_path / MADE_UP
    folder.mkdir()
    (folder / "core.yaml").write_text("like: rv32imafc\n")
    return find_core(str(folder))


KERNEL = """
#include <stdint.h>
int32_t covp_dot(const int8_t *x, const int8_t *w, int32_t count) {
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++) sum += x[i] * w[i];
    return sum / 3;
}
"""


@pytest.mark.process
@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("core", EMULATED, ids=lambda core: core.name)
def test_every_core_compiles_and_runs(core: Core, toolchain: str) -> None:
    if toolchain == "gcc" and shutil.which(f"{core.gcc_prefix}gcc") is None:
        pytest.skip("no GCC for this core")
    x, w = [3, -7, 100, -128, 5], [9, 8, -7, 127, 1]
    with Session(board(core), toolchain=toolchain) as session:
        module = session.load_c(KERNEL)
        given = [session.tensor(np.array(values, np.int8)) for values in (x, w)]
        result = module["covp_dot"](*given, len(x)).result()
    total = sum(a * b for a, b in zip(x, w, strict=True))
    assert result == -(-total // 3)  # C divides towards zero; the sum is negative


# -- the instruction set decides -------------------------------------------------------------------

LETTERS = {
    "rv32imc": 0x40001104,
    "rv32imac": 0x40001105,
    "rv32imafc": 0x40001125,
    "cv32e40p": 0x40001104,
    "ibex": 0x40001104,
    "ibex-small": 0x40001104,
    "picorv32": 0x40001104,
    "serv": 0x40000100,
    "vexriscv": 0x40001100,
    "vexriscv-lite": 0x40001100,
    "vexriscv-full": 0x40001100,
    "vexriscv-cfu": 0x40001100,
    "vexriscv-imac": 0x40001105,
    "e31": 0x40001105,
}  # privileged ISA 20211203, table 3.2: A is bit 0, C 2, F 5, I 8, M 12


def misa_of(device: VirtualDevice) -> int:
    with DebugTarget(device) as target:
        module = DebugModule(target)
        module.write(0x10, 1)  # dmcontrol.dmactive
        module.write(0x10, 1 << 31 | 1)  # haltreq
        module.write(0x17, 2 << 20 | 1 << 17 | 0x301)  # read a 32-bit register to data0
        return module.read(0x04)


def test_misa() -> None:
    assert LETTERS.keys() == {core.name for core in EMULATED if core.architecture == "riscv"}
    for name, expected in LETTERS.items():
        with VirtualDevice(board(find_core(name))) as device:
            assert misa_of(device) == expected
            assert CoreRegisters(device).read("csr0x301") == expected


ATOMIC = ".option arch, +a\nstart:\n lui a1, 0x80000\n amoadd.w a0, a1, (a1)\nend:\n j end"
COMPRESSED = ".option arch, +c\nstart:\n c.li a0, 5\nend:\n j end"


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "text", "runs"),
    [
        ("rv32imac", ATOMIC, True),
        ("e31", ATOMIC, True),
        ("cv32e40p", ATOMIC, False),
        ("ibex", COMPRESSED, True),
        ("vexriscv", COMPRESSED, False),
        (MADE_UP, ATOMIC, True),
        (MADE_UP, COMPRESSED, True),
    ],
)
def test_only_instructions_that_the_core_implements(
    made_up: Core, name: str, text: str, runs: bool
) -> None:
    with VirtualDevice(board(made_up if name == MADE_UP else find_core(name)), timeout=5) as device:
        loaded = load("riscv32", text, device=device)
        if runs:
            assert loaded.run().instructions == text.count("\n ") - 1
        else:
            with pytest.raises(DeviceFault, match=f"illegal instruction.*{name} does not"):
                loaded.run()


@pytest.mark.process
def test_a_made_up_name_works_everywhere(made_up: Core) -> None:
    with VirtualDevice(board(made_up)) as device:
        assert misa_of(device) == LETTERS["rv32imafc"]
        assert "f0" in CoreRegisters(device).names
    test_every_core_compiles_and_runs(made_up, "zig")
    assert made_up.isa.counts_cycles


def test_cycle_counters_by_instruction_set() -> None:
    without = {core.name for core in all_cores() if not core.isa.counts_cycles}
    assert without == {"cortex-m0", "cortex-m0plus", "x86-64"}


# -- no code decides by a name ---------------------------------------------------------------------


def decides_by_name(node: ast.AST) -> bool:
    """A comparison, an index or a string method on ``core.name`` or ``core_name``."""

    def is_name(part: ast.AST) -> bool:
        text = ast.unparse(part)
        return isinstance(part, ast.Attribute | ast.Name) and (
            text.endswith("core.name") or text.endswith("core_name")
        )

    if isinstance(node, ast.Compare):
        return any(is_name(part) for part in (node.left, *node.comparators))
    if isinstance(node, ast.Subscript):
        return is_name(node.slice) or is_name(node.value)
    return isinstance(node, ast.Attribute) and is_name(node.value)


@pytest.mark.parametrize(
    "text", ["core.name == 'a'", "self.core.name[4:]", "core.name.strip()", "X[core.name]"]
)
def test_the_rule_finds(text: str) -> None:
    assert any(decides_by_name(node) for node in ast.walk(ast.parse(text)))


def test_no_code_decides_by_a_core_s_name() -> None:
    package = Path(covp.__file__).parent
    found = [
        f"{path.relative_to(package)}:{getattr(node, 'lineno', 0)}"
        for path in sorted(package.rglob("*.py"))
        if path.name != "cores.py" and re.search(r"core[._]name", text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if decides_by_name(node)
    ]
    assert found == []
