"""`rtl_of`, `find_sources`: where the RTL of a core is, from the file ``rtl.yaml`` of its folder.

A Python package, or any folder; files one by one, or a list as simulators read it; as they are, or
patched in a copy.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec

from covp.base.dependencies import get_extra
from covp.base.struct_errors import place_of, readable
from covp.base.yaml_files import read_yaml
from covp.chip.cores import Core, all_cores, find_core
from covp.compilers.rtl_sources import RtlFiles, RtlSources
from covp.errors import PlatformError, ToolchainError, near_misses

_GET = get_extra("rtl")
BUSES = {
    "obi": "COVP_OBI",
    "handshake": "COVP_HANDSHAKE",
    "ahb": "COVP_AHB",
    "axi4-lite": "COVP_AXI",
}
"""Kinds of buses that a core's ports may have, and the Verilog macros of harness/covp_ports.svh."""
_MERGED = ("parameters", "csrs")
_OWN_FILES = ("sources", "include", "patches", "filelist", "bus")
"""Keys with names that are of the folder where they begin with "./"."""


class RtlCore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sources of a core's RTL and the way it is started.

    What the file of a core does not say is as in that of the core that it is like; ``parameters``
    and ``csrs`` are added to those there.

    Attributes:
        licence: of the sources.
        bus: of its ports: the header ``harness/BUS.h`` answers them, or one of the core's folder,
            whose name begins with "./".
        sources: files of the package or of ``root``, or of the core's folder those that begin with
            "./", in the order that Verilator needs.
        filelist: file of the package or of ``root`` that names sources, as simulators read it; they
            come before ``sources``.
        variables: of that file, to folders of the package or of ``root``.
        package: name of the Python package that brings the sources; "": there is none.
        root: folder of the sources where there is no package; "": the core's.
        patches: unified diffs in the core's folder that change the sources, in a copy.
        wrapper: Verilog file of the core's folder with the module ``covp_core``, whose ports are
            those of ``harness/covp_ports.svh``; by default ``wrapper.sv``.
        include: folders of the package, or of the core's folder, for `include`.
        defines: Verilog macros, "NAME" or "NAME=VALUE".
        parameters: of the wrapper.
        boot: bytes from the boot address to the first instruction.
        interrupts: whether it has the machine external interrupt.
        custom_instructions: whether it has a port for them, of opcode custom-0 alone.
        csrs: number to value of CSRs that the boot code sets.
        caches: names, as a platform has them, of those that the RTL has itself: all others are
            between its ports and the memory.
    """

    licence: str
    bus: str
    sources: tuple[str, ...] = ()
    filelist: str = ""
    variables: dict[str, str] = {}
    package: str = ""
    root: str = ""
    patches: tuple[str, ...] = ()
    wrapper: str = ""
    include: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    parameters: dict[str, int] = {}
    boot: int = 0
    interrupts: bool = True
    custom_instructions: bool = False
    csrs: dict[int, int] = {}
    caches: tuple[str, ...] = ()


def rtl_names() -> list[str]:
    """Return the names of the cores of covp that there is RTL of."""
    return [core.name for core in all_cores() if has_rtl(core)]


def has_rtl(core: Core) -> bool:
    """Return whether there is RTL of a core."""
    return any((folder / "rtl.yaml").is_file() for folder in core.folders)


def rtl_packages() -> dict[str, list[str]]:
    """Return the package with the sources of each core to the cores that it has."""
    packages: dict[str, list[str]] = {}
    for name in rtl_names():
        packages.setdefault(rtl_of(find_core(name)).package, []).append(name)
    return packages


def rtl_of(core: Core) -> RtlCore:
    """Return the RTL of a core.

    Raises:
        PlatformError: there is none of that core, or a file says it wrongly.
    """
    if not has_rtl(core):
        known = near_misses(core.name, rtl_names())
        raise PlatformError(f"device rtl: there is no RTL of core {core.name}: {known}")
    values: dict[str, Any] = {}
    for folder in reversed(core.folders):
        stated = _read_folder(folder)
        for key in _MERGED:
            if isinstance(stated.get(key), dict):
                stated[key] = values.get(key, {}) | stated[key]
        values |= stated
    file = core.folders[0] / "rtl.yaml"
    try:
        found = msgspec.convert(values, RtlCore)
    except msgspec.ValidationError as error:
        raise PlatformError(
            f"{readable(error, RtlCore)}", where=file, key=place_of(error)
        ) from None
    _check(found, file)
    return found


def _check(rtl: RtlCore, file: Path) -> None:
    """Raise an error of what fits no other key."""

    def error(what: str) -> PlatformError:
        return PlatformError(what, where=file)

    if rtl.bus not in BUSES and not rtl.bus.endswith(".h"):
        raise error(
            f"bus: {rtl.bus}: is none of {', '.join(BUSES)}, and no header ./FILE.h of the folder"
        )
    if rtl.bus.endswith(".h") and not Path(rtl.bus).is_file():
        raise error(f"bus: there is no file {rtl.bus}; a header of the folder is ./FILE.h")
    if rtl.package and rtl.root:
        raise error("package and root: the sources are in one of them")
    if not rtl.sources and not rtl.filelist:
        raise error("sources: there are none; name them, or a filelist")
    if not rtl.package and not rtl.root:
        own = next((n for n in rtl.sources if not Path(n).is_absolute()), None)
        if own is not None:
            raise error(f"sources: {own}: there is no package and no root; write ./{own}")
    if not rtl.wrapper:
        raise error("there is no wrapper.sv beside it with the module covp_core")


def _read_folder(folder: Path) -> dict[str, Any]:
    """Read a folder's ``rtl.yaml``, with the paths of its own files."""
    path = folder / "rtl.yaml"
    stated = read_yaml(path, PlatformError) if path.is_file() else {}
    if not isinstance(stated, dict):
        raise PlatformError("needs a mapping of keys (package, sources ...)", where=path)
    stated = dict(stated)
    for key in _OWN_FILES:
        names = stated.get(key)
        if isinstance(names, list):
            stated[key] = [_own(folder, name) for name in names]
        elif names is not None:
            stated[key] = _own(folder, names)
    if isinstance(stated.get("patches"), list):
        stated["patches"] = [str(folder / str(name)) for name in stated["patches"]]
    if isinstance(stated.get("root"), str):
        stated["root"] = str(folder / stated["root"])
    wrapper = folder / str(stated.get("wrapper", "wrapper.sv"))
    return stated | ({"wrapper": str(wrapper)} if wrapper.is_file() else {})


def _own(folder: Path, name: object) -> object:
    """Return a file of the folder by its path; one of the package as it is."""
    return str(folder / name) if isinstance(name, str) and name.startswith("./") else name


def find_package(package: str) -> Path:
    """Return the folder with the Verilog of a package ``pythondata-cpu-...``.

    Raises:
        ToolchainError: it is not installed.
    """
    name = package.replace("-", "_")
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        get = _GET if package in rtl_packages() else f"pip install {package}"
        raise ToolchainError(f"device rtl: the package {package} is missing: {get}")
    place = Path(spec.origin).parent
    return next((place / n for n in ("system_verilog", "verilog") if (place / n).is_dir()), place)


def find_sources(core: Core, rtl: RtlCore) -> RtlSources:
    """Return the files of a core's RTL.

    Args:
        core: whose RTL it is.
        rtl: as its folder says.

    Raises:
        PlatformError: there is no such file, or a list of files says what is not understood.
        ToolchainError: the package with the sources is missing.
    """
    root = find_package(rtl.package) if rtl.package else Path(rtl.root or core.folders[0])
    listed = RtlFiles()
    if rtl.filelist:
        variables = {name: str(root / path) for name, path in rtl.variables.items()}
        listed.read(root / rtl.filelist, root, variables)
    found = RtlSources(
        root,
        (*listed.files, *(root / source for source in rtl.sources), Path(rtl.wrapper)),
        (*listed.include, *(root / folder for folder in rtl.include)),
        (*listed.defines, *rtl.defines),
        tuple(map(Path, rtl.patches)),
    )
    for path in (*found.files, *found.patches):
        if not path.is_file():
            raise PlatformError(f"the RTL of {core.name}: there is no file {path}")
    return found
