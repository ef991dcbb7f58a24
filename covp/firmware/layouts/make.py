"""A folder with a Makefile: firmware that needs a C compiler and make only."""

from __future__ import annotations

from string import Template

from covp.compilers.toolchain import runtime_dir
from covp.firmware.layouts.registry import Files, layout
from covp.firmware.project import Project
from covp.firmware.readme import readme
from covp.runtime.image import plain_loops

_HOW = (
    "`make` builds `firmware.elf` without covp. It starts at `covp_reset`, calls `main` and stays "
    "in `covp_exit`. The model is a library of its own, `model/`."
)
_STATUS = " `covp_exit_status` is 0 where the self-test's outputs are the reference's."


@layout("make")
def make(project: Project) -> Files:
    """The library in ``model/``, the self-test in ``selftest/``, firmware around them."""
    return {
        **{f"model/{name}": text for name, text in project.library.files.items()},
        **{f"selftest/{name}": text for name, text in project.sample.items()},
        **project.firmware,
        "Makefile": _makefile(project),
        "README.md": readme(project, _HOW + ("" if project.application else _STATUS), True),
    }


def _makefile(project: Project) -> str:
    template = Template((runtime_dir() / "Makefile.in").read_text(encoding="utf-8"))
    driver = project.toolchain.driver()
    return template.substitute(
        name=project.library.name,
        platform=project.program.platform.name,
        cc=driver.command,
        cflags=" ".join([*driver.compile_flags, "-g", *project.program.flags]),
        ldflags=" ".join(driver.link_flags),
        ldlibs=" ".join(driver.libraries),
        plain=" ".join(plain_loops(project.toolchain)),
    )
