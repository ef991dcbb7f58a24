"""The processor cores that covp knows: a folder of data for each, in ``platforms/cores``.

    core.yaml       instruction set, compiler flags, the core that it is like (`CoreFile`)
    timing.yaml     the timing model (`covp.device.timing`); accuracy.yaml its known errors
    rtl.yaml        where its RTL is (`covp.device.rtl.cores`); wrapper.sv the ports around it
    area.yaml       its size after synthesis (`covp.chip.energy.core_costs`)

Only core.yaml has to be there. A platform file names a core, or the path of a user's folder of that
kind. What a folder does not say is as in that of the core that it is `like`, but for the area.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from covp.base.cache import content_key
from covp.base.installed import CORES, find_brought, single
from covp.base.struct_errors import place_of, readable
from covp.base.yaml_files import read_yaml
from covp.chip.isa import Isa
from covp.errors import PlatformError, near_misses

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*$")
_TIMING_FILE = re.compile(r"(.*\.ya?ml|(.*\.py):\w+)$")
_MODEL_NAME = re.compile(r"^name: *(\S+)", re.M)
_FLAGS = ("zig_target", "zig_cpu", "zig_flags", "gcc_prefix", "gcc_flags", "unicorn_cpu")
_OTHERS = ("allows_misaligned", "flushes_data_cache")


class CoreFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of ``core.yaml``.

    Attributes:
        isa: the instruction set, see `Isa.parse`.
        description: one line.
        like: a core's name, or the path of its folder from this one: what this folder does not say
            is as there, but for compilers' flags where it says ``isa``.
        timing: the timing model in place of ``timing.yaml``, as a platform file names it.
        zig_target, zig_cpu, zig_flags, gcc_prefix, gcc_flags, unicorn_cpu, allows_misaligned,
            flushes_data_cache: see `Core`; by default what follows from the instruction set.
    """

    isa: str | None = None
    description: str = ""
    like: str | None = None
    timing: str | None = None
    zig_target: str | None = None
    zig_cpu: str | None = None
    zig_flags: tuple[str, ...] | None = None
    gcc_prefix: str | None = None
    gcc_flags: tuple[str, ...] | None = None
    unicorn_cpu: str | None = None
    allows_misaligned: bool | None = None
    flushes_data_cache: bool | None = None


@dataclass(frozen=True)
class Core:
    """A processor core: an instruction set, a microarchitecture and how to compile for it.

    Attributes:
        name: of its folder.
        isa: the instruction set.
        features: those that kernels may use: "dsp" (SMLAD, SXTB16, SMMULR), "fpu" (single
            precision in hardware), "mull" (32x32 to 64 bit multiply), "unaligned" (word and
            halfword loads at any address).
        timing: its timing model, as `covp.device.timing.model.load_timing` takes it, used for
            estimated cycles; None: there is none.
        zig_target, zig_cpu: of ``zig cc -target T -mcpu=C``.
        zig_flags: further ones of ``zig cc``.
        gcc_prefix, gcc_flags: of the GCC cross compiler, e.g. "arm-none-eabi-"; "" where only zig
            can be used.
        unicorn_cpu: name of the CPU model constant, without ``UC_CPU_ARM_``/``UC_CPU_RISCV32_``;
            its identification registers are what debuggers see.
        description: one line.
        like: the cores with the same features as far as integer kernels use them, nearest first:
            the best schedules there are a good guess here.
        allows_misaligned: loads and stores at any address work, if slowly; else those that kernels
            may not use ("unaligned") are faults.
        flushes_data_cache: VexRiscv's instruction 0x500f empties the data cache, which writes
            through; else RISC-V cores have the Zicbom extension where they have a data cache.
        folders: of its data, and those of the cores that it is like.
        content: key of the content of a user's folder; "" for covp's own cores.
    """

    name: str
    isa: Isa
    features: frozenset[str]
    timing: str | None
    zig_target: str
    zig_cpu: str
    gcc_prefix: str
    gcc_flags: tuple[str, ...]
    unicorn_cpu: str
    zig_flags: tuple[str, ...] = ()
    description: str = ""
    like: tuple[str, ...] = ()
    allows_misaligned: bool = False
    flushes_data_cache: bool = False
    folders: tuple[Path, ...] = ()
    content: str = ""

    @property
    def key(self) -> str:
        """The name in records and caches, another one for each content of a user's folder."""
        return f"{self.name}-{self.content}" if self.content else self.name

    @property
    def needs_alignment(self) -> bool:
        """True if every misaligned load or store is a fault."""
        return not (self.allows_misaligned or self.has("unaligned"))

    @property
    def architecture(self) -> Literal["arm", "riscv", "x86"]:
        """The architecture of the instruction set."""
        return self.isa.architecture

    def has(self, feature: str) -> bool:
        """Return whether kernels may use the feature."""
        return feature in self.features


def cores_dir() -> Path:
    """Return the folder with the folders of the cores that come with covp."""
    return Path(__file__).parents[1] / "platforms" / "cores"


def core_names() -> list[str]:
    """Return the names of the cores that come with covp."""
    return sorted(path.parent.name for path in cores_dir().glob("*/core.yaml"))


def all_cores() -> list[Core]:
    """Return the cores that come with covp, and those of other packages."""
    return [find_core(name) for name in sorted({*core_names(), *single(CORES)})]


@functools.cache
def timing_files() -> dict[str, Path]:
    """Return the files of the timing models that come with covp, by the name of the model.

    A file's key ``name`` is the name; without one it is that of the core.
    """
    return {_model_name(path): path for path in sorted(cores_dir().glob("*/timing.yaml"))}


def find_core(name: str) -> Core:
    """Return a core by its name or the path of its folder.

    Raises:
        PlatformError: there is no such core, with near misses; or a file of its folder is wrong.
    """
    if is_core_path(name):
        return _user_core(Path(name))
    found = find_brought(CORES, name) if name not in core_names() else None
    return _covp_core(name) if found is None else _user_core(found.folder() / name)


def is_core_path(name: str) -> bool:
    """Return whether a platform file's ``core`` is the path of a folder, not a name."""
    return "/" in name


def timing_file(timing: str | None) -> Path | None:
    """Return the user's file of a timing model: YAML, or that of "path/to/file.py:NAME"."""
    found = _TIMING_FILE.match(timing or "")
    return Path(found[2] or found[1]) if found else None


@functools.cache
def _covp_core(name: str) -> Core:
    if name not in core_names():
        known = near_misses(name, {*core_names(), *single(CORES)})
        raise PlatformError(f"unknown core {name!r:.80}: {known}")
    return _read(cores_dir() / name)


def _user_core(folder: Path, *children: Path) -> Core:
    """Return the core of a folder, always read anew; ``children`` are folders that are like it."""
    folder = folder.resolve()
    if folder.parent == cores_dir().resolve():
        return _covp_core(folder.name)
    if folder in children:
        raise PlatformError(f"{folder / 'core.yaml'}: like: it leads back to this folder")
    if not (folder / "core.yaml").is_file():
        raise PlatformError("a core is a folder with a file core.yaml; there is none", where=folder)
    if not _NAME.match(folder.name) or folder.name in core_names():
        raise PlatformError(
            "a core is called as its folder: letters, digits and -_+. alone, and not as "
            "one of covp's cores; rename it",
            where=folder,
        )
    core = _read(folder, *children, folder)
    files = {*folder.glob("*.yaml"), timing_file(core.timing) or folder / "core.yaml"}
    contents = (path.read_bytes() for path in sorted(files) if path.is_file())
    content = content_key(*contents, *core.like)[:8]
    return dataclasses.replace(core, content=content)


def _read(folder: Path, *children: Path) -> Core:
    path = folder / "core.yaml"
    file = _core_file(path)
    values: dict[str, Any] = {"timing": None}
    try:
        if file.like is not None:
            values = _inherit(folder, file.like, *children)
        if file.isa is not None:
            values = _without(values, *_FLAGS) | _of_isa(Isa.parse(file.isa))
    except PlatformError as error:
        raise PlatformError(f"{error}", where=path) from None
    stated = {key: getattr(file, key) for key in (*_FLAGS, *_OTHERS)}
    values |= {key: value for key, value in stated.items() if value is not None}
    values |= {"name": folder.name, "description": file.description}
    values["folders"] = (folder, *values.get("folders", ()))
    values["timing"] = _timing(folder, file.timing) or values["timing"]
    for key in ("isa", "zig_cpu", "gcc_flags", "unicorn_cpu"):
        if key not in values:
            raise PlatformError(f"the key {key} is missing", where=path)
    return Core(**values)


def _inherit(folder: Path, like: str, *children: Path) -> dict[str, Any]:
    """Return the fields of `Core` that a core takes over from the one that it is like."""
    parent = _user_core(folder / like, *children) if is_core_path(like) else _covp_core(like)
    return vars(parent) | {"like": (parent.key, *parent.like), "content": ""}


def _without(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def _core_file(path: Path) -> CoreFile:
    content = read_yaml(path, PlatformError, "file of a core")
    try:
        return msgspec.convert(content, CoreFile)
    except msgspec.ValidationError as error:
        raise PlatformError(
            f"{readable(error, CoreFile)}", where=path, key=place_of(error)
        ) from None


def _timing(folder: Path, stated: str | None) -> str | None:
    """Return the timing model that a folder gives its core, as `Core.timing`; or None."""
    if stated is not None:
        return str(folder / stated) if timing_file(stated) else stated
    path = folder / "timing.yaml"
    if not path.is_file():
        return None
    return _model_name(path) if folder.parent == cores_dir() else str(path)


def _model_name(path: Path) -> str:
    found = _MODEL_NAME.search(path.read_text(encoding="utf-8"))
    return found[1] if found else path.parent.name


_WHOLE_WORDS = "-falign-functions=4"
"""Cores fetch words: loops that begin elsewhere take more cycles, and whether they do is then a
matter of what was linked before them."""


def _of_isa(isa: Isa) -> dict[str, Any]:
    """Return the fields of `Core` that follow from an instruction set alone.

    On x86-64 pointers have 4 bytes (the x32 ABI), so that layouts are those of a 32-bit core. It is
    without the later extensions: every machine has it, and nothing multiplies and adds in one step.
    """
    common = {"isa": isa, "features": isa.features, "zig_flags": ()}
    if isa.architecture == "riscv":
        return common | {
            "zig_target": "riscv32-freestanding-none",
            "zig_cpu": "+".join(("generic_rv32", *isa.name.removeprefix("rv32i"))),
            # zig 0.13 passes floats in integer registers where it is not told otherwise
            "zig_flags": (*(("-mabi=ilp32f",) if isa.has("f") else ()), _WHOLE_WORDS),
            "gcc_prefix": "riscv64-unknown-elf-",
            "gcc_flags": (
                f"-march={isa.name}_zicsr",
                f"-mabi=ilp32{'f' * isa.has('f')}",
                _WHOLE_WORDS,
            ),
            "unicorn_cpu": "ANY",
        }
    if isa.architecture == "x86":
        return common | {
            "zig_target": "x86_64-linux-muslx32",
            "zig_cpu": "x86_64",
            "zig_flags": ("-fno-pic", "-fno-pie"),
            "gcc_prefix": "",
            "gcc_flags": (),
            "unicorn_cpu": "",
        }
    return common | {
        "zig_target": f"thumb-freestanding-{'eabihf' if isa.has('fpu') else 'eabi'}",
        "gcc_prefix": "arm-none-eabi-",
    }
