"""An elementwise unit: sums, products, pooling, and softmax by table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import (
    TECHNOLOGY,
    TIMING,
    WAIT,
    Accelerator,
    CCall,
    Job,
    Limit,
    Parameter,
    RegisterImage,
    TensorSlice,
    number,
    result,
    table,
    tensor,
)
from covp.accelerator.call import Argument, Step
from covp.graph.fixed_point import one_over_one_plus_x
from covp.graph.graph import Tensor
from covp.graph.pattern import Match
from covp.graph.quantization import (
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
    rounding_doubling_high_mul,
)
from covp.graph.typed import QuantizedElementwise, QuantizedPool2D, QuantizedSoftmax
from covp.hardware.job import JobValues
from covp.hardware.job_unit import JobError

OPERATIONS = ("ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MAX_POOL_2D", "SOFTMAX")
"""By the number in the register OPERATION."""
ADD, SUB, MUL, AVERAGE, MAXIMUM, SOFTMAX = range(6)
_LEFT_SHIFT, _SUM_BITS = 20, 12
_HALF = 0xFFFF


def _operands(job: JobValues) -> int:
    """Elements of the first operand."""
    return int(job.ROWS * job.COLUMNS * job.CHANNELS)


def _results(job: JobValues) -> int:
    if job.OPERATION in (AVERAGE, MAXIMUM):
        return int(job.OUT_HEIGHT * job.OUT_WIDTH * job.CHANNELS)
    return _operands(job)


class Vector(Accelerator):
    """Elementwise unit: int8 ADD, SUB, MUL, pooling and SOFTMAX by table, a few lanes wide.

    Elementwise layers are cut into jobs of at most ``buffer`` elements, the unit's local memory,
    by a pass on the lowered calls; images and rows of a softmax have to fit as a whole.
    ``macs_per_cycle`` is the number of lanes.
    """

    name = "vector"
    operators = OPERATIONS
    parameters = (
        Parameter("buffer", 16384, "elements of an operand that the local memory holds", 16),
        *TIMING,
        WAIT,
        TECHNOLOGY,
    )
    job = Job(
        tensor("FIRST", "int8", _operands, "Of images NHWC."),
        tensor(
            "SECOND",
            "int8",
            _operands,
            "The other operand of ADD, SUB and MUL.",
            optional=True,
        ),
        table("TABLE", "int32", lambda job: 256, "Exponentials of SOFTMAX.", optional=True),
        result("OUTPUT", "int8", _results),
        number("OPERATION", 0, len(OPERATIONS) - 1, ", ".join(OPERATIONS)),
        number("ROWS", 1, _HALF, "Rows of the image, or of the softmax; else 1."),
        number("COLUMNS", 1, (1 << 24) - 1, "Columns of the image; else elements of a row."),
        number("CHANNELS", 1, _HALF, "Channels of the image; else 1."),
        number("OUT_HEIGHT", 1, _HALF),
        number("OUT_WIDTH", 1, _HALF),
        number("FILTER_HEIGHT", 1, _HALF),
        number("FILTER_WIDTH", 1, _HALF),
        number("STRIDE_HEIGHT", 1, _HALF),
        number("STRIDE_WIDTH", 1, _HALF),
        number("PAD_TOP", 0, _HALF),
        number("PAD_LEFT", 0, _HALF),
        number("FIRST_ZERO_POINT", -128, 127),
        number("SECOND_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("FIRST_MULTIPLIER", 0, 0x7FFFFFFF),
        number("FIRST_SHIFT", -31, 30),
        number("SECOND_MULTIPLIER", 0, 0x7FFFFFFF),
        number("SECOND_SHIFT", -31, 30),
        number("OUTPUT_MULTIPLIER", 0, 0x7FFFFFFF),
        number("OUTPUT_SHIFT", -31, 30),
        number("LOW", -128, 127, "Lowest result."),
        number("HIGH", -128, 127, "Highest result."),
    )

    def accepts(self, layer: Any) -> Iterable[Limit]:
        """One image at a time, and what cannot be cut must fit the buffer."""
        buffer = int(self.values["buffer"])
        if isinstance(layer, QuantizedPool2D):
            yield Limit("batch", layer.batch, at_most=1)
            size = layer.in_height * layer.in_width * layer.channels
            yield Limit("elements of the image", size, at_most=buffer)
        if isinstance(layer, QuantizedSoftmax):
            yield Limit("elements", layer.rows * layer.depth, at_most=buffer)

    def registers(self, layer: Any) -> Mapping[str, Any]:
        """By the kind of layer; what it does not use stays at a harmless value."""
        values: dict[str, Any] = {number.name: 1 for number in self.job.numbers}
        zero = [name for name in values if name.endswith(("POINT", "PLIER", "SHIFT"))]
        values |= dict.fromkeys([*zero, "PAD_TOP", "PAD_LEFT"], 0)
        values |= {"TABLE": None, "LOW": -128, "HIGH": 127, **super().registers(layer)}
        if isinstance(layer, QuantizedSoftmax):
            shape = {"OPERATION": SOFTMAX, "COLUMNS": layer.depth, "TABLE": layer.exponentials}
            return values | shape | {"OUTPUT_ZERO_POINT": -128}
        values["OPERATION"] = OPERATIONS.index(layer.kind)
        if isinstance(layer, QuantizedElementwise):
            return values | {"COLUMNS": layer.elements}
        return values | {"ROWS": layer.in_height, "COLUMNS": layer.in_width}

    def tensors(self, match: Match) -> list[Argument]:
        """The second operand's address is 0 where there is none."""
        first = match.op.input(0)
        return [first, match.op.input(1) if OPERATIONS.index(match.op.kind) <= MUL else 0]

    def jobs(self, layer: Any, job: JobValues) -> Iterable[JobValues]:
        """As many as `refine` makes calls."""
        buffer = int(self.values["buffer"])
        if job.OPERATION > MUL:
            return [job]
        starts = range(0, job.COLUMNS, buffer)
        return [job.but(COLUMNS=min(buffer, job.COLUMNS - start)) for start in starts]

    def refine(self, match: Match, steps: Sequence[Step]) -> Sequence[Step]:
        """Cut elementwise calls into ones that fit the buffer."""
        buffer = int(self.values["buffer"])
        (call,) = steps
        size = match.outputs[0].size
        if OPERATIONS.index(match.op.kind) > MUL or size <= buffer:
            return steps
        assert isinstance(call, CCall)
        image, *tensors = call.arguments
        assert isinstance(image, RegisterImage)
        return [
            CCall(
                call.function,
                call.header,
                (
                    _shorter(image, min(buffer, size - start)),
                    *(TensorSlice(t, start) for t in tensors if isinstance(t, Tensor)),
                ),
            )
            for start in range(0, size, buffer)
        ]

    def check(self, job: JobValues) -> str | None:
        """The operands must fit the buffer, and pooling windows must lie in their image."""
        if _operands(job) > int(self.values["buffer"]):
            return "size"
        if job.OPERATION in (AVERAGE, MAXIMUM):
            down = (job.ROWS, job.FILTER_HEIGHT, job.OUT_HEIGHT, job.STRIDE_HEIGHT, job.PAD_TOP)
            right = (job.COLUMNS, job.FILTER_WIDTH, job.OUT_WIDTH, job.STRIDE_WIDTH, job.PAD_LEFT)
            for size, window, out, stride, pad in (down, right):
                if pad >= window or (out - 1) * stride - pad >= size:
                    return "size"
        return "range" if job.LOW > job.HIGH else None

    def compute(self, job: Any) -> NDArray[Any]:
        """By OPERATION."""
        needed = {SOFTMAX: job.TABLE}.get(job.OPERATION, job.SECOND)
        if needed is None and job.OPERATION not in (AVERAGE, MAXIMUM):
            raise JobError("address", "the operation needs an operand whose address is 0")
        if job.OPERATION <= MUL:
            return _elementwise(job)
        return _softmax(job) if job.OPERATION == SOFTMAX else _pool(job)

    def macs(self, job: Any) -> int:
        """One operation an element: of a pooling's windows, and three times over a softmax."""
        if job.OPERATION in (AVERAGE, MAXIMUM):
            return int(_results(job) * job.FILTER_HEIGHT * job.FILTER_WIDTH)
        return _operands(job) * (3 if job.OPERATION == SOFTMAX else 1)


def _shorter(image: RegisterImage, elements: int) -> RegisterImage:
    words = tuple((n, elements if n == "COLUMNS" else word) for n, word in image.words)
    return RegisterImage(image.name, words)


def _elementwise(job: Any) -> NDArray[Any]:
    x = job.FIRST.astype(np.int64) - job.FIRST_ZERO_POINT
    y = job.SECOND.astype(np.int64) - job.SECOND_ZERO_POINT
    if job.OPERATION == MUL:
        total = x * y
    else:
        x, y = (
            multiply_by_quantized_multiplier(value << _LEFT_SHIFT, multiplier, shift)
            for value, multiplier, shift in (
                (x, job.FIRST_MULTIPLIER, job.FIRST_SHIFT),
                (y, job.SECOND_MULTIPLIER, job.SECOND_SHIFT),
            )
        )
        total = x - y if job.OPERATION == SUB else x + y
    scaled = multiply_by_quantized_multiplier(total, job.OUTPUT_MULTIPLIER, job.OUTPUT_SHIFT)
    return _clamped(scaled + job.OUTPUT_ZERO_POINT, job)


def _clamped(values: NDArray[Any], job: Any) -> NDArray[np.int8]:
    return np.asarray(np.clip(values, job.LOW, job.HIGH), np.int8)


def _pool(job: Any) -> NDArray[Any]:
    """Window by window over all channels; what lies outside the image does not count."""
    image = job.FIRST.reshape(job.ROWS, job.COLUMNS, job.CHANNELS).astype(np.int32)
    out = np.empty((job.OUT_HEIGHT, job.OUT_WIDTH, job.CHANNELS), np.int32)
    for y, x in np.ndindex(job.OUT_HEIGHT, job.OUT_WIDTH):
        top, left = y * job.STRIDE_HEIGHT - job.PAD_TOP, x * job.STRIDE_WIDTH - job.PAD_LEFT
        window = image[
            max(0, top) : top + job.FILTER_HEIGHT, max(0, left) : left + job.FILTER_WIDTH
        ].reshape(-1, job.CHANNELS)
        out[y, x] = window.max(axis=0) if job.OPERATION == MAXIMUM else _rounded_mean(window)
    return _clamped(out, job)


def _rounded_mean(window: NDArray[np.int32]) -> NDArray[np.int32]:
    """Half away from zero."""
    total, count = window.sum(axis=0, dtype=np.int64), len(window)
    rounded = (np.abs(total) + count // 2) // count
    return np.asarray(np.where(total > 0, rounded, -rounded), np.int32)


def _softmax(job: Any) -> NDArray[Any]:
    """TFLM's, with one division per row: reference_ops::Softmax."""
    x = job.FIRST.reshape(job.ROWS, job.COLUMNS).astype(np.int64)
    powers = job.TABLE.astype(np.int64)[x.max(axis=1, keepdims=True) - x]
    total = rounding_divide_by_pot(powers, _SUM_BITS).sum(axis=1, keepdims=True)
    zeros = 32 - np.vectorize(int.bit_length, otypes=[np.int64])(total)
    scale = one_over_one_plus_x((total << zeros) - (1 << 31))
    scaled = rounding_divide_by_pot(
        rounding_doubling_high_mul(scale, powers), _SUM_BITS - zeros + 31 - 8
    )
    return _clamped(scaled + job.OUTPUT_ZERO_POINT, job)
