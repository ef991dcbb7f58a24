"""`SavedMemory`: going back to a memory's saved content, page by page."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from covp.device.machine.emulated_core import EmulatedCore
from covp.device.machine.native_counter import SavedPages, counter_library
from covp.hardware.bus import Memory

_MOST_PAGES = 64
"""Marked pages from which marking begins anew: to copy them takes longer than to find them."""


class SavedMemory:
    """The content of all memories of a board at one moment.

    Memories know which of their pages may differ from the content that was saved, or gone back to,
    last. So one `SavedMemory` is near; any other is copied as a whole.

    Args:
        memories, cores: of the board.
    """

    def __init__(self, memories: Sequence[Memory], cores: Sequence[EmulatedCore]) -> None:
        self._cores, self._memories = cores, memories
        self._content = [memory.content.copy() for memory in memories]
        machines = (ctypes.c_void_p * len(cores))(*(core.counter.native for core in cores))
        pages = (SavedPages * len(memories))(
            *(
                SavedPages(
                    memory.pointer,
                    content.ctypes.data,
                    memory.dirty.ctypes.data,
                    memory.region.start,
                    memory.dirty.size,
                )
                for memory, content in zip(memories, self._content, strict=True)
            )
        )
        self._code = np.zeros(1 + sum(memory.dirty.size for memory in memories), np.uint32)
        self._restore = counter_library().memory_restore
        self._arguments = (machines, len(cores), pages, len(memories), self._code.ctypes.data)
        self._unmark()

    def load(self, is_near: bool) -> None:
        """Go back to it; cores forget the code that has changed.

        ``is_near``: it is what was saved or loaded last.
        """
        if not is_near:
            for memory in self._memories:
                np.maximum(memory.dirty, 1, out=memory.dirty)
        marked = self._restore(*self._arguments)
        if self._code[0]:
            for address in self._code[1 : 1 + self._code[0]].tolist():
                for core in self._cores:
                    core.forget_code(address, Memory.PAGE)
        if marked > _MOST_PAGES:
            self._unmark()

    def _unmark(self) -> None:
        """Unmark all pages: the cores have to mark a page again before they store to it."""
        for memory in self._memories:
            memory.dirty[memory.dirty == 1] = 0
        for core in self._cores:
            core.forget_pages()
