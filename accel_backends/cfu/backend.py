"""The compiler side of the tightly coupled unit: generated kernels with its instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from hypothesis import strategies as st

from covp.accel_backends.cfu.unit import ACCUMULATORS, REQUANTIZE, make_instructions
from covp.accelerator import (
    CCall,
    Constant,
    CoreKernel,
    CoreUnit,
    Limit,
    Parameter,
    RegisterImage,
    UnitRtl,
    Workspace,
)
from covp.accelerator.call import Step
from covp.accelerator.declared import TECHNOLOGY
from covp.errors import ModelError
from covp.graph.pattern import Match, Pattern, op
from covp.graph.typed_convolution import QuantizedConv2D, resolve
from covp.hardware.custom_instruction import CustomInstruction
from covp.hardware.intrinsics import (
    DotProduct,
    RequantizeInstruction,
    register,
    register_requantize,
)

FEATURE = "cfu"
_HEADER = '#include "cfu.h"'

register(
    DotProduct(
        "cfu",
        requires=frozenset({FEATURE}),
        lanes=4,
        operand="int8",
        definitions=_HEADER,
        accumulators=ACCUMULATORS,
        initialize="cfu_set({number}, {value})",
        expression="cfu_dot({number}, {x}, {w})",
        read="",
    )
)
register_requantize(
    RequantizeInstruction(
        "cfu",
        requires=frozenset({FEATURE}),
        definitions=_HEADER,
        expression="cfu_requantize_value({acc}, {multiplier}, {packed_scale})",
        of_accumulator="cfu_requantize({number}, {multiplier}, {packed_scale})",
    )
)


class Cfu(CoreUnit):
    """Tightly coupled RISC-V unit: 4-way int8 dot product with 16 accumulators, and requantization.

    Custom-0 instructions inside the generated kernels: CONV_2D and FULLY_CONNECTED by the core's
    matrix kernel, DEPTHWISE_CONV_2D by a driver function, four channels at once. The core executes
    every instruction, so it needs fewer of them, but not none.
    """

    name = "cfu"
    patterns = (
        Pattern("matrix", op("CONV_2D") | op("FULLY_CONNECTED")),
        Pattern("depthwise", op("DEPTHWISE_CONV_2D")),
    )
    rtl = UnitRtl(("cfu.v",))
    parameters = (
        Parameter("mac_cycles", 1, "cycles of a dot product", 1, 64, timing=True),
        Parameter("requantize_cycles", 1, "cycles of a requantization", 1, 64, timing=True),
        TECHNOLOGY,
    )

    def supports(self, match: Match) -> bool | str | Sequence[Limit]:
        """int8 with constant weights; depthwise with channels in fours."""
        try:
            layer = resolve(match.op)
        except ModelError as error:
            return str(error)
        types = {t.dtype.name for t in (match.op.input(0), match.op.input(1), match.op.output)}
        limits = [Limit("type", " and ".join(sorted(types)), one_of=("int8",))]
        if layer.depthwise:
            limits += [
                Limit("channel multiplier", layer.depth_multiplier, at_most=1),
                Limit("channels modulo 4", layer.in_channels % 4, at_most=0),
                Limit("dilation", max(layer.dilation), at_most=1),
            ]
        return limits

    def lower(self, match: Match) -> Step:
        """The generated kernel, or the depthwise function."""
        layer = resolve(match.op)
        if not layer.depthwise:
            return CoreKernel(frozenset({FEATURE}))
        row = (layer.in_width + layer.padding.left + layer.padding.right) * layer.in_channels
        image = RegisterImage("image", _image(layer))
        rows = Workspace(layer.kernel[0] * row)
        return CCall(
            "cfu_depthwise",
            "cfu_depthwise.h",
            (image, match.op.input(0), match.op.output, rows, layer.batch),
        )

    def driver(self, base: int) -> Mapping[str, str]:
        """The instructions as C, and the depthwise function."""
        folder = files(__package__)
        names = ("cfu.h", "cfu_depthwise.h", "cfu_depthwise.c")
        return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}

    def make_instructions(self) -> Sequence[CustomInstruction]:
        """The unit's instructions, with the cycles that its parameters say."""
        values = self.values
        return make_instructions(int(values["mac_cycles"]), int(values["requantize_cycles"]))

    def operands(self, instruction: CustomInstruction) -> Any:
        """A requantization takes a multiplier that is not negative, and shifts of an int32."""
        if instruction.funct3 != REQUANTIZE:
            return None
        byte = st.integers(0, 255)
        scale = st.tuples(st.integers(-31, 30).map(lambda shift: shift & 0xFF), byte, byte, byte)
        return st.tuples(
            st.integers(0, 2**31 - 1), scale.map(lambda b: int.from_bytes(bytes(b), "little"))
        )


def _image(layer: QuantizedConv2D) -> tuple[tuple[str, int | Constant], ...]:
    """``struct cfu_depthwise`` of cfu_depthwise.h, word by word."""
    weights = layer.weights.reshape(-1, layer.out_channels)
    bias = layer.bias.astype(np.int64)
    bias -= layer.input_zero_point * weights.astype(np.int64).sum(axis=0)
    packed_scale = layer.shift.astype(np.int64) & 0xFF
    for byte, value in enumerate((layer.output_zero_point, *layer.clamp), 1):
        packed_scale |= (value & 0xFF) << 8 * byte
    # by groups of four channels: a word of weights for each tap; then bias, multiplier and packed
    # scale of each
    groups = weights.reshape(len(weights), -1, 4).transpose(1, 0, 2)
    table = np.stack([bias, layer.multiplier.astype(np.int64), packed_scale], axis=1)
    return (
        ("weights", Constant("weights", np.ascontiguousarray(groups))),
        ("table", Constant("table", table.astype(np.uint32).view(np.int32))),
        ("in_height", layer.in_height),
        ("in_width", layer.in_width),
        ("channels", layer.in_channels),
        ("out_height", layer.out_height),
        ("out_width", layer.out_width),
        ("kernel_height", layer.kernel[0]),
        ("kernel_width", layer.kernel[1]),
        ("stride_height", layer.stride[0]),
        ("stride_width", layer.stride[1]),
        ("pad_top", layer.padding.top),
        ("pad_left", layer.padding.left),
        ("pad_right", layer.padding.right),
        ("zero_points", (layer.input_zero_point & 0xFF) * 0x01010101),
    )
