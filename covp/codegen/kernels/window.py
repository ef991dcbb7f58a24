"""Windows that slide over an image: C loops over output pixels, with each window cut to fit."""

from __future__ import annotations

from dataclasses import dataclass

from covp.codegen.c_text import indent
from covp.graph.attributes import Padding, Pair


@dataclass(frozen=True)
class Window:
    """A window of taps on a padded NHWC image.

    Attributes:
        source: the image's (batch, height, width, channels).
        result: the output's (batch, height, width, channels).
        size, stride, dilation: of the window.
    """

    source: tuple[int, ...]
    result: tuple[int, ...]
    size: Pair
    stride: Pair
    padding: Padding
    dilation: Pair = (1, 1)

    @property
    def whole(self) -> bool:
        """True if no window reaches outside the image."""
        return not self.padding.any

    @property
    def rows(self) -> str:
        """The head of the C loop over those rows of a window's taps that lie inside the image."""
        first, last = ("0", str(self.size[0])) if self.whole else ("first_row", "last_row")
        return f"for (int32_t ky = {first}; ky < {last}; ky++)"

    @property
    def columns(self) -> str:
        """The head of the C loop over the taps of a row."""
        first, last = ("0", str(self.size[1])) if self.whole else ("first_column", "last_column")
        return f"for (int32_t kx = {first}; kx < {last}; kx++)"

    @property
    def tap(self) -> str:
        """The C index of the tap's first channel in ``image``."""
        _, _, width, channels = self.source
        row = "top + ky" if self.dilation[0] == 1 else f"top + ky * {self.dilation[0]}"
        column = "left + kx" if self.dilation[1] == 1 else f"left + kx * {self.dilation[1]}"
        return f"(({row}) * {width} + {column}) * {channels}"

    def walk(self, element: str, channel: str, body: list[str]) -> list[str]:
        """Return C loops over the taps of an undilated window.

        Args:
            element: C type of the image's elements.
            channel: C expression of the first channel.
            body: lines for each tap; the pointer ``from`` is at its first channel.
        """
        _, _, width, channels = self.source
        if self.whole:
            rows, columns, row, column = str(self.size[0]), str(self.size[1]), "top", "left"
        else:
            rows, columns = "last_row - first_row", "last_column - first_column"
            row, column = "(top + first_row)", "left + first_column"
        return [
            f"const {element} *from = image + ({row} * {width} + {column}) * {channels}"
            f" + {channel};",
            f"for (int32_t rows_left = {rows}; rows_left > 0; rows_left--) {{",
            f"    for (int32_t columns_left = {columns}; columns_left > 0; columns_left--) {{",
            indent([*body, f"from += {channels};"], 2),
            "    }",
            f"    from += ({width} - ({columns})) * {channels};",
            "}",
        ]

    def loops(self, body: list[str], element: str) -> list[str]:
        """Return C loops over the output's pixels; ``body`` finds ``image`` and ``output`` set."""
        batch, height, width, channels = self.source
        pixel = [
            f"const int32_t top = {_start('y', self.stride[0], self.padding.top)};",
            f"const int32_t left = {_start('x', self.stride[1], self.padding.left)};",
            *([] if self.whole else self._cut()),
            *body,
            f"output += {self.result[3]};",
        ]
        return [
            f"const {element} *image = input;",
            f"for (int32_t b = 0; b < {batch}; b++, image += {height * width * channels}) {{",
            f"    for (int32_t y = 0; y < {self.result[1]}; y++) {{",
            f"        for (int32_t x = 0; x < {self.result[2]}; x++) {{",
            indent(pixel, 3),
            "        }",
            "    }",
            "}",
        ]

    def _cut(self) -> list[str]:
        """Emit the bounds of the taps that lie inside the image."""
        lines = []
        for axis, name, start in ((0, "row", "top"), (1, "column", "left")):
            step, extent = self.dilation[axis], self.source[axis + 1]
            size, reach = self.size[axis], (self.size[axis] - 1) * step
            # rounded up where taps are apart
            before, inside = f"-{start}", f"{extent} - {start}"
            if step > 1:
                before, inside = (f"({part} + {step - 1}) / {step}" for part in (before, inside))
            lines += [
                f"const int32_t first_{name} = {start} < 0 ? {before} : 0;",
                f"const int32_t last_{name} = {start} + {reach} >= {extent} ? {inside} : {size};",
            ]
        return lines


def _start(index: str, stride: int, before: int) -> str:
    """Return C text of the first row or column of the window at an output pixel."""
    scaled = index if stride == 1 else f"{index} * {stride}"
    return scaled if before == 0 else f"{scaled} - {before}"
