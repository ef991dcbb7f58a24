"""`GuardedMemory`: where the buffers of one layer lie, and what may be written while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator.argument_visitor import ArgumentVisitor
from covp.accelerator.call import Constant, RegisterImage, TensorSlice, Workspace
from covp.errors import CapacityError
from covp.graph.graph import Tensor
from covp.hardware.bus import LineCache
from covp.testing.verify.bench import Conditions

_GUARD = 0xA5
_LINE = 512
"""Bytes of the longest line that a data cache can have."""
_SLOT = 1 << 16
"""Constants of one life lie at equal distances, so that an address cut to 16 bits is another's."""


@dataclass(eq=False)
class Area:
    """Memory that buffers are placed in.

    Attributes:
        base: address of its first byte.
        memory: the device's own bytes.
        content: that are written to it before a call.
        used: bytes from its start that buffers take.
        top: bytes from its start to the buffer at its end, or to its end.
        is_whole: nothing is before it: its first buffer may lie at its very start.
        cache: that the core reads it through, or None.
    """

    base: int
    memory: NDArray[np.uint8]
    content: NDArray[np.uint8]
    used: int = 0
    top: int = 0
    is_whole: bool = False
    cache: LineCache | None = None

    @classmethod
    def of(
        cls,
        base: int,
        memory: NDArray[np.uint8],
        is_whole: bool = False,
        cache: LineCache | None = None,
    ) -> Area:
        """Free memory of guard bytes."""
        content = np.full(memory.size, _GUARD, np.uint8)
        return cls(base, memory, content, top=memory.size, is_whole=is_whole, cache=cache)

    def place(self, nbytes: int, align: int, gap: int, at_end: bool = False) -> int:
        """Place a buffer after guard bytes; return its offset.

        Args:
            nbytes: of the buffer.
            align: of its elements.
            gap: unused elements before it.
            at_end: it ends where the memory does, as far as its alignment allows.

        Raises:
            CapacityError: it does not fit.
        """
        if at_end:
            start = (self.memory.size - nbytes) // align * align
            end, self.top = self.used, min(self.top, start)
        else:
            before = 0 if self.is_whole and not self.used else -(-(self.used + 16) // 16) * 16
            start = before + gap * align
            end = self.used = start + nbytes
        if end + 16 > self.top and not (end <= self.top == self.memory.size):
            needed = end + self.memory.size - self.top
            raise CapacityError(
                f"a layer of {needed} bytes or more does not fit the {self.memory.size} bytes for "
                "layers",
                needed,
                self.memory.size,
            )
        return start


@dataclass(frozen=True)
class Areas:
    """The memories of a bench; where it has no flash or no other RAM, ``near`` stands for them."""

    near: Area
    flash: Area
    far: Area

    def all(self) -> list[Area]:
        """Return all areas, each once."""
        return list({id(area): area for area in (self.near, self.flash, self.far)}.values())


class KeptConstants:
    """Constants that stay where they are for a device's life, as those of firmware do.

    Args:
        area: flash.
    """

    def __init__(self, area: Area) -> None:
        self._area = area
        self._places: dict[bytes, int] = {}
        self._used = [16] * max(1, area.memory.size // _SLOT)
        self._layers = 0

    def next_layer(self) -> None:
        """Begin another layer, which what is placed from now on belongs to."""
        self._layers += 1

    def place(self, data: bytes) -> int | None:
        """Return the offset of a constant, one for equal bytes; None if no room is left."""
        if data not in self._places:
            slot = self._layers % len(self._used)
            start = self._used[slot]
            if start + len(data) + 16 > min(_SLOT, self._area.memory.size):
                return None
            self._used[slot] = -(-(start + len(data) + 16) // 16) * 16
            offset = slot * _SLOT + start
            self._area.content[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
            self._places[data] = offset
        return self._places[data]


class GuardedMemory(ArgumentVisitor[int | float]):
    """The memory of a layer, each buffer between guard bytes.

    Args:
        where: start of error messages.
        areas: free memory.
        conditions: places of the buffers.
        values: of tensors, by id.
        count: of the buffers, where it is known; at least 1.
        kept: where constants stay in place.
    """

    def __init__(
        self,
        where: str,
        areas: Areas,
        conditions: Conditions,
        values: dict[int, NDArray[Any]],
        count: int,
        kept: KeptConstants | None,
    ) -> None:
        super().__init__(where)
        self.areas, self.conditions, self.values = areas, conditions, values
        self.count = 0
        self._kept = kept
        if kept is not None:
            kept.next_layer()
        self._moving = 0
        last = conditions.last
        self._last = -1 if last is None else last % max(1, count)
        self._addresses: dict[int, int] = {}
        self._spans: list[tuple[Area, int, int]] = []
        self._written: list[tuple[Area, int, int]] = []
        self._started = self._loaded = False

    def address(self, owner: object) -> int:
        """Return the address of a buffer that was placed."""
        return self._addresses[id(owner)]

    @property
    def writable(self) -> list[tuple[int, int]]:
        """Pairs (address, bytes) of all memory that the layer may write."""
        return [(area.base + start, size) for area, start, size in self._written]

    @property
    def near_bytes(self) -> int:
        """Bytes of the near memory from its start on that hold buffers."""
        near = self.areas.near
        return near.memory.size if near.top < near.memory.size else near.used

    def store(self) -> None:
        """Write all that was placed since to the device, and keep the results there."""
        if self._loaded:
            return
        kept = self._written if self._started else []
        present = [area.memory[start : start + size].copy() for area, start, size in kept]
        for area, start, size in self._spans:
            if area.cache is not None:  # the core has stored the tensors: lines of them are dirty
                area.cache.soil(area.base + start, size)
        for area in self._list_areas():
            area.memory[:] = area.content
        for (area, start, size), data in zip(kept, present, strict=True):
            area.memory[start : start + size] = data
        self._started = self._loaded = True

    def scribble(self) -> None:
        """Overwrite memory outside the layer's buffers, as other code would meanwhile.

        Not in the lines of a data cache that a buffer shares: no driver can part them.
        """
        for area in self._list_areas():
            if area is self.areas.flash and area is not self.areas.near:
                continue
            others = np.ones(area.memory.size, bool)
            for own, start, size in self._spans:
                if own is area:
                    line = 1 if area.cache is None else _LINE
                    others[start - start % line : start + size + -(start + size) % line] = False
            area.content[others] ^= 0xFF
            area.memory[others] = area.content[others]

    def results(self, outputs: Sequence[Tensor]) -> list[NDArray[Any]]:
        """Read the values of tensors."""
        found = []
        places = {area.base + start: (area, start) for area, start, _ in self._written}
        for tensor in outputs:
            area, start = places[self.address(tensor)]
            raw = area.memory[start : start + tensor.nbytes].tobytes()
            found.append(np.frombuffer(raw, tensor.dtype).reshape(tensor.shape).copy())
        return found

    def damage(self) -> list[int]:
        """Return addresses beside what the layer may write that changed."""
        for area, start, size in self._written:
            area.content[start : start + size] = area.memory[start : start + size]
        found: list[int] = []
        for area in self._list_areas():
            if not np.array_equal(area.memory, area.content):
                changed = np.flatnonzero(area.memory != area.content)
                found += [area.base + int(i) for i in changed]
        return found

    # -- arguments ----------------------------------------------------------------------------

    def number(self, value: int | float) -> int | float:
        """Return the value itself."""
        return value

    def tensor(self, tensor: Tensor) -> int:
        """Return the address of a tensor's values, or of room for them."""
        value = self.values.get(id(tensor))
        data = None if value is None else np.ascontiguousarray(value, tensor.dtype)
        if tensor.constant and data is not None:
            return self._constant(tensor, data, tensor.dtype.itemsize)
        return self._place(tensor, tensor.nbytes, tensor.dtype.itemsize, data, self._next_area())

    def constant(self, constant: Constant) -> int:
        """Return the address of a constant's values."""
        return self._constant(constant, constant.data, 4)

    def workspace(self, workspace: Workspace) -> int:
        """Return the address of room for a workspace."""
        return self._place(workspace, workspace.nbytes, 16, None, self._next_area())

    def slice(self, part: TensorSlice) -> int:
        """Return the address of a slice's first element."""
        whole = part.whole
        size = whole.dtype.itemsize if isinstance(whole, Tensor) else 1
        return int(self.value(whole)) + part.offset * size

    def image(self, image: RegisterImage, sizes: tuple[int, ...]) -> int:
        """Return the address of an image's words.

        It lies before its tables, whose sizes differ: another layer's image comes to the same
        address, and a driver that knows images by their addresses takes it for this one.
        """
        room = np.zeros(len(image.words) + len(sizes), np.uint32)
        if self._kept is None:
            self._constant(image, room, 4)
            area, start, nbytes = self._spans[-1]
        words = [int(self.value(word)) & 0xFFFFFFFF for _, word in image.words]
        room[:] = [*words, *sizes]  # the sizes are for drivers beside a data cache
        if self._kept is not None:
            return self._constant(image, room, 4)
        area.content[start : start + nbytes] = room.view(np.uint8)
        return area.base + start

    def _next_area(self) -> Area:
        """Choose the RAM of the next tensor or workspace: each one's is a bit of the conditions."""
        number, self._moving = self._moving, self._moving + 1
        is_far = self.conditions.apart and self.conditions.far >> number % 4 & 1
        return self.areas.far if is_far else self.areas.near

    def _constant(self, owner: object, data: NDArray[Any], align: int) -> int:
        if self._kept is None:
            area = self.areas.flash if self.conditions.apart else self.areas.near
            return self._place(owner, data.nbytes, align, data, area)
        start = self._kept.place(np.ascontiguousarray(data).tobytes())
        if start is None:
            raise CapacityError(
                "the constants of this life do not fit", data.nbytes, self.areas.flash.memory.size
            )
        self._spans.append((self.areas.flash, start, data.nbytes))
        self._addresses[id(owner)] = self.areas.flash.base + start
        self._loaded = False
        return self.areas.flash.base + start

    def _place(
        self, owner: object, nbytes: int, align: int, data: NDArray[Any] | None, area: Area
    ) -> int:
        """Place memory after guard bytes, aligned to no more than ``align`` if the gap is odd."""
        at_end = self.count == self._last
        self.count += 1
        if area is self.areas.far and nbytes + 512 > area.top - area.used:
            area = self.areas.near
        start = area.place(nbytes, align, self.conditions.gap, at_end)
        self._addresses[id(owner)] = area.base + start
        self._spans.append((area, start, nbytes))
        if data is None:
            self._written.append((area, start, nbytes))
        else:
            area.content[start : start + nbytes] = np.frombuffer(data.tobytes(), np.uint8)
        self._loaded = False
        return area.base + start

    def _list_areas(self) -> Iterable[Area]:
        """Return the memories whose content counts."""
        if self.conditions.apart or self._kept is not None:
            return self.areas.all()
        return [self.areas.near]
