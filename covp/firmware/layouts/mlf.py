"""microTVM's Model Library Format: one archive that tools for TVM's output read."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import PurePosixPath

from covp.firmware.layouts.registry import Files, layout
from covp.firmware.project import Project
from covp.firmware.readme import readme

_EPOCH = "1970-01-01 00:00:00Z"


@layout("mlf")
def mlf(project: Project) -> Files:
    """Return ``NAME.mlf.tar`` (TVM's Model Library Format, version 7) and a README."""
    name = project.library.name
    files: dict[str, str] = {"./metadata.json": json.dumps(_metadata(project), indent=2)}
    for path, text in project.library.files.items():
        folder = "include" if path.startswith("include/") else "src"
        files[f"./codegen/host/{folder}/{PurePosixPath(path).name}"] = text
    for file, text in project.sample.items():
        files[f"./codegen/host/selftest/{file}"] = text
    files[f"./parameters/{name}.params"] = ""  # the weights are in the sources
    files["./src/relay.txt"] = f"# {name} was compiled by covp: there is no Relay.\n"
    how = f"The library is in the archive's `codegen/host`, its interface in `{name}.h`."
    return {f"{name}.mlf.tar": _archive(files), "README.md": readme(project, how)}


def _archive(files: Mapping[str, str]) -> bytes:
    """Return a tar file that is the same for the same content."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(files.items()):
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def _metadata(project: Project) -> dict[str, object]:
    program, placement = project.program, project.placement
    inputs = sum(tensor.nbytes for tensor in program.inputs)
    outputs = sum(tensor.nbytes for tensor in program.outputs)
    main = {
        "device": 1,  # kDLCPU
        "workspace_size_bytes": program.arena_bytes,
        "constants_size_bytes": placement.flash_bytes,
        "io_size_bytes": inputs + outputs,
        "inputs": {t.name: {"size": t.nbytes, "dtype": t.dtype.name} for t in program.inputs},
        "outputs": {t.name: {"size": t.nbytes, "dtype": t.dtype.name} for t in program.outputs},
    }
    operators = [
        {
            "function_name": layer.function,
            "workspace": [{"device": 1, "workspace_size_bytes": 0}],
        }
        for layer in program.layers
    ]
    module = {
        "model_name": program.name,
        "export_datetime": _EPOCH,  # the same export is the same file
        "memory": {
            "sids": [],
            "functions": {"main": [main], "operator_functions": operators},
        },
        "target": [f"c -model={program.platform.name}"],
        "executors": ["aot"],
        "style": "full-model",
    }
    return {"version": 7, "modules": {program.name: module}}
