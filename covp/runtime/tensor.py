"""`DeviceTensor`: an array that lives in the target's memory."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.errors import UsageError

if TYPE_CHECKING:
    from covp.runtime.session import Session

ALIGNMENT = 16


class DeviceTensor:
    """A dense, row-major array in device memory; `Session.tensor` makes them.

    Attributes:
        shape, dtype: as of the numpy array it came from; dtype is little-endian.
        address: of the first element, a multiple of 16.
    """

    def __init__(self, session: Session, array: ArrayLike) -> None:
        values = np.asarray(array)
        if values.dtype.kind not in "iufb" or values.dtype.itemsize > 8:
            raise UsageError(f"a tensor of {values.dtype} cannot be put on the device")
        self.shape: tuple[int, ...] = values.shape
        self.dtype: np.dtype[Any] = values.dtype.newbyteorder("<")
        what = f"tensor {'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype.name}"
        block = session._memory.ram.allocate(self.nbytes, ALIGNMENT, what)
        self.address = block.address
        self._session = session
        # a tensor that nobody holds any more gives its memory back
        self._release = weakref.finalize(self, session._memory.ram.free, block)
        self._release.atexit = False
        self.write(values)

    @property
    def session(self) -> Session:
        """Where it lives."""
        return self._session

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def numpy(self) -> NDArray[Any]:
        """A copy of its present content; queued calls run first."""
        self._check_alive()
        self._session.sync()
        raw = self._session._io.read(self.address, self.nbytes) if self.nbytes else b""
        values: NDArray[Any] = np.frombuffer(raw, self.dtype).reshape(self.shape)
        return np.array(values)

    def write(self, array: ArrayLike) -> None:
        """Replace the content; queued calls run first, on the old content.

        Raises:
            UsageError: another shape or dtype.
        """
        self._check_alive()
        values = np.asarray(array)
        if values.shape != self.shape or values.dtype.newbyteorder("<") != self.dtype:
            raise UsageError(
                f"a tensor of shape {self.shape} {self.dtype.name} cannot take an array of shape "
                f"{values.shape} {values.dtype.name}"
            )
        self._session.sync()
        if self.nbytes:
            data = np.ascontiguousarray(values, self.dtype).tobytes()
            self._session._io.write(self.address, data)

    def free(self) -> None:
        """Give the memory back; queued calls run first. A second call does nothing."""
        if self._release.alive:
            self._session.sync()
            self._release()

    def _check_alive(self) -> None:
        self._session._check_open()
        if not self._release.alive:
            raise UsageError("the tensor was freed")

    def check_usable_in(self, session: Session, where: str) -> None:
        """Raises UsageError: it was freed, or lives on the device of another session."""
        self._check_alive()
        if session is not self._session:
            raise UsageError(
                f"{where}: the tensor lives in another session, on "
                f"{self._session.platform.name}; copy it with session.tensor(tensor.numpy())"
            )

    def __repr__(self) -> str:
        return f"<DeviceTensor {self.shape} {self.dtype.name} at 0x{self.address:08x}>"
