"""Loops of windows over images with any number of axes, each window cut to fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from covp.codegen.c_text import indent

Extents = Sequence[int]


@dataclass(frozen=True)
class WindowND:
    """A window on an image (batch, *space, channels).

    Attributes:
        source, result: shapes of image and output.
        size, stride, dilation: of the window, for each axis of space.
        before: padding before each.
        transposed: the window lies on the output: the taps that reach an output element are walked
            in the order of the image's elements.
    """

    source: Extents
    result: Extents
    size: Extents
    stride: Extents
    dilation: Extents
    before: Extents
    transposed: bool = False

    @property
    def axes(self) -> range:
        """The axes of space."""
        return range(len(self.size))

    def tap(self, last: str) -> str:
        """Return the C index in ``image`` of the current tap's element ``last`` of the channels."""
        index = ""
        for axis in self.axes:
            at = f"p{axis}"
            index = at if not index else f"({index}) * {self.source[axis + 1]} + {at}"
        return f"({index}) * {self.source[-1]} + {last}"

    @property
    def weight(self) -> str:
        """C expression of the current tap's number."""
        index = ""
        for axis in self.axes:
            index = f"k{axis}" if not index else f"({index}) * {self.size[axis]} + k{axis}"
        return index

    def taps(self, body: Sequence[str]) -> list[str]:
        """Return C loops over the taps inside the image: ``k<axis>``, at element ``p<axis>``."""
        lines = list(body)
        for axis in reversed(self.axes):
            lines = self._transpose(axis, lines) if self.transposed else self._direct(axis, lines)
        return lines

    def _direct(self, axis: int, body: list[str]) -> list[str]:
        step = self.dilation[axis]
        scaled = f"k{axis}" if step == 1 else f"k{axis} * {step}"
        return [
            f"for (int32_t k{axis} = first{axis}; k{axis} < last{axis}; k{axis}++) {{",
            f"    const int32_t p{axis} = start{axis} + {scaled};",
            indent(body),
            "}",
        ]

    def _transpose(self, axis: int, body: list[str]) -> list[str]:
        step, distance = self.dilation[axis], f"start{axis} - p{axis} * {self.stride[axis]}"
        if step == 1:
            inner = [f"const int32_t k{axis} = {distance};", *body]
        else:
            inner = [
                f"const int32_t d{axis} = {distance}, k{axis} = d{axis} / {step};",
                f"if (d{axis} % {step} != 0) {{",
                "    continue;",
                "}",
                *body,
            ]
        return [
            f"for (int32_t p{axis} = first{axis}; p{axis} < last{axis}; p{axis}++) {{",
            indent(inner),
            "}",
        ]

    def _limits(self, axis: int) -> list[str]:
        """Return a window's place, first and last tap (of transposed ones: image element)."""
        extent, stride, step = self.source[axis + 1], self.stride[axis], self.dilation[axis]
        start, first, last = f"start{axis}", f"first{axis}", f"last{axis}"
        reach = (self.size[axis] - 1) * step
        if self.transposed:
            return [
                f"const int32_t {start} = o{axis} + {self.before[axis]};",
                f"const int32_t {first} = {start} > {reach} ?"
                f" ({start} - {reach} + {stride - 1}) / {stride} : 0;",
                f"const int32_t {last} = {start} / {stride} < {extent} ?"
                f" {start} / {stride} + 1 : {extent};",
            ]
        before = self.before[axis]
        whole = before == 0 and (self.result[axis + 1] - 1) * stride + reach < extent
        place = [f"const int32_t {start} = o{axis} * {stride} - {before};"]
        if whole:
            return [*place, f"const int32_t {first} = 0, {last} = {self.size[axis]};"]
        return [
            *place,
            f"const int32_t {first} = {start} < 0 ? ({step - 1} - {start}) / {step} : 0;",
            f"const int32_t {last} = {start} + {reach} < {extent} ? {self.size[axis]} :"
            f" {start} < {extent} ? ({extent + step - 1} - {start}) / {step} : 0;",
        ]

    def loops(
        self,
        body: Sequence[str],
        element: str,
        source: str = "input0",
        targets: Sequence[str] = ("output",),
    ) -> list[str]:
        """Return C loops over the output's pixels.

        Args:
            body: finds ``image``, which is the source's of the batch, and the targets set.
            element: C type of the image.
            source: C name of the input.
            targets: C names of the outputs, which move on.
        """
        lines = [*body, *(f"{target} += {self.result[-1]};" for target in targets)]
        for axis in reversed(self.axes):
            lines = [
                f"for (int32_t o{axis} = 0; o{axis} < {self.result[axis + 1]}; o{axis}++) {{",
                indent([*self._limits(axis), *lines]),
                "}",
            ]
        image = math.prod(self.source[1:])
        return [
            f"const {element} *image = {source};",
            f"for (int32_t b = 0; b < {self.source[0]}; b++, image += {image}) {{",
            indent(lines),
            "}",
        ]
