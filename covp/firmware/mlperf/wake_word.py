"""The firmware of sww01, the streaming wake word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from covp.chip.platform_file import Platform
from covp.codegen.program import Program
from covp.compilers.toolchain import runtime_dir
from covp.errors import ModelError
from covp.evaluation import Build
from covp.firmware import Application, Library, Project, link_project
from covp.firmware.mlperf.firmware import PROTOCOL, model_header
from covp.firmware.mlperf.log_mel import BANDS, tables_header
from covp.hardware.peripheral_models import load_peripheral

NAME = "sww01"
WINDOW_ROWS = 30
"""Rows of features that an output depends on."""
NO_WORD = -128
"""The output of a frame before the window is full."""
THRESHOLD = 115
"""An output above it says that there was the word; evaluate.py of the training has 0.95."""

IO_MODELS = {"microphone": "i2s_microphone", "pins": "gpio"}
"""Name on the bus to peripheral model, in the order of `io_bases` and `io_lines`."""

_SOURCES = (
    "log_mel.c", "log_mel.h", "virtual_io.c", "wake_word.c", "wake_word.h",
)  # fmt: skip


def io_lines(platform: Platform) -> tuple[int, int]:
    """Return the interrupt lines of the audio input and of the pins: after the accelerators'."""
    first = (platform.accelerators.irq or 0) if platform.accelerators else 0
    return first + 4, first + 5


def io_bases(platform: Platform) -> tuple[int, int]:
    """Return the bus addresses of the audio input and of the pins: after the accelerators'."""
    base = platform.accelerators.base if platform.accelerators else 0x50000000
    return base + 0x40000, base + 0x41000


def build_wake_word(made: Build) -> Path:
    """Compile and link the firmware of a network: an ELF file in covp's cache.

    Args:
        made: the network, in its streaming form or plain.

    Raises:
        ModelError: it is no network of int8 on rows of `BANDS` features.
        CapacityError: it does not fit the platform.
        ToolchainError: the firmware does not.
    """
    _check(made.program)
    project = Project.of(made)
    application = wake_word_application(project.library)
    return link_project(replace(project, application=application))


def wake_word_application(library: Library) -> Application:
    """Return the application part of the firmware, beside library, board support and start-up.

    Args:
        library: the network's.

    Raises:
        ModelError: it is no network of int8 on rows of `BANDS` features.
    """
    program = library.program
    _check(program)
    folder = runtime_dir() / "mlperf_tiny"
    files = {name: (folder / name).read_text(encoding="utf-8") for name in (*PROTOCOL, *_SOURCES)}
    files["main.c"] = (folder / "wake_word_main.c").read_text(encoding="utf-8")
    files["tiny_model.h"] = model_header(library, NAME, "energy")
    quantization = program.inputs[0].quantization
    assert quantization is not None
    scale, zero_point = quantization.scale[0], quantization.zero_point[0]
    files["log_mel_tables.h"] = tables_header(float(scale), int(zero_point))
    places = zip(
        IO_MODELS.items(), io_bases(program.platform), io_lines(program.platform), strict=True
    )
    for (name, model), base, line in places:
        header = load_peripheral(model).registers.c_header(name.upper(), base)
        files[f"{name}.h"] = f"{header}\n#define {name.upper()}_IRQ {line}u\n"
    about = (
        f"It speaks the serial protocol of MLPerf Tiny's host runner, as model {NAME}: `start%`",
        "begins to detect the wake word in the audio input, `stop%` ends it. virtual_io.c has pins",
        "and audio of covp's virtual board; a port to another board replaces it.",
    )
    return Application(files, about)


def is_wake_word(program: Program) -> bool:
    """Return whether a program is a network that this firmware takes."""
    tensors = (*program.inputs, *program.outputs)
    sizes = [int(np.prod(tensor.shape)) for tensor in tensors]
    fits = len(sizes) == 2 and sizes[0] in (BANDS, WINDOW_ROWS * BANDS)
    quantized = all(tensor.quantization is not None for tensor in tensors)
    return fits and quantized and all(tensor.dtype == np.int8 for tensor in tensors)


def _check(program: Program) -> None:
    if not is_wake_word(program):
        raise ModelError(
            f"{program.name}: {NAME} takes a network with one int8 input of {BANDS} features "
            f"(streaming) or {WINDOW_ROWS} rows of them, and one int8 output"
        )
