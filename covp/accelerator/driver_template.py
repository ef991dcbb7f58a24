"""Hand-written drivers: C files in a package, named after the instance that they drive."""

from __future__ import annotations

from importlib.resources import files

from covp.base.c_names import c_prefix


def driver_file(package: str, file: str, name: str, *, interrupt: bool = False) -> str:
    """Return the C text of a template.

    ``@name@`` becomes the instance's name, as in ``@name@_run`` and ``@name@_registers.h``;
    ``@NAME@`` becomes the prefix of its macros, as in ``@NAME@_CTRL``.

    Args:
        package: that holds the template.
        file: its name.
        name: of the instance, a C identifier.
        interrupt: the driver waits for the instance's interrupt: ``@NAME@_LINE`` is defined in
            the text's first lines.
    """
    text = files(package).joinpath(file).read_text(encoding="utf-8")
    if interrupt:
        text = f'#include "@name@_place.h"\n#define @NAME@_LINE @NAME@_IRQ\n{text}'
    return text.replace("@name@", name).replace("@NAME@", c_prefix(name))
