"""`Sanitizer`: memory safety of calls: what each may access, and what an access that it may not is.

Of RAM a call may access the arrays that it was given, to the byte, the variables of loaded code,
the stack, and what covp_workspace_alloc handed out; arrays behind pointers to const may only be
read. Between all of them lie bytes that may not be accessed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from covp.base.memory_states import Forbidden, ForbiddenAccess
from covp.chip.isa import ARCHITECTURES
from covp.chip.memory_errors import stack_overflow_detail
from covp.chip.platform_file import Platform
from covp.compilers.elf import ElfImage
from covp.device.abilities import MemoryStates
from covp.device.base import LowLevelDevice, name_fault
from covp.errors import DeviceFault, FaultKind, UsageError
from covp.runtime.abi import WORDS, words_of
from covp.runtime.allocator import Block
from covp.runtime.call import Call
from covp.runtime.linking import FLASH_SECTIONS, MARGIN, RETURN, LoadedImage, gaps
from covp.runtime.signature import CType

_FREED = 64
"""Freed arrays that are remembered, by name, until their memory is used again."""
_TRUSTED = ("covp_enter", "covp_trap", "covp_call", "covp_run_tasks")
_WORKSPACE = ("covp_workspace_reset", "covp_workspace_alloc", "covp_workspace_free")
FLOATS = 32
"""The number of the first floating-point register, as tracked.h counts."""
_ALIGNMENT = 16  # of variables, at most, and of the workspace
_NEXT = "next"  # of workspace.c


@runtime_checkable
class _Array(Protocol):
    """An argument in the target's memory: a tensor, or a buffer of a kernel."""

    @property
    def pointer(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def written(self) -> bool: ...

    @property
    def scratch(self) -> bool: ...

    @property
    def value_bytes(self) -> bytes: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def members(self) -> Iterable[tuple[_Array, bool]]: ...


@dataclass(frozen=True)
class Extent:
    """A piece of memory with a name.

    Attributes:
        address, size: bytes.
        name: for messages.
        state: what may be done with it.
        is_output: when a call ends, all of its values are defined.
        itemsize: bytes of an element.
        value_bytes: of each byte whether it is part of a value, 0 or 1; b"": all are.
    """

    address: int
    size: int
    name: str
    state: Forbidden = Forbidden.NOTHING
    is_output: bool = False
    itemsize: int = 1
    value_bytes: bytes = b""

    @property
    def end(self) -> int:
        """First address past its end."""
        return self.address + self.size

    def offset_of(self, address: int) -> str:
        """Describe an address in words."""
        return f"offset {address - self.address} of {self.name}, which has {self.size} bytes"

    def holds(self, address: int) -> bool:
        """Return whether an address lies in it."""
        return self.address <= address < self.end

    def distance(self, address: int) -> int:
        """Return the bytes from the extent to an address outside it; 0 inside."""
        return max(self.address - address, address - self.end + 1, 0)


class Sanitizer:
    """Checks every load and store of a session's calls.

    Args:
        platform: of the device.
        device: that runs them.
        stack: its place.

    Attributes:
        stack_bytes: the latest execution had at most so many bytes of the stack in use.
        stack_limit: bytes of it that a call may use; more is a finding.
    """

    def __init__(self, platform: Platform, device: LowLevelDevice, stack: Block) -> None:
        ability = device.abilities.memory
        if ability is None:
            raise UsageError(
                f"{platform.name}: this device cannot check memory; sanitize needs the virtual one"
            )
        self.stack_bytes = 0
        self.stack_limit = stack.size
        self._platform, self._device, self._stack = platform, device, stack
        self._memory: MemoryStates = ability.check_memory(self._explain)
        self._given: list[Extent] = []
        self._images: dict[int, list[Extent]] = {}
        self._live: dict[int, Extent] = {}
        self._reserved: dict[int, Extent] = {}
        self._freed: deque[Extent] = deque(maxlen=_FREED)
        self._shared: set[int] = set()
        self._heap: tuple[int, int] = (0, 0)
        self._next = self._returns_to = 0
        self._shares, self._looks_at_outputs = True, False
        self._undefined_output: DeviceFault | None = None

    # -- what there is ------------------------------------------------------------------------

    def trust(self, runtime: LoadedImage) -> None:
        """Let covp's own task runner do what it has to."""
        symbols = runtime.elf.symbols
        own = [symbols[name] for name in (*_TRUSTED, *_WORKSPACE) if name in symbols]
        self._memory.trust([(one.address, one.address + max(one.size, 2)) for one in own])
        self._next = symbols[_NEXT].address
        self._returns_to = symbols[RETURN].address

    def add_image(self, image: LoadedImage, name: str, is_own: bool = False) -> None:
        """Allow use of an image's code and variables, but no change of code and constants.

        ``is_own``: variables of covp's own code are its alone.
        """
        extents = [one for one in _extents(image, name) if not (is_own and not one.state)]
        for extent in extents:
            self._memory.set(extent.address, extent.size, extent.state)
        self._images[id(image)] = extents

    def remove_image(self, image: LoadedImage) -> None:
        """Undo `add_image`."""
        for extent in self._images.pop(id(image), ()):
            for address in [one for one in self._reserved if extent.holds(one)]:
                del self._reserved[address]
            self._memory.set(extent.address, extent.size, Forbidden.ACCESS)
            self._freed.append(extent)

    def add_array(self, address: int, size: int, name: str) -> None:
        """Register memory of an array; calls that are given it may access it."""
        self._live[address] = Extent(address, size, name)

    def reserve(self, extent: Extent) -> None:
        """Restrict memory of a module to calls that are given parts of it."""
        self._memory.set(extent.address, extent.size, Forbidden.ACCESS)
        self._reserved[extent.address] = extent

    def remove_array(self, address: int) -> None:
        """Forbid access to memory of an array that was given back."""
        extent = self._live.pop(address, None)
        if extent is not None:
            self._memory.set(extent.address, extent.size, Forbidden.ACCESS)
            self._shared.discard(address)
            self._freed.append(extent)

    def share(self, address: int) -> None:
        """Let every call access an array whose address the user was given."""
        if self._shares and address in self._live:
            self._shared.add(address)
            extent = self._live[address]
            self._memory.set(extent.address, extent.size, Forbidden.NOTHING)

    # -- executions ---------------------------------------------------------------------------

    def begin(self, calls: Sequence[Call], workspace: Block) -> None:
        """Set up the rights of calls that are about to run, in one execution.

        Args:
            calls: with their arguments.
            workspace: of covp_workspace_alloc.
        """
        self._given = [extent for call in calls for extent in self._extents_of(call)]
        # those for loads only come first: the same array may be passed twice
        self._given.sort(key=_order)
        self._looks_at_outputs = len(calls) == 1
        self._heap = workspace.address, workspace.size
        self._memory.set_heap(workspace.address, workspace.end, self._next)
        for extent in self._given:
            self._memory.set(extent.address, extent.size, extent.state)
        self._memory.set_return(self._returns_to, self._result(calls))
        above = max((self._stack_arguments(call) for call in calls), default=0)
        self._memory.set_stack(self._stack.address, self._stack.end, self.stack_limit, above)
        self._memory.begin()

    def end(self) -> None:
        """Take back the rights of the calls, which have run or faulted."""
        self.stack_bytes = self._memory.stack_bytes
        found = map(self._undefined_in, self._given if self._looks_at_outputs else ())
        self._undefined_output = next(filter(None, found), None)
        for extent in self._given:
            if extent.address not in self._shared:
                self._memory.set(extent.address, extent.size, Forbidden.ACCESS)

    def check_outputs(self) -> None:
        """Check that every element of the outputs has a value, after `end` without a fault.

        Raises:
            DeviceFault: "unwritten output": nothing was stored to an element; "uninitialised read":
                what was stored is made of memory that was never written.
        """
        if self._undefined_output is not None:
            raise name_fault(self._undefined_output, self._device)

    def _result(self, calls: Sequence[Call]) -> list[tuple[int, int]]:
        """Return the registers of one call's result and their bytes; none of several calls."""
        if len(calls) != 1 or not calls[0].signature.parameters:
            return []
        result = calls[0].signature.result
        isa = ARCHITECTURES[self._platform.core.architecture]
        first = isa.registers.index(isa.arguments[0])
        if result.kind == "float" and self._platform.core.has("fpu"):
            return [(FLOATS + first, 15)]
        low = (1 << min(result.bytes, 4)) - 1
        return [(first, low), (first + 1, 15 if result.bytes == 8 else 0)]

    def _stack_arguments(self, call: Call) -> int:
        """Return the most bytes of arguments that may lie on the stack."""
        parameters = call.signature.parameters
        if not parameters:
            return 4 * WORDS
        words = sum(2 if parameter.type.bytes == 8 else 1 for parameter in parameters)
        pads = sum(parameter.type.bytes == 8 for parameter in parameters)
        registers = len(ARCHITECTURES[self._platform.core.architecture].arguments)
        return 4 * max(words + pads - registers, 0)

    def _extents_of(self, call: Call) -> Iterator[Extent]:
        if not call.signature.parameters:
            yield from (one for one in call.arguments if isinstance(one, Extent))
        for parameter, argument in zip(call.signature.parameters, call.arguments, strict=False):
            if isinstance(argument, _Array):
                name = argument.name or parameter.name
                pointee = parameter.type.pointee
                numbers = pointee is not None and pointee.kind in ("int", "float")
                yield _extent_of(argument, name, points_to_const(parameter.type), numbers)
                for member, is_const in argument.members:
                    yield _extent_of(member, member.name, is_const, False)
        words = words_of(call.task)
        passed = {one.pointer for one in call.arguments if isinstance(one, _Array)}
        for extent in self._live.values():
            if extent.address not in passed and any(map(extent.holds, words)):
                yield extent

    # -- findings -----------------------------------------------------------------------------

    def _undefined_in(self, extent: Extent) -> DeviceFault | None:
        """Return the first element of an output that has undefined bits, as a fault."""
        if not extent.is_output or not extent.size:
            return None
        undefined = self._memory.undefined_bits(extent.address, extent.size)
        if extent.value_bytes:
            undefined = undefined * np.frombuffer(extent.value_bytes, np.uint8)
        if not undefined.any():
            return None
        first = int(np.flatnonzero(undefined)[0])
        elements = undefined.reshape(-1, extent.itemsize).any(axis=1)
        which = f"element {first // extent.itemsize} of {extent.name}"
        count = f"{elements.sum()} of its {elements.size} elements have undefined bits"
        address = extent.address + first
        origin, pc = self._memory.origin(address)
        if not pc:
            detail = f"{which} is never written; {count}"
            return DeviceFault("unwritten output", address=address, size=1, detail=detail)
        detail = f"{self._describe_unwritten(origin)}, decides {which}; {count}"
        return DeviceFault("uninitialised read", address=origin, size=1, detail=detail, pc=pc)

    def _explain(self, finding: ForbiddenAccess) -> DeviceFault:
        kind, detail = self._judge(finding)
        pc = finding.pc
        if finding.decides and (self._symbol(pc) or "").startswith("__"):
            pc = finding.loaded_at  # the compiler's own functions decide for their callers
        return DeviceFault(kind, detail=detail, pc=pc)

    def _symbol(self, pc: int) -> str | None:
        names = self._device.abilities.names
        return names.symbols.locate(pc)[0] if names is not None else None

    def _describe_decision(self, finding: ForbiddenAccess) -> str:
        """Describe what undefined bits decide, and where they were loaded."""
        text = f"{self._describe_unwritten(finding.address)}, decides {finding.decides}"
        names = self._device.abilities.names
        source = names.symbols.locate(finding.loaded_at)[1] if names is not None else None
        return (
            text if finding.pc == finding.loaded_at or not source else f"{text}; loaded at {source}"
        )

    def _judge(self, finding: ForbiddenAccess) -> tuple[FaultKind, str]:
        address = finding.address
        in_stack = self._stack.address <= address < self._stack.end
        if finding.is_gone:
            below = finding.sp - address
            return "use after return", f"{below} bytes below the stack pointer"
        if finding.is_unwritten:
            return "uninitialised read", self._describe_decision(finding)
        verb: FaultKind = "out-of-bounds write" if finding.is_store else "out-of-bounds read"
        if self._platform.region_of(address) is None:
            return "stack overflow", stack_overflow_detail(self._platform, finding.sp)
        if in_stack:
            return self._of_stack(finding, verb)
        for extent in self._given:
            if extent.holds(address):  # else its last bytes lie after the end
                is_const = finding.is_store and extent.state & Forbidden.STORE
                return "write to const" if is_const else verb, extent.offset_of(address)
        for extent in self._reserved.values():
            if extent.holds(address):
                return verb, self._nearest(address).offset_of(address)
        for extent in self._sections():
            if extent.holds(address):
                return _of_section(extent, address, verb)
        for extent in self._live.values():
            if extent.holds(address):
                return verb, f"{extent.offset_of(address)}: the call was not given it"
        nearest = self._nearest(address)
        for extent in reversed(self._freed):
            if extent.holds(address) and nearest.distance(address) > MARGIN:
                return "use after free", extent.offset_of(address)
        return verb, nearest.offset_of(address)

    def _of_stack(self, finding: ForbiddenAccess, verb: FaultKind) -> tuple[FaultKind, str]:
        if finding.address < finding.sp and finding.is_store and not self._is_deep():
            return verb, f"{finding.sp - finding.address} bytes below the stack pointer"
        if self._is_deep():
            used = self._memory.stack_bytes
            return "stack limit", f"{used} bytes of stack are in use, {self.stack_limit} may be"
        return verb, "the stack above the frame of the function that was called"

    def _is_deep(self) -> bool:
        return self._memory.stack_bytes > self.stack_limit

    def _describe_unwritten(self, address: int) -> str:
        if self._stack.address <= address < self._stack.end:
            return f"a local variable, {self._stack.end - address} bytes below the stack's top"
        for extent in (*self._given, *self._live.values()):
            if extent.holds(address):
                return extent.offset_of(address)
        start, size = self._heap
        if start <= address < start + size:
            return f"offset {address - start} of the workspace"
        return f"address 0x{address:08x}"

    def _nearest(self, address: int) -> Extent:
        """Return the extent nearest to an access, rather an array of the call than another one."""
        stack = Extent(self._stack.address, self._stack.size, "the stack")
        near = [*self._given, *self._live.values(), *self._sections(), stack, *self._blocks()]
        return min(near, key=lambda one: one.distance(address))

    def _blocks(self) -> Iterator[Extent]:
        """Yield the memory that covp_workspace_alloc has handed out, if any."""
        start = -(-self._heap[0] // _ALIGNMENT) * _ALIGNMENT
        end = int.from_bytes(self._device.read(self._next, 4), "little")
        if end > start:
            yield Extent(start, end - start, "the workspace")

    def _sections(self) -> Iterable[Extent]:
        return (extent for extents in self._images.values() for extent in extents)

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Read addresses for a call in this context, without sharing them with the user."""
        self._shares, before = False, self._shares
        try:
            yield
        finally:
            self._shares = before


def _extent_of(array: _Array, name: str, is_const: bool, numbers: bool) -> Extent:
    """Return the extent of an array; ``numbers``: the parameter points to numbers."""
    state = Forbidden.STORE if is_const else Forbidden.NOTHING
    if not array.written:
        state |= Forbidden.UNWRITTEN
    values = array.value_bytes
    is_output = not is_const and not array.scratch and (numbers or bool(values))
    itemsize = array.dtype.itemsize
    return Extent(array.pointer, array.nbytes, name, state, is_output, itemsize, values)


def _order(extent: Extent) -> int:
    """Return the rank of an extent: read-only memory first, then what was never written."""
    return 0 if extent.state & Forbidden.STORE else 1 if extent.state else 2


def points_to_const(kind: CType) -> bool:
    """Return whether a C pointer points to const."""
    return kind.kind == "pointer" and kind.pointee is not None and kind.pointee.const


def _of_section(extent: Extent, address: int, verb: FaultKind) -> tuple[FaultKind, str]:
    """Classify an access that a section does not allow: a store to code or constants."""
    kind: FaultKind = "store to code" if extent.name.endswith(".text") else "write to const"
    is_const = verb == "out-of-bounds write" and extent.state & Forbidden.STORE
    return kind if is_const else verb, extent.offset_of(address)


def _extents(image: LoadedImage, name: str) -> Iterator[Extent]:
    """Yield the pieces of an image between its gaps; a single variable gives its name."""
    between = gaps(image.elf)
    for section, block in image.blocks.items():
        state = Forbidden.STORE if section in FLASH_SECTIONS else Forbidden.NOTHING
        start = block.address
        ends = [gap for gap in between if block.address <= gap.address < block.end]
        for gap in [*ends, Block(block.end, 0)]:
            if gap.address > start:
                piece = Extent(start, gap.address - start, f"{name} {section}", state)
                # what lies after the last gap has constants without a symbol, and libraries
                yield _variable(piece, image.elf) if gap.size else piece
            start = gap.end


def _variable(piece: Extent, elf: ElfImage) -> Extent:
    """Return the one variable that fills a piece up to its alignment, else the piece."""
    inside = [one for one in elf.variables if piece.holds(one.address)]
    if len(inside) != 1 or piece.size - inside[0].size >= _ALIGNMENT:
        return piece
    return Extent(inside[0].address, inside[0].size, inside[0].name, piece.state)
