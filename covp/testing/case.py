"""`Case`: a layer with its values as a few numbers; `Layer`: the base of those in covp.testing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from covp.errors import UsageError
from covp.graph.attributes import Padding, Pair
from covp.graph.graph import Graph, Op, Tensor
from covp.testing.contents import Content
from covp.testing.tensors import filled

Dtype = Literal["int8", "int16", "float32"]
DTYPES: st.SearchStrategy[str] = st.sampled_from(["int8", "int8", "int8", "float32"])

_DRAWN: dict[str, Any] = {"seed": st.integers(0, 2**16), "gap": st.integers(0, 7)}


class Case(Protocol):
    """One layer with its inputs, as `covp.testing.verify` runs it; its repr makes it again."""

    @property
    def kind(self) -> str:
        """Kind of the operator, e.g. "CONV_2D"."""
        ...

    @property
    def gap(self) -> int:
        """Unused elements before each buffer in memory, so that its alignment varies."""
        ...

    def graph(self) -> Graph:
        """Return the layer alone."""
        ...

    def inputs(self) -> list[NDArray[Any]]:
        """Return values for the graph's inputs."""
        ...


class Layer(ABC):
    """A `Case` whose values come from a seed; the base of the cases of this module.

    Attributes:
        kind: of the operator.
        seed: of weights, scales and inputs.
        gap: unused elements before each buffer in memory (`covp.testing.verify`).
    """

    kind: str
    seed: int
    gap: int

    @abstractmethod
    def graph(self) -> Graph:
        """Return the layer alone; new tensors at each call, with the same values."""

    def op(self) -> Op:
        """Return the operator of a new `graph`."""
        return self.graph().ops[0]

    def inputs(self) -> list[NDArray[Any]]:
        """Return random values for the graph's inputs."""
        return self._inputs(self.seed, "random")

    def _inputs(self, seed: int, content: Content) -> list[NDArray[Any]]:
        rng = np.random.default_rng(seed)
        return [filled(tensor, rng, content) for tensor in self.graph().inputs]

    def _alone(self, inputs: list[Tensor | None], output: Tensor, attributes: Any) -> Graph:
        given = [tensor for tensor in inputs if tensor is not None and not tensor.constant]
        op = Op(self.kind, "layer", inputs, [output], attributes)
        return Graph("layer", given, [output], [op])


L = TypeVar("L", bound=Layer)


def build_cases(
    make: Callable[..., L], drawn: dict[str, Any], given: dict[str, Any]
) -> st.SearchStrategy[L]:
    """Return a strategy of a class of cases, with seed and gap drawn.

    Args:
        make: the class.
        drawn: strategies or values of its fields.
        given: the same, in place of those.

    Raises:
        UsageError: the case has no such field.
    """
    assert isinstance(make, type)
    known = [field.name for field in fields(make)]
    for name in given:
        if name not in known:
            raise UsageError(f"{make.__name__} has no field {name}; it has {', '.join(known)}")
    chosen = {
        name: value if isinstance(value, st.SearchStrategy) else st.just(value)
        for name, value in (_DRAWN | drawn | given).items()
    }
    return st.builds(make, **chosen)


@dataclass(frozen=True)
class Windows:
    """Windows of a kernel over an image.

    Attributes:
        size: (height, width) of the image, no smaller than a window needs.
        out: (rows, columns) of windows.
        padding: around the image.
    """

    size: Pair
    out: Pair
    padding: Padding


def place_windows(
    size: Pair,
    kernel: Pair,
    stride: Pair,
    dilation: Pair,
    same: bool,
    pads: tuple[int, int, int, int] | None,
) -> Windows:
    """Return the windows over an image.

    Args:
        size, kernel, stride, dilation: (height, width), all positive.
        same: TFLite's SAME padding, else VALID.
        pads: (top, bottom, left, right) in place of both; cut to less than a window, so that none
            lies in the padding alone.
    """
    sizes, outs, sides = [], [], []
    for axis in (0, 1):
        reach, step = (kernel[axis] - 1) * dilation[axis] + 1, stride[axis]
        before, after = (0, 0) if pads is None else pads[2 * axis : 2 * axis + 2]
        before, after = min(before, reach - 1), min(after, reach - 1)
        if same and pads is None:
            extent = size[axis]
            total = max(0, (-(-extent // step) - 1) * step + reach - extent)
            before, after = total // 2, total - total // 2
        else:
            extent = max(size[axis], reach - before - after, 1)
        sizes.append(extent)
        outs.append((extent + before + after - reach) // step + 1)
        sides += [before, after]
    return Windows((sizes[0], sizes[1]), (outs[0], outs[1]), Padding(*sides))
