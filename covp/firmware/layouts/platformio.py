"""A PlatformIO library (library.json)."""

from __future__ import annotations

import json

from covp.firmware.layouts.parts import (
    AUTHORS,
    URL,
    license_text,
    release,
    selftest_main,
    summary,
    under,
)
from covp.firmware.layouts.registry import Files, layout
from covp.firmware.project import Project
from covp.firmware.readme import readme

_REPORT = """\
    puts(verdict);
    return status;"""


@layout("platformio")
def platformio(project: Project) -> Files:
    """Return ``include/`` and ``src/`` with the manifest; the self-test as an example."""
    name = project.library.name
    return {
        **project.library.files,
        **under("examples/selftest", project.sample),
        "examples/selftest/main.c": selftest_main(project, "int main(void)", _REPORT),
        "library.json": json.dumps(_manifest(project), indent=2) + "\n",
        "LICENSE": license_text(),
        "README.md": readme(
            project, f"Put the folder into your project's `lib/` and include `{name}.h`."
        ),
    }


def _manifest(project: Project) -> dict[str, object]:
    name = project.library.name
    build: dict[str, object] = {"includeDir": "include", "srcDir": "src"}
    if project.program.flags:
        build["flags"] = list(project.program.flags)
    return {
        "$schema": "https://raw.githubusercontent.com/platformio/platformio-core/develop/"
        "platformio/assets/schema/library.json",
        "name": name,
        "version": release(),
        "description": summary(project),
        "keywords": ["neural network", "tinyml", "inference"],
        "authors": [{"name": AUTHORS, "url": URL}],
        "license": "MIT",
        "frameworks": "*",
        "platforms": "*",
        "headers": f"{name}.h",
        "build": build,
        "examples": [{"name": "selftest", "base": "examples/selftest", "files": ["main.c"]}],
    }
