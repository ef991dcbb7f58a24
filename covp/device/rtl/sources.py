"""`find_sources`: the Verilog of a core, wherever its ``rtl.yaml`` says that it is.

A Python package, or any folder; files one by one, or a list as simulators read it; as they are, or
patched in a copy.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from covp.base.dependencies import get_extra
from covp.chip.cores import Core
from covp.compilers.rtl_sources import RtlFiles, RtlSources
from covp.device.rtl.cores import RtlCore, rtl_packages
from covp.errors import PlatformError, ToolchainError

_GET = get_extra("rtl")


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
