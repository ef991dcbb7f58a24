"""`printed_test`: a failing layer as a pytest file."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend
from covp.errors import CovpError
from covp.testing import Case, Layer


def spec_of(backend: AcceleratorBackend) -> str:
    """The text by which `find_backend` finds a backend: its name, else its file and class.

    A class without a file, as in a notebook, is named by its class alone.
    """
    kind = type(backend)
    try:
        if type(find_backend(kind.name)) is kind:
            return backend.spec
    except CovpError:
        pass
    instance = f"{backend.name}=" if backend.name != kind.name else ""
    parameters = backend.spec.removeprefix(f"{instance}{kind.name}")
    try:
        file = f"{inspect.getsourcefile(kind)}:"
    except (OSError, TypeError):
        file = ""
    return f"{instance}{file}{kind.__qualname__}{parameters}"


def printed_test(spec: str, case: Case, platform: str, before: Case | None = None) -> str:
    """A pytest file that runs one case.

    Args:
        spec: of the accelerator, as `find_backend` accepts it.
        case: its repr is Python text that makes it again.
        platform: a name or the path of a YAML file.
        before: the case that has to run before it, if any.
    """
    names = {"covp.verify": {"check"}}
    cases = [case] if before is None else [before, case]
    parts = [part for each in cases for part in getattr(each, "__dict__", {}).values()]
    for value in (*cases, *filter(is_dataclass, parts)):  # all that the cases' texts name
        home = "covp.testing" if isinstance(value, Layer) else type(value).__module__
        names.setdefault(home, set()).add(type(value).__name__)
    imports = "".join(
        f"from {home} import {', '.join(sorted(classes))}\n"
        for home, classes in sorted(names.items())
    )
    first = "" if before is None else f"    before = {before!r}\n"
    after = "" if before is None else ", before=before"
    return (
        f"{imports}\n\n"
        "def test_the_smallest_failing_layer() -> None:\n"
        f"    case = {case!r}\n"
        f"{first}"
        f"    check({spec!r}, case, platform={platform!r}{after})\n"
    )
