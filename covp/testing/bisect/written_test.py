"""`write_test`: a wrong layer as a pytest file of its own, with its C and its data."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from covp.base.document import Count, unit
from covp.chip.platform_file import load_platform, platform_names, read_platform
from covp.codegen.program import AcceleratorInstance
from covp.errors import CovpError, PlatformError
from covp.graph.equality import FLOAT_TOLERANCE
from covp.testing.bisect.layer_files import layer_files, needed_accelerators
from covp.testing.bisect.shrink import Shrunk
from covp.testing.bisect.walk import WrongLayer
from covp.testing.verify.printed_test import spec_of


class WrittenTest(msgspec.Struct, frozen=True):
    """A test on disk.

    Attributes:
        file: path of the pytest file; its C and data lie beside it
        used: of the layer's inputs that are not zero
        elements: of the inputs
    """

    file: str
    used: Annotated[Count, unit("elements")]
    elements: Annotated[Count, unit("elements")]

    @property
    def path(self) -> Path:
        """The pytest file."""
        return Path(self.file)


def write_test(small: Shrunk, folder: Path, platform: str | Path) -> WrittenTest:
    """Write ``test_NAME.py``, ``NAME.npz`` and the layer's C; the test fails until that is right.

    It needs covp, and the accelerator's own package where that is neither built in nor one file.

    Args:
        small: the wrong layer.
        folder: is made where it is missing.
        platform: as the user named it; where it is no built-in one, a file of it is written.

    Raises:
        OSError: the folder cannot be written.
    """
    trial = small.trial
    program = trial.bench.program
    layer = program.layers[trial.position]
    folder.mkdir(parents=True, exist_ok=True)
    files = layer_files(program, trial.position)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    memory = np.frombuffer(trial.image, np.uint8)
    data: dict[str, NDArray[Any]] = {"memory": memory}
    if trial.wanted is not None:
        data["wanted"] = trial.wanted
    np.savez_compressed(folder / f"{layer.function}.npz", **data)  # type: ignore[arg-type]
    where = _platform(platform, trial, folder)
    units = [
        _accelerator_expression(a, folder) for a in needed_accelerators(program, trial.position)
    ]
    path = folder / f"test_{layer.function}.py"
    path.write_text(_text(small, list(files), where, units), encoding="utf-8")
    return WrittenTest(str(path), small.used, small.elements)


def _platform(given: str | Path, trial: WrongLayer, folder: Path) -> str:
    """Return the platform as a Python expression; one that is not built in is written to a file."""
    platform = trial.bench.program.platform
    if platform.name in platform_names() and load_platform(platform.name) == platform:
        return repr(platform.name)
    path = folder / f"{platform.name}.yaml"
    keys = _plain_data(msgspec.to_builtins(platform))
    path.write_text(yaml.safe_dump(keys, sort_keys=False), encoding="utf-8")
    try:
        if read_platform(path) == platform:
            return f"HERE / {path.name!r}"
    except PlatformError:
        pass
    path.unlink()
    return repr(str(Path(given).resolve() if Path(given).is_file() else given))


def _plain_data(value: Any) -> Any:
    """Remove keys that are None from plain data."""
    if isinstance(value, dict):
        return {key: _plain_data(inner) for key, inner in value.items() if inner is not None}
    return [_plain_data(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _accelerator_expression(accelerator: AcceleratorInstance, folder: Path) -> str:
    """Return the accelerator as a Python expression; the file of a user's own is copied."""
    spec = spec_of(accelerator.backend)
    kind = type(accelerator.backend)
    text = repr(spec)
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:
        file = None
    if file is not None and f"{file}:" in spec:
        shutil.copy(file, folder)
        before, after = spec.split(file, 1)
        text = f"f{before + '{HERE}/' + Path(file).name + after!r}"
    return (
        f"AcceleratorInstance({accelerator.name!r}, find_backend({text}), "
        f"0x{accelerator.base:08x}, {accelerator.irq!r})"
    )


def _text(small: Shrunk, files: list[str], platform: str, units: list[str]) -> str:
    trial = small.trial
    bench, program = trial.bench, trial.bench.program
    layer = program.layers[trial.position]
    flags = ("-g1", *program.flags)
    imports = ["import numpy as np\n", "from covp import Session"]
    if units:
        imports += [
            "from covp.accelerator.registry import find_backend",
            "from covp.codegen.program import AcceleratorInstance",
            "from covp.runtime.accelerators import attach_accelerator",
        ]
    imported = "\n".join(imports)
    attach = "".join(
        f"        unit = {unit}\n"
        "        attach_accelerator(session.device.abilities.hardware, unit)\n"
        for unit in units
    )
    startup = ""
    if program.startup_function:
        startup = f'        session.call(symbols["{program.startup_function}"].value)\n'
    listed = "".join(f'    "{file}",\n' for file in files)
    return f'''"""{_summary(small)}

Written by `covp bisect`: the layer as it was compiled, in memory that holds its inputs
({small.used} of {small.elements} input elements are not zero).
"""

from pathlib import Path

{imported}

HERE = Path(__file__).parent
FILES = (
{listed})
FLAGS = {flags!r}
ARGUMENTS = {(0,) if layer.wrapper else layer.arguments!r}  # bytes from the start of the memory


def test_{layer.function}():
    data = np.load(HERE / "{layer.function}.npz")
    files = {{name: (HERE / name).read_text(encoding="utf-8") for name in FILES}}
    with Session({platform}, {bench.device!r}, {bench.toolchain!r}) as session:
{attach}        module = session.load_sources(files, "{layer.function}", flags=FLAGS)
        symbols = module.image.elf.symbols
        memory = module.address("{program.arena_symbol}")
        session.write(memory, data["memory"].tobytes())
{startup}        layer = symbols["{layer.wrapper or layer.function}"].value
        session.call(layer, *(memory + offset for offset in ARGUMENTS))
        after = np.frombuffer(session.read(memory, data["memory"].size), np.uint8)
{_checks(trial)}'''


def _summary(small: Shrunk) -> str:
    trial = small.trial
    program = trial.bench.program
    layer = program.layers[trial.position]
    who = f"Layer {layer.name} ({layer.op} on {layer.target}) of {program.name}, {trial.bench.name}"
    if trial.kind == "fault":
        return f"{who}: {trial.error}"
    try:
        index, got, wanted = first_difference(trial)
    except CovpError as error:
        return f"{who}: {error}"
    tensor = "output" if trial.kind == "wrong output" else f"tensor {trial.tensor}"
    return f"{who}: {tensor} {list(index)} is {got!r}, not {wanted!r}."


def first_difference(trial: WrongLayer) -> tuple[tuple[int, ...], Any, Any]:
    """Index, content and wanted content of the first wrong element. Raises DeviceFault."""
    assert trial.wanted is not None
    got = trial.got()
    wrong = trial.law(got, trial.wanted)
    index = tuple(int(i) for i in np.unravel_index(wrong[0], got.shape))
    return index, got[index].item(), trial.wanted[index].item()


def _checks(trial: WrongLayer) -> str:
    """Return the lines that compare: the first wrong element, then all of them."""
    if trial.wanted is None:
        return "    assert after.size == data['memory'].size  # the layer has come to its end\n"
    place = trial.bench.tensors.places[trial.tensor]
    index, got, wanted = first_difference(trial)
    at = f"[{', '.join(map(str, index))}]" if index else "[()]"
    lines = [
        'wanted = data["wanted"]',
        f"got = after[{place.offset} : {place.offset + place.nbytes}].view(wanted.dtype)",
        "got = got.reshape(wanted.shape)",
    ]
    if place.dtype.kind == "f" and trial.other is None:
        lines += [
            f"tolerance = {FLOAT_TOLERANCE} * np.abs(wanted[np.isfinite(wanted)]).max(initial=0)",
            f"assert abs(got{at} - wanted{at}) <= tolerance  # it is {got!r}, not {wanted!r}",
            "np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance)",
        ]
    elif place.dtype.kind != "f":
        lines += [
            f"assert got{at} == {wanted!r}  # it is {got!r}",
            "np.testing.assert_array_equal(got, wanted)",
        ]
    else:
        lines += [
            f"assert got{at}.tobytes() == wanted{at}.tobytes()  # it is {got!r}, not {wanted!r}",
            "assert got.tobytes() == wanted.tobytes()",
        ]
    return "".join(f"    {line}\n" for line in lines)
