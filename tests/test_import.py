"""`import covp` must cost nothing: tools that only ask for a name or an error import it too."""

import subprocess
import sys

import pytest

import covp


def test_importing_covp_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'unicorn', 'yaml', 'msgspec'}"
    code = f"import covp, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", covp.__all__)
def test_every_public_name_is_there(name: str) -> None:
    # `covp.evaluation.sweep` is a module that can be called
    assert getattr(covp, name).__name__ in (name, f"covp.{name}")
    assert callable(getattr(covp, name))
    assert name in dir(covp)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        covp.nothing  # noqa: B018
