"""An Arduino library (Arduino library specification 1.5, revision 2.2)."""

from __future__ import annotations

from pathlib import PurePosixPath

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


@layout("arduino")
def arduino(project: Project) -> Files:
    """Return the library in ``src/``, the only folder of headers, and an example sketch."""
    name = project.library.name
    files = {PurePosixPath(file).name: text for file, text in project.library.files.items()}
    return {
        **under("src", {**files, **project.sample}),
        "library.properties": _properties(project),
        "examples/selftest/selftest.ino": _sketch(project),
        "keywords.txt": f"{name}_init\tKEYWORD2\n{name}_run\tKEYWORD2\n{name}_context\tKEYWORD1\n",
        "LICENSE": license_text(),
        "README.md": readme(
            project, "Put the folder into your sketchbook's `libraries`, then open the example."
        ),
    }


def _properties(project: Project) -> str:
    name = project.library.name
    values = {
        "name": name,
        "version": release(),
        "author": AUTHORS,
        "maintainer": AUTHORS,
        "sentence": f"{summary(project)}.",
        "paragraph": "Ahead-of-time compiled, without a heap; the arena is the caller's.",
        "category": "Data Processing",
        "url": URL,
        "architectures": "*",
        "includes": f"{name}.h",
        "dot_a_linkage": "true",
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


def _sketch(project: Project) -> str:
    report = (
        "    Serial.begin(115200);\n    while (!Serial)\n        ;\n    Serial.println(verdict);"
    )
    text = selftest_main(project, "void setup()", report, includes="#include <Arduino.h>")
    return f"{text}\nvoid loop()\n{{\n}}\n"
