"""For all tests; and assembled programs on virtual devices."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import settings
from numpy.typing import NDArray

from covp.base.cache import cache_dir
from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import SourceText, get_toolchain
from covp.device.machine.native_caches import uncached_waits
from covp.device.stop import Stop
from covp.device.timing.trace import cost
from covp.device.virtual import VirtualDevice
from tests.changed import pytest_ignore_collect  # noqa: F401  (a hook of pytest)
from tests.laws import (  # noqa: F401  (a hook and a fixture of pytest)
    laws_start_no_process,
    pytest_itemcollected,
)
from tests.sampling import (  # noqa: F401  (hooks of pytest)
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)

# a busy machine is not a wrong result; examples are of the sample's seed, in CI, too
settings.register_profile("covp", deadline=None, derandomize=False)
settings.load_profile("covp")

PLATFORMS = {"arm": "cortex-m4", "riscv": "riscv32"}


@dataclass
class Loaded:
    """A program in a device's memory; ``labels`` are its global symbols."""

    device: VirtualDevice
    labels: dict[str, int]
    elf: Path

    def run(self, entry: str = "start", stop: str = "end", **options: float) -> Stop:
        return self.device.execute(self.labels[entry], self.labels[stop], **options)  # type: ignore[arg-type]


def assemble(platform_name: str, text: str, base: int | None = None) -> tuple[Path, int]:
    """The ELF file of assembly text linked at ``base`` (default: the flash)."""
    platform = load_platform(platform_name)
    is_arm = platform.core.architecture == "arm"
    head = "\n".join([".syntax unified" if is_arm else ".option norelax", ".text", ".balign 4"])
    # Labels stay local: to a global one, RISC-V's branches become a branch around a jump.
    body = ".global start"
    toolchain = get_toolchain("zig", platform.core)
    objects = toolchain.compile([SourceText("test.S", f"{head}\n{body}\n{text}\n")], flags=("-g",))
    base = platform.flash.start if base is None else base
    script = (
        f"ENTRY(start)\nSECTIONS {{ . = 0x{base:x}; .text : {{ KEEP(*(.text*)) }}"
        " /DISCARD/ : { *(.ARM.*) } }\n"
    )
    return toolchain.link(objects, script), base


def load(
    platform_name: str, text: str, base: int | None = None, device: VirtualDevice | None = None
) -> Loaded:
    elf, base = assemble(platform_name, text, base)
    device = device or VirtualDevice(load_platform(platform_name))
    content = ELFFile(io.BytesIO(elf.read_bytes()))
    code, table = (content.get_section_by_name(name) for name in (".text", ".symtab"))
    assert isinstance(table, SymbolTableSection) and code is not None
    device.write(base, code.data())
    labels = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols() if symbol.name}
    return Loaded(device, labels, elf)


@pytest.fixture
def program() -> Iterator[Callable[..., Loaded]]:
    """program("cortex-m4", assembly text) -> Loaded; the devices are closed afterwards."""
    made: list[Loaded] = []

    def make(platform: str, text: str, base: int | None = None) -> Loaded:
        made.append(load(platform, text, base))
        return made[-1]

    yield make
    for one in made:
        if one.device.board.is_open:
            obeys_the_law_of_time(one.device)
        one.device.close()


def obeys_the_law_of_time(device: VirtualDevice) -> None:
    """What ran block by block adds up to what was counted as it ran, exactly."""
    trace = device.counts.trace()
    assert trace.instructions == device.instructions
    assert trace.cycles == device.cycles
    waits = uncached_waits(device.platform)
    assert cost(trace, device.core.timing, waits) == device.cycles


@pytest.fixture(scope="session", autouse=True)
def tables_as_in_a_pipe() -> None:
    """pytest-xdist tells its workers a width of the terminal; commands would fold tables to it."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session", autouse=True)
def bytecode_is_kept(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where none may be written, each process that a test starts would compile all of covp."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        folder = tmp_path_factory.getbasetemp()
        folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")


@pytest.fixture(scope="session", autouse=True)
def zig_keeps_its_libraries() -> None:
    """Zig builds its C library for the host in half a minute: once, not in each test's cache."""
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(cache_dir("zig")))


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """A shell's background job ignores SIGINT, and so do the processes it starts."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def litert() -> Callable[[bytes, Sequence[NDArray[Any]]], list[NDArray[Any]]]:
    """A function: the outputs of a model file's content for inputs in the file's order."""
    interpreter = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="ai-edge-litert is not installed: no oracle"
    )

    def run(model: bytes, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        machine = interpreter.Interpreter(
            model_content=model,
            experimental_op_resolver_type=interpreter.OpResolverType.BUILTIN_REF,
        )
        machine.allocate_tensors()
        for detail, value in zip(machine.get_input_details(), inputs, strict=True):
            machine.set_tensor(detail["index"], value)
        machine.invoke()
        return [np.array(machine.get_tensor(d["index"])) for d in machine.get_output_details()]

    return run
