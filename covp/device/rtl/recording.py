"""`RtlRecording`: while it is open, the signals of the RTL go to a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from covp.base.temporary import TemporaryFolder, temporary_folder
from covp.device.rtl.model import RtlModel
from covp.device.wave import Recorded, Wave
from covp.errors import AcceleratorError, DeviceError, DeviceFault, UsageError

HEADER, GEOMETRY, HIERARCHIES = 0, 3, (4, 6, 7)


def blocks(path: Path) -> Iterator[tuple[int, int, int]]:
    """Yield kind, offset and size of each block's content; the last block may be truncated."""
    with path.open("rb") as stream:
        while kind := stream.read(1):
            place = stream.tell() + 8
            size = int.from_bytes(stream.read(8), "big") - 8
            yield kind[0], place, size
            if size < 0:
                return
            stream.seek(place + size)


def is_whole(path: Path) -> bool:
    """Return whether all blocks that a waveform needs are there to their end."""
    found, end = set(), 0
    for kind, place, size in blocks(path):
        found.add(kind)
        end = place + size
    whole = {HEADER, GEOMETRY} <= found and not found.isdisjoint(HIERARCHIES)
    return whole and end == os.path.getsize(path)


class RtlRecording:
    """A context in which executions are recorded; see `RecordsWaves.recording`.

    The file is there when the context has ended, as a whole or not at all.

    Args:
        wave: the file and the window.
        phase: the cycles of this phase alone; None: of all but phase 0 where phases are set.
        opened: gives a model that writes waves of this format, when the file can be made.

    Attributes:
        recorded: what is in the file; None before the end.
    """

    def __init__(self, wave: Wave, phase: int | None, opened: Callable[[], RtlModel]) -> None:
        self.wave, self.phase = wave, phase
        self.recorded: Recorded | None = None
        self._opened = opened
        self._target = wave.file.resolve()
        self._cleanup = ExitStack()

    def __enter__(self) -> RtlRecording:
        with ExitStack() as stack:
            self._temporary = Path(stack.enter_context(self._folder())) / self._target.name
            self._model = self._opened()
            if self._model.is_recording:
                raise UsageError(f"{self.wave.file}: the device already records a waveform")
            self._model.open_wave(self._temporary, self.wave.first, self.wave.end, self.phase)
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with self._cleanup:
            if not self._model.is_open:
                return
            wrote, of, cycles = self._model.close_wave()
            if kind is None:
                self._demand(wrote, of, cycles)
            elif not cycles or not isinstance(error, DeviceFault | AcceleratorError):
                return
            os.replace(self._temporary, self._target)
            self.recorded = Recorded(self.wave, cycles, of)

    def _folder(self) -> TemporaryFolder:
        """Return a temporary folder beside the file."""
        try:
            if self._target.exists() and not stat.S_ISREG(self._target.stat().st_mode):
                raise UsageError(f"{self.wave.file}: cannot be written: it is not a regular file")
            return temporary_folder("wave", self._target.parent)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"{self.wave.file}: cannot be written: {reason}") from None

    def _demand(self, wrote: bool, of: int, cycles: int) -> None:
        file, first = self.wave.file, self.wave.first
        if not cycles:
            where = "the run" if self.phase is None else "the layer"
            raise UsageError(
                f"the window begins at cycle {first:,}, and {where} has {of:,} cycles", where=file
            )
        if not wrote or (self._target.suffix == ".fst" and not is_whole(self._temporary)):
            raise DeviceError("the waveform cannot be written; is the disk full?", where=file)
