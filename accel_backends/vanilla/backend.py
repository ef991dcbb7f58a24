"""The float convolution of UMA's example, with the layout conversion that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from covp.accelerator import (
    Accelerator,
    Job,
    Limit,
    number,
    real,
    result,
    table,
    tensor,
)
from covp.errors import ModelError
from covp.graph.graph import Graph, Op, Tensor, copy_graph
from covp.graph.passes.transposes import remove_transposes, transpose
from covp.graph.pattern import Match, Pattern, op
from covp.graph.typed import FloatConv2D, typed
from covp.hardware.arithmetic import matmul, patches

NCHW_CONV = "VANILLA_CONV_2D_NCHW"
"""The operator that the graph pass before partitioning replaces CONV_2D with."""
_TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
_HALF = 0xFFFF


@dataclass(frozen=True)
class NchwConv:
    """Attributes of `NCHW_CONV`: the layer as it was."""

    layer: FloatConv2D


class Vanilla(Accelerator):
    """float32 conv2d, NCHW, same padding, stride 1: UMA's Vanilla accelerator, with bias and clamp.

    A graph pass before partitioning turns the convolutions it can do into NCHW, between
    transposes; one after it removes the transposes that meet.
    """

    name = "vanilla"
    # what is still a CONV_2D when patterns are searched for was rejected; the reasons are wanted
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("conv2d_nchw", op(NCHW_CONV)),
        Pattern("conv2d", op("CONV_2D")),
    )
    job = Job(
        tensor("INPUT", "float32", lambda j: j.IN_CHANNELS * j.HEIGHT * j.WIDTH, "NCHW."),
        table(
            "WEIGHTS",
            "float32",
            lambda j: j.OUT_CHANNELS * j.IN_CHANNELS * j.KERNEL_HEIGHT * j.KERNEL_WIDTH,
            "OIHW.",
        ),
        table("BIAS", "float32", lambda j: j.OUT_CHANNELS),
        result("OUTPUT", "float32", lambda j: j.OUT_CHANNELS * j.HEIGHT * j.WIDTH, "NCHW."),
        number("IN_CHANNELS", 1, _HALF),
        number("OUT_CHANNELS", 1, _HALF),
        number("HEIGHT", 1, _HALF),
        number("WIDTH", 1, _HALF),
        number("KERNEL_HEIGHT", 1, 255),
        number("KERNEL_WIDTH", 1, 255),
        real("LOW", "Lowest result."),
        real("HIGH", "Highest result."),
    )

    def before_partitioning(self, graph: Graph) -> Graph:
        """Convolutions that fit become NCHW ones between two transposes."""
        changed = copy_graph(graph)
        for conv in list(changed.ops):
            layer = self._layer_of(conv)
            if layer is None or not all(limit.holds for limit in self.accepts(layer)):
                continue
            source, output = conv.input(0), conv.output
            forth = transpose(source, _TO_NCHW, f"{conv.name}_nchw", conv.index)
            shape = tuple(output.shape[axis] for axis in _TO_NCHW)
            inner = Tensor(f"{output.name}_nchw", shape, output.dtype)
            nchw = Op(NCHW_CONV, conv.name, [forth.output], [inner], NchwConv(layer), conv.index)
            back = transpose(inner, _TO_NHWC, f"{conv.name}_nhwc", conv.index)
            back.outputs = [output]
            position = changed.ops.index(conv)
            changed.ops[position : position + 1] = [forth, nchw, back]
        return changed

    def after_partitioning(self, graph: Graph, own: Sequence[Match]) -> Graph:
        """Between two of its layers the data stay NCHW."""
        changed = copy_graph(graph)
        remove_transposes(changed)
        return changed

    def _layer_of(self, conv: Op) -> FloatConv2D | None:
        if conv.kind != "CONV_2D":
            return None
        try:
            layer = typed(conv)
        except ModelError:
            return None
        return layer if isinstance(layer, FloatConv2D) else None

    def layer(self, match: Match) -> Any:
        """The layer that the graph pass kept, or one that it rejected."""
        kept = match.op.attributes
        return kept.layer if isinstance(kept, NchwConv) else typed(match.op)

    def accepts(self, layer: FloatConv2D) -> Iterable[Limit]:
        """One image, stride 1, same padding."""
        yield Limit("batch", layer.batch, at_most=1)
        yield Limit("stride", max(layer.stride), at_most=1)
        yield Limit("dilation", max(layer.dilation), at_most=1)
        same = (layer.in_height, layer.in_width) == (layer.out_height, layer.out_width)
        centred = all(
            before == (taps - 1) // 2
            for before, taps in zip(
                (layer.padding.top, layer.padding.left), layer.kernel, strict=True
            )
        )
        yield Limit("padding", "same" if same and centred else "other", one_of=("same",))

    def cases(self) -> Mapping[str, Any]:
        """Layers that it accepts: few of all convolutions are of its kind."""
        from hypothesis import strategies as st

        from covp.testing.layers import convolutions

        odd = st.sampled_from([1, 2, 3, 5])
        layers = convolutions(
            "CONV_2D",
            max_size=12,
            max_channels=9,
            dtype="float32",
            batch=1,
            kernel=st.tuples(odd, odd),
            stride=(1, 1),
            dilation=(1, 1),
            same=True,
        )
        return {"CONV_2D": layers}

    def registers(self, layer: FloatConv2D) -> Mapping[str, Any]:
        """Weights go from OHWI to OIHW; input and output are of one size."""
        return {
            **super().registers(layer),
            "WEIGHTS": layer.weights.transpose(0, 3, 1, 2),
            "HEIGHT": layer.in_height,
            "WIDTH": layer.in_width,
        }

    def compute(self, job: Any) -> NDArray[Any]:
        """Over im2col, in float32."""
        image = job.INPUT.reshape(job.IN_CHANNELS, job.HEIGHT, job.WIDTH).transpose(1, 2, 0)
        kernel, size = (job.KERNEL_HEIGHT, job.KERNEL_WIDTH), (job.HEIGHT, job.WIDTH)
        pad = ((kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
        seen = patches(np.ascontiguousarray(image), kernel, (1, 1), pad, size)
        weights = job.WEIGHTS.reshape(job.OUT_CHANNELS, job.IN_CHANNELS, *kernel)
        columns = weights.transpose(0, 2, 3, 1).reshape(job.OUT_CHANNELS, -1)
        sums = matmul(columns, seen.T) + job.BIAS[:, None]
        return np.asarray(np.clip(sums, job.LOW, job.HIGH), np.float32)

    def macs(self, job: Any) -> int:
        """Those with padding included."""
        taps = job.KERNEL_HEIGHT * job.KERNEL_WIDTH * job.IN_CHANNELS
        return int(taps * job.OUT_CHANNELS * job.HEIGHT * job.WIDTH)
