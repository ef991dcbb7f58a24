"""The parameter ``rtl`` of accelerators: which Verilog stands in the place of the model."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from covp.accelerator.parameters import Parameter, Value
from covp.accelerator.rtl.library import Parameters
from covp.accelerator.rtl.sources import UnitRtl
from covp.errors import UsageError, near_misses

if TYPE_CHECKING:
    from covp.accelerator.backend import AcceleratorBackend

_B = TypeVar("_B", bound="AcceleratorBackend")
NO_RTL, OWN_RTL = "no", "yes"


def _verilog_file(text: str) -> str:
    path = Path(text)
    if not path.is_file():
        raise ValueError("is no Verilog file, nor yes or no")
    return str(path.absolute())


RTL = Parameter(
    "rtl", NO_RTL, "its Verilog in the place of its model: a file, or yes for that of its class",
    choices=(NO_RTL, OWN_RTL), other=_verilog_file,
)  # fmt: skip


def with_rtl(accelerator: _B, **values: Value) -> _B:
    """Return the same accelerator as its Verilog: the chosen one, else that of its class.

    Args:
        accelerator: it stays as it is.
        values: of other parameters.
    """
    other = copy.copy(accelerator)
    given = accelerator.values.get(RTL.name, NO_RTL)
    other.values = {
        **accelerator.values, RTL.name: OWN_RTL if given == NO_RTL else given, **values
    }  # fmt: skip
    return other


def chosen_rtl(
    accelerator: AcceleratorBackend, declared: UnitRtl | None
) -> tuple[UnitRtl, Path, Parameters] | None:
    """Return the Verilog that an accelerator's parameter names; None: it has its model.

    Args:
        accelerator: whose parameter it is.
        declared: that of its class.

    Returns:
        the Verilog, the folder that it is relative to, and the values of its parameters.

    Raises:
        UsageError: the class has none.
    """
    given = str(accelerator.values.get(RTL.name, NO_RTL))
    if given == NO_RTL:
        return None
    if given != OWN_RTL:
        declared = replace(declared or UnitRtl(), sources=(given,), filelist="")
    if declared is None:
        raise UsageError(f"accelerator {accelerator.name} has no RTL of its own: rtl=FILE.v")
    values: dict[str, int | float | str] = {}
    for name, value in declared.parameters.items():
        if isinstance(value, str) and value not in accelerator.values:
            known = near_misses(value, accelerator.values)
            raise UsageError(
                f"accelerator {accelerator.name}: rtl: {name} is {value!r}, which is no parameter "
                "of the accelerator:",
                hint=known,
            )
        values[name] = accelerator.values[value] if isinstance(value, str) else value
    return declared, Path(inspect.getfile(type(accelerator))).parent, values
