"""`DeviceTensor`: an array that lives in the target's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covp.errors import UsageError
from covp.runtime.resident import Resident

ALIGNMENT = 16


class DeviceTensor:
    """A dense, row-major array in device memory; `Session.tensor` makes them.

    Attributes:
        shape, dtype: as of the numpy array it came from; dtype is little-endian.
        name, written, members, scratch, value_bytes: as of other arguments: it has no name, its
            bytes have values, and it is no structure.
        session: where it lives.
    """

    def __init__(self, session: Resident, array: ArrayLike) -> None:
        values = np.asarray(array)
        if values.dtype.kind not in "iufb" or values.dtype.itemsize > 8:
            raise UsageError(f"a tensor of {values.dtype} cannot be put on the device")
        self.session = session
        self.name, self.written, self.scratch, self.value_bytes = "", True, False, b""
        self.members: tuple[tuple[DeviceTensor, bool], ...] = ()
        self.shape: tuple[int, ...] = values.shape
        self.dtype: np.dtype[Any] = values.dtype.newbyteorder("<")
        what = f"tensor {'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype.name}"
        self._placed = session.place(self.nbytes, ALIGNMENT, what)
        self.write(values)

    @property
    def address(self) -> int:
        """Address of the first element, a multiple of 16."""
        self.session.share(self._placed)
        return self._placed.address

    @property
    def pointer(self) -> int:
        """The same, for a call that is given the tensor."""
        return self._placed.address

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def numpy(self) -> NDArray[Any]:
        """Return a copy of its present content; queued calls run first."""
        self._check_alive()
        raw = self.session.read(self.pointer, self.nbytes)
        values: NDArray[Any] = np.frombuffer(raw, self.dtype).reshape(self.shape)
        return np.array(values)

    def write(self, array: ArrayLike) -> None:
        """Replace the content; queued calls run first, on the old content.

        Args:
            array: of exactly this shape and dtype.

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
        self.session.write(self.pointer, np.ascontiguousarray(values, self.dtype).tobytes())

    def free(self) -> None:
        """Give the memory back; queued calls run first. A second call does nothing."""
        if self._placed.alive:
            self.session.sync()
            self._placed.free()

    def _check_alive(self) -> None:
        self.session.check_open()
        if not self._placed.alive:
            raise UsageError("the tensor was freed")

    def check_usable_in(self, session: Resident, where: str) -> None:
        """Raise UsageError if freed or of another session; ``where`` names the call."""
        self._check_alive()
        if session is not self.session:
            raise UsageError(
                f"{where}: the tensor lives in another session, on "
                f"{self.session.platform.name}; copy it with session.tensor(tensor.numpy())"
            )

    def __repr__(self) -> str:
        return f"<DeviceTensor {self.shape} {self.dtype.name} at 0x{self.pointer:08x}>"
