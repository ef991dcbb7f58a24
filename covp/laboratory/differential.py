"""`Variants`: one example of a kernel on several platforms, compilers and options at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.base.arguments import demand, demand_count, demand_each
from covp.base.closing import Closing
from covp.errors import CovpError, DeviceFault, ToolchainError, UsageError
from covp.laboratory.buffers import Buffer
from covp.laboratory.kernel import Kernel, Value
from covp.laboratory.outcome import (
    RESULT,
    Divergence,
    Outcome,
    divergence,
    find_differences,
    result_array,
)
from covp.laboratory.target import Target
from covp.runtime.session import Session
from covp.runtime.signature import Signature

REFERENCE = "reference"


class Difference(AssertionError):
    """The error of variants that do not agree; its text is one line.

    Attributes:
        variants: names of those that agree with the first one, and of those that do not.
        divergence: the first element that differs; None where a variant faulted.
    """

    def __init__(
        self, text: str, variants: tuple[list[str], list[str]], where: Divergence | None
    ) -> None:
        super().__init__(text)
        self.variants, self.divergence = variants, where


@dataclass(frozen=True)
class Variant:
    """One way to run a kernel.

    Attributes:
        target: platform and device.
        toolchain: "zig" or "gcc".
        flags: further compiler options.
    """

    target: Target
    toolchain: str
    flags: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.target} {' '.join((self.toolchain, *self.flags))}"


class Variants(Closing):
    """A C function, compiled in several ways, that is called with numpy arrays and has to agree.

    ::

        kernels = Variants("conv.c", "conv_s8", platforms=["cortex-m4", "cv32e40p:rtl"],
                           toolchains=["zig", "gcc"], flags=[("-O0",), ("-O3",)])
        kernels(a, b, n)        # on all of them; raises Difference where they do not agree

    Each platform with each compiler is a session that stays open until `close`, with the function
    once for each list of flags. What the function keeps in variables stays there between calls.

    Args:
        source: a C file or C text, as for `Session.load_c`.
        function: its name.
        platforms: each ``NAME[:DEVICE]``: a platform's name or file, and as for `covp.Session` the
            device (virtual by default), such as "cv32e40p:rtl" or "riscv32:gdb:qemu".
        toolchains: "zig", "gcc".
        flags: lists of compiler options; one that is empty has the default ones (-O2).
        include: folders for ``#include``.
        reference: is called with copies of the same arguments. What it returns is the expected
            result; what it changes in its arrays is expected there. Of a function that returns
            nothing it may return the arrays that are expected behind the pointers that are not
            const, in C order: one array or a tuple.
        ulps: 0: results are equal bit for bit, NaNs and the sign of zero included. Else floats may
            be so many representable numbers apart, and any NaN equals any NaN.
        skip_missing: leave out variants whose compiler, emulator or simulator is not installed.

    Attributes:
        kernels: name of the variant, such as "riscv32 gcc -O3", to its `Kernel`.
        missing: name of the variant to the reason why it was left out.

    Raises:
        UsageError: the call is wrong, or there is only one variant and nothing to compare it with.
        ToolchainError, DeviceError: a compiler or device is missing, or the C does not compile.
    """

    def __init__(
        self,
        source: str | Path,
        function: str,
        *,
        platforms: Sequence[str] = ("cortex-m4", "riscv32"),
        toolchains: Sequence[str] = ("zig",),
        flags: Sequence[Sequence[str]] = ((),),
        include: Sequence[str | Path] = (),
        reference: Callable[..., Any] | None = None,
        ulps: int = 0,
        skip_missing: bool = False,
    ) -> None:
        demand("function", function, str, "the name of a C function")
        demand_each("platforms", platforms, str, "text of the form NAME[:DEVICE]")
        demand_each("toolchains", toolchains, str, "the name of a compiler")
        demand_each("flags", flags, (tuple, list), "a list of compiler options")
        demand_count("ulps", ulps)
        self.function, self.reference, self.ulps = function, reference, ulps
        self.kernels: dict[str, Kernel] = {}
        self.missing: dict[str, str] = {}
        self._open = ExitStack()
        targets = [Target.parse(text) for text in platforms]
        with self._open:
            for target, toolchain in itertools.product(targets, toolchains):
                variants = [Variant(target, toolchain, tuple(f)) for f in flags]
                try:
                    session = Session(target.platform, target.device, toolchain)
                except CovpError as error:
                    if not skip_missing or isinstance(error, UsageError):
                        raise
                    self.missing |= {str(v): str(error) for v in variants}
                    continue
                self._open.enter_context(session)
                for variant in variants:
                    module = session.load_c(source, flags=variant.flags, include=include)
                    self.kernels[str(variant)] = Kernel(module[function])
            self._check_number()
            self._open = self._open.pop_all()

    def _check_number(self) -> None:
        """Raise an error where there is nothing to compare."""
        if len(self.kernels) + (self.reference is not None) < 2:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.missing.items())
            if reasons:
                raise ToolchainError(f"{self.function} has nothing to be compared with: {reasons}")
            raise UsageError(
                f"{self.function} has nothing to be compared with: give several platforms, "
                "toolchains or flags, or a reference"
            )

    def close(self) -> None:
        """Let the devices go. A second call does nothing."""
        self._open.close()

    def __call__(self, *arguments: Any) -> Value:
        """Run every variant on its own copy of the arguments, and compare what they leave.

        Args:
            arguments: as for `Kernel`, but tensors of a session.

        Returns:
            the common result; arrays behind pointers that are not const, and dictionaries, are
            changed in place.

        Raises:
            Difference: variants do not agree; the first element in which they do not.
            DeviceFault: all variants faulted in the same way.
            UsageError: the arguments do not fit the C declaration.
        """
        outcomes: dict[str, Outcome] = {}
        left: list[tuple[Value, list[Any]]] = []
        if self.reference is not None:
            outcomes[REFERENCE] = self._run_reference(arguments)
        for name, kernel in self.kernels.items():
            copies = copy_arguments(arguments)
            try:
                result = kernel(*copies)
            except DeviceFault as fault:
                outcomes[name] = Outcome({}, fault)
            else:
                left.append((result, copies))
                outcomes[name] = _outcome(kernel.signature, result, copies)
        faults = [outcome.fault for outcome in outcomes.values() if outcome.fault]
        if len(faults) == len(outcomes) and len({fault.kind for fault in faults}) == 1:
            raise faults[0]
        self._compare(outcomes)
        result, copies = left[0]
        for argument, copy in zip(arguments, copies, strict=True):
            take_over(argument, copy)
        return result

    @property
    def _signature(self) -> Signature:
        return next(iter(self.kernels.values())).signature

    def _run_reference(self, arguments: Sequence[Any]) -> Outcome:
        """Compute the outcome with the reference."""
        assert self.reference is not None
        signature, copies = self._signature, copy_arguments(arguments)
        plain = [c.array if isinstance(c, Buffer) else c for c in copies]
        result = self.reference(*plain)
        outcome = _outcome(signature, result, copies)
        if signature.result.kind != "void" or result is None:
            return outcome
        arrays = result if isinstance(result, tuple) else (result,)
        names = [name for name in outcome.values if name != RESULT]
        if len(arrays) > len(names):
            raise UsageError(
                f"the reference of {signature} returns {len(arrays)} arrays; {len(names)} of its "
                "pointers are not const"
            )
        shapes = outcome.values
        given = {
            name: np.asarray(array, shapes[name].dtype).reshape(shapes[name].shape)
            for name, array in zip(names, arrays, strict=False)
        }
        return Outcome({**shapes, **given})

    def _compare(self, outcomes: dict[str, Outcome]) -> None:
        """Raise Difference for the first variant that does not agree with the first one."""
        (first, wanted), *others = outcomes.items()
        same, different, found = [first], [], None
        for name, outcome in others:
            where = divergence(wanted, outcome, self.ulps)
            if where is None and (wanted.fault is None) == (outcome.fault is None):
                same.append(name)
            else:
                found = found or (where, outcome)
                different.append(name)
        if found is None:
            return
        where, outcome = found
        sides = f"{', '.join(same)} | {', '.join(different)}"
        if where is None:
            fault, who = (wanted.fault, first) if wanted.fault else (outcome.fault, different[0])
            raise Difference(f"{self.function}: {sides}: {who} faulted: {fault}", (same, different),
                             None)  # fmt: skip
        more = f"; {where.wrong} of {where.elements} elements differ" if where.index else ""
        raise Difference(
            f"{self.function}: {sides}: {where.element} is {where.left} | {where.right}{more}",
            (same, different),
            where,
        )


def differ(source: str | Path, function: str, *arguments: Any, **how: Any) -> Value:
    """Run one example on variants: ``differ("dot.c", "dot", a, b, 3, flags=[(), ("-O3",)])``.

    Args:
        source, function, how: as for `Variants`; its sessions are closed afterwards.
        arguments: of the function.

    Returns:
        the common result.

    Raises:
        Difference: variants do not agree.
        CovpError: as for `Variants` and its calls.
    """
    with Variants(source, function, **how) as variants:
        return variants(*arguments)


def _outcome(signature: Signature, result: Any, arguments: Sequence[Any]) -> Outcome:
    """Return what a call left: its result, and its arrays and dictionaries but const arrays."""
    values: dict[str, NDArray[Any]] = {}
    array = None if result is None else result_array(result, signature.result)
    if array is not None:
        values[RESULT] = array
    for parameter, argument in zip(signature.parameters, arguments, strict=True):
        pointee = parameter.type.pointee
        if isinstance(argument, dict) or (pointee is not None and not pointee.const):
            values |= contents(parameter.name, argument)
    return Outcome(values)


def copy_arguments(arguments: Sequence[Any]) -> list[Any]:
    """Copy arrays and dictionaries; what occurs twice is one copy.

    Args:
        arguments: of a kernel.
    """
    copies: dict[int, Any] = {}

    def copy(value: Any) -> Any:
        if id(value) in copies:
            return copies[id(value)]
        if isinstance(value, np.ndarray):
            new: Any = np.array(value)
        elif isinstance(value, Buffer):
            new = value.with_array(copy(value.array))
        elif isinstance(value, dict):
            new = {}
            copies[id(value)] = new  # it may lead to itself
            new |= {name: copy(member) for name, member in value.items()}
        else:
            return list(value) if isinstance(value, list) else value
        copies[id(value)] = new
        return new

    return [copy(argument) for argument in arguments]


def contents(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """Collect an argument's arrays and numbers by name: "p", or "p.stride.w" in a dictionary.

    Args:
        name: of the argument.
        value: an array, a buffer or a dictionary; all else has no content.
    """
    found: dict[str, NDArray[Any]] = {}
    met: set[int] = set()

    def collect(name: str, value: Any) -> None:
        if isinstance(value, Buffer):
            value = value.array
        if isinstance(value, np.ndarray):
            found[name] = value
        elif isinstance(value, dict) and id(value) not in met:
            met.add(id(value))
            for member, inner in value.items():
                collect(f"{name}.{member}", inner)
        elif met and isinstance(value, (int, float, np.generic, list)):
            found[name] = np.asarray(value)

    collect(name, value)
    return found


def take_over(argument: Any, copy: Any) -> None:
    """Change an argument in place to what a copy of it has become.

    Args:
        argument: of a kernel.
        copy: of `copy_arguments`.
    """
    _take_over(argument, copy, set())


def _take_over(argument: Any, copy: Any, met: set[int]) -> None:
    if isinstance(argument, Buffer):
        argument, copy = argument.array, copy.array
    if isinstance(argument, np.ndarray):
        if find_differences(argument, copy).size:
            argument[...] = copy
    elif isinstance(argument, dict) and id(argument) not in met:
        met.add(id(argument))
        for name, value in copy.items():
            if isinstance(argument.get(name), (dict, np.ndarray, Buffer)):
                _take_over(argument[name], value, met)
            else:
                argument[name] = value
