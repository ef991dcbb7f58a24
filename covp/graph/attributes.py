"""The attributes of each kind of operator; paddings are resolved to numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal

Activation = Literal["none", "relu", "relu6", "relu_n1_to_1"]
Pair = tuple[int, int]
"""(height, width)."""


class Role(Enum):
    """The meaning of an attribute for the axes of the data that an operator reads."""

    AXIS = "the number of one"
    AXES = "the numbers of several, sorted"
    EACH_AXIS = "an entry for each"


Axis = Annotated[int, Role.AXIS]
Axes = Annotated[tuple[int, ...], Role.AXES]


@dataclass(frozen=True)
class Padding:
    """Rows and columns of padding around an image."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0

    @property
    def any(self) -> bool:
        """True if any side is padded."""
        return bool(self.top or self.bottom or self.left or self.right)


@dataclass(frozen=True)
class Conv2D:
    """CONV_2D: input NHWC, weights OHWI, bias O."""

    stride: Pair
    padding: Padding
    dilation: Pair = (1, 1)
    activation: Activation = "none"


@dataclass(frozen=True)
class DepthwiseConv2D:
    """DEPTHWISE_CONV_2D: input NHWC, weights 1HWO with O = C * depth_multiplier, bias O."""

    stride: Pair
    padding: Padding
    dilation: Pair = (1, 1)
    depth_multiplier: int = 1
    activation: Activation = "none"


@dataclass(frozen=True)
class FullyConnected:
    """FULLY_CONNECTED: input (batch..., C), weights OC, bias O."""

    activation: Activation = "none"
    keep_num_dims: bool = False


@dataclass(frozen=True)
class Pool2D:
    """AVERAGE_POOL_2D and MAX_POOL_2D; padding never counts in the average.

    Attributes:
        ties_up: integer averages round ties up, as TFLite's of uint8; else away from zero.
    """

    filter: Pair
    stride: Pair
    padding: Padding
    activation: Activation = "none"
    ties_up: bool = False


@dataclass(frozen=True)
class Elementwise:
    """ADD, SUB, MUL, with numpy's broadcasting."""

    activation: Activation = "none"


@dataclass(frozen=True)
class Mean:
    """MEAN, SUM or another reduction over axes (sorted, not negative).

    Attributes:
        axes: None where they are computed at run time: the second input.
        keep_dims: whether they stay, with extent 1.
        nan_counts: a NaN among floats is their largest and least, as in ONNX; else it is neither,
            as in TFLite.
    """

    axes: Annotated[tuple[int, ...] | None, Role.AXES]
    keep_dims: bool
    nan_counts: bool = field(default=False, repr=False)  # no schedule depends on it


@dataclass(frozen=True)
class Softmax:
    """SOFTMAX along the last axis."""

    beta: float = 1.0


@dataclass(frozen=True)
class LeakyRelu:
    """LEAKY_RELU."""

    alpha: float


@dataclass(frozen=True)
class Pad:
    """PAD and PADV2: (before, after) for each axis; the value is stored (quantized) units."""

    paddings: Annotated[tuple[Pair, ...], Role.EACH_AXIS]
    value: float = 0.0


@dataclass(frozen=True)
class Concatenation:
    """CONCATENATION along an axis (not negative)."""

    axis: Axis
    activation: Activation = "none"


@dataclass(frozen=True)
class JoinedRows(Concatenation):
    """CONCATENATION of rows, each part of which an operator writes where the whole lies."""


@dataclass(frozen=True)
class Transpose:
    """TRANSPOSE: output axis i is input axis permutation[i]."""

    permutation: Annotated[tuple[int, ...], Role.EACH_AXIS]


@dataclass(frozen=True)
class StridedSlice:
    """STRIDED_SLICE and SLICE with masks resolved: for each input axis (begin, end, stride).

    They are as in Python; ``end`` is None where a negative stride runs to the beginning.
    ``shrink`` lists the input axes that the output drops, ``new_axes`` the output axes of extent
    1 that are put between, in ascending order.
    """

    slices: Annotated[tuple[tuple[int, int | None, int], ...], Role.EACH_AXIS]
    shrink: Axes = ()
    new_axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class RowsOf(StridedSlice):
    """STRIDED_SLICE of rows, which are read where the whole lies."""


@dataclass(frozen=True)
class Split:
    """SPLIT into equal parts along an axis (not negative)."""

    axis: Axis


@dataclass(frozen=True)
class ResizeNearest:
    """RESIZE_NEAREST_NEIGHBOR to (height, width)."""

    size: Pair
    align_corners: bool = False
    half_pixel_centers: bool = False
