"""A folder with a Makefile: firmware that needs a C compiler and make only."""

from __future__ import annotations

from string import Template

from covp.compilers.toolchain import Toolchain, runtime_dir, toolchains_of
from covp.firmware.layouts.parts import license_text
from covp.firmware.layouts.registry import Files, layout
from covp.firmware.project import Project
from covp.firmware.readme import readme

_HOW = (
    "`make` builds `firmware.elf` without covp. It starts at `covp_reset`, calls `main` and stays "
    "in `covp_exit`. The model is a library of its own, `model/`."
)
_STATUS = " `covp_exit_status` is 0 where the self-test's outputs are the reference's."


@layout("make")
def make(project: Project) -> Files:
    """Return the library in ``model/``, the self-test in ``selftest/``, firmware around them."""
    return {
        **{f"model/{name}": text for name, text in project.library.files.items()},
        **{f"selftest/{name}": text for name, text in project.sample.items()},
        **project.firmware,
        "LICENSE": license_text(),
        "Makefile": _makefile(project),
        "README.md": readme(project, _HOW + ("" if project.application else _STATUS), True),
    }


def _makefile(project: Project) -> str:
    """Return the Makefile, with the options of each compiler that there is for the core."""
    template = Template((runtime_dir() / "Makefile.in").read_text(encoding="utf-8"))
    core, used = project.program.platform.core, project.toolchain
    options = {tools.name: _options(project, tools) for tools in toolchains_of(core)}
    return template.substitute(
        name=project.library.name,
        platform=project.program.platform.name,
        compiler=used.version,
        cc=used.driver().command,
        gcc=f"{core.gcc_prefix}gcc",
        zig_options=options["zig"],
        gcc_options=options.get("gcc", f"$(error there is no GCC for the core {core.name})"),
    )


def _options(project: Project, tools: Toolchain) -> str:
    """Return the assignments of a compiler's options."""
    driver = tools.driver()
    values = {
        # of zig the wheel's command may be another one; a compiler like GCC is linked for by GCC
        "LD": "$(CC)"
        if tools.name == "zig"
        else f"$(if $(findstring gcc,$(CC)),$(CC),{driver.command})",
        "CFLAGS": " ".join([*driver.compile_flags, "-g", *project.program.flags]),
        "LDFLAGS": " ".join(driver.link_flags),
        "LDLIBS": " ".join(driver.libraries),
        "PLAIN": " ".join(tools.plain_loops),
    }
    return "\n".join(f"{name} = {value}".rstrip() for name, value in values.items())
