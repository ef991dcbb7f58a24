"""`printed_test`: a failing layer as a pytest file."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.registry import find_backend
from covp.errors import CovpError
from covp.testing import Case, Layer


def spec_of(backend: AcceleratorBackend) -> str:
    """Return the text by which `find_backend` finds a backend: its name, else its file and class.

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


def printed_test(
    spec: str,
    case: Case,
    platform: str,
    before: Sequence[Case] = (),
    cycles: int | None = None,
    calls: int | None = None,
) -> str:
    """Write a pytest file that runs one case.

    Args:
        spec: of the accelerator, as `find_backend` accepts it.
        case: its repr is Python text that makes it again.
        platform: a name or the path of a YAML file.
        before: the cases that have to run before it.
        cycles: of each job, where they matter.
        calls: of the cases in turn, where they matter.
    """
    names = {"covp.testing.verify": {"check"}}
    for value in _parts([*before, case]):  # all that the cases' texts name
        home = "covp.testing" if isinstance(value, Layer) else type(value).__module__
        names.setdefault(home, set()).add(type(value).__name__)
    imports = "".join(
        f"from {home} import {', '.join(sorted(classes))}\n"
        for home, classes in sorted(names.items())
    )
    earlier = "".join(f"        {each!r},\n" for each in before)
    first = f"    before = [\n{earlier}    ]\n" if before else ""
    after = ", before=before" if before else ""
    after += "" if cycles is None else f", cycles={cycles}"
    after += "" if calls is None else f", calls={calls}"
    return (
        f"{imports}\n\n"
        "def test_the_smallest_failing_layer() -> None:\n"
        f"    case = {case!r}\n"
        f"{first}"
        f"    check({spec!r}, case, platform={platform!r}{after})\n"
    )


def _parts(value: Any) -> Iterator[Any]:
    """Yield the dataclass objects in a value, itself included."""
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _parts(each)
    elif is_dataclass(value):
        yield value
        yield from _parts(list(getattr(value, "__dict__", {}).values()))
