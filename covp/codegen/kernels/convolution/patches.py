"""Patches of a convolution: the C that gathers the input under a kernel into one row."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from covp.codegen.c_text import indent
from covp.graph.typed_convolution import QuantizedConv2D


def rows_in_place(problem: QuantizedConv2D) -> bool:
    """Return whether each pixel's patch is one contiguous row of the input as it is."""
    return problem.kernel == (1, 1) and problem.stride == (1, 1) and not problem.padding.any


@dataclass(frozen=True)
class PatchGather:
    """C text of ``gather``, which makes one row of the patch matrix.

    Attributes:
        problem: whose input is gathered.
        row_stride: elements from one row to the next; no less than a patch has.
        widen: C function that sign-extends the bytes 0 and 2 of a word; rows are int16 then.
            Empty: rows are of the input's type.
        source: C type of the input's elements: int8_t or int16_t; the latter are not widened.
    """

    problem: QuantizedConv2D
    row_stride: int
    widen: str = ""
    source: str = "int8_t"

    @property
    def is_widened(self) -> bool:
        """True if rows are int16."""
        return bool(self.widen)

    @property
    def whole_words(self) -> bool:
        """True if a pixel's channels are whole words, which are copied as such."""
        return self.problem.in_channels % self._per_word == 0

    @property
    def _per_word(self) -> int:
        return 2 if self.source == "int16_t" else 4

    @property
    def widen_after_gather(self) -> bool:
        """True if a patch is gathered as bytes first and widened as a whole."""
        return self.is_widened and not self.whole_words

    @property
    def element(self) -> str:
        """C type of an element of a patch."""
        return "int16_t" if self.is_widened else self.source

    def function(self) -> str:
        """Return C text of ``gather(input, [top, left,] patch)``: one row of the patch matrix.

        With DSP the row is int16 in the order (0, 2), (1, 3) of each four k, which is how SXTB16
        splits the weights. Runs of whole words are widened as they are copied; else the row is
        gathered as bytes after the block and widened at the end.
        """
        position = "" if rows_in_place(self.problem) else "int32_t top, int32_t left, "
        target = (
            "int16_t *wide, int8_t *patch" if self.widen_after_gather else f"{self.element} *patch"
        )
        lines = [f"static void gather(const {self.source} *input, {position}{target})", "{"]
        if self.widen_after_gather:
            lines.append("    const int8_t *bytes = patch;")
        if rows_in_place(self.problem):
            lines.append(f"    copy(patch, input, {self.problem.in_channels});")
        else:
            lines += self._rows()
        if self.widen_after_gather:
            lines.append(f"    widen(wide, bytes, {self.row_stride});")
        return "\n".join([self._copy_functions(), *lines, "}\n"])

    def _rows(self) -> list[str]:
        p = self.problem
        (kh, kw), (dh, dw), c = p.kernel, p.dilation, p.in_channels
        row, width = p.in_width * c, kw * c
        inner = [f"const {self.source} *row = input + (top + y * {dh}) * {row} + left * {c};"]
        if (dw == 1 or kw == 1) and kw <= p.in_width:
            inner += [
                f"if (left >= 0 && left <= {p.in_width - kw}) {{",
                f"    copy(patch, row, {width});",
                f"    patch += {width};",
                "    continue;",
                "}",
            ]
        inner += [
            f"for (int32_t x = 0; x < {kw}; x++, patch += {c}) {{",
            f"    if ((uint32_t)(left + x * {dw}) < {p.in_width}u)",
            f"        copy(patch, row + x * {dw * c}, {c});",
            "    else",
            f"        fill(patch, {c});",
            "}",
        ]
        return [
            *self._rows_inside(),
            f"    for (int32_t y = 0; y < {kh}; y++) {{",
            f"        if ((uint32_t)(top + y * {dh}) >= {p.in_height}u) {{",
            f"            fill(patch, {width});",
            f"            patch += {width};",
            "            continue;",
            "        }",
            indent(inner, 2),
            "    }",
        ]

    def _rows_inside(self) -> list[str]:
        """Emit one test for patches inside the image, in place of a test for each row."""
        p = self.problem
        (kh, kw), (dh, dw), c = p.kernel, p.dilation, p.in_channels
        lowest, rightmost = p.in_height - (kh - 1) * dh - 1, p.in_width - kw
        if (dw > 1 and kw > 1) or lowest < 0 or rightmost < 0:
            return []
        row, width = p.in_width * c, kw * c
        return [
            f"    if ((uint32_t)top <= {lowest}u && (uint32_t)left <= {rightmost}u) {{",
            f"        const {self.source} *row = input + top * {row} + left * {c};",
            f"        for (int32_t y = 0; y < {kh}; y++, row += {dh * row}, patch += {width})",
            f"            copy(patch, row, {width});",
            # else the function widens at its end
            *(["    } else"] if self.widen_after_gather else ["        return;", "    }"]),
        ]

    def _copy_functions(self) -> str:
        """Return C text of ``copy``, ``fill`` and ``widen`` as this layer's rows need them."""
        zero = str(self.problem.input_zero_point)
        needs_fill = not rows_in_place(self.problem)
        if self.is_widened and self.whole_words:
            copy = _WIDEN.substitute(name="copy", widen=self.widen)
            return copy + (_FILL.substitute(element="int16_t", zero=zero) if needs_fill else "")
        form = _COPY_WORDS if self.whole_words else _COPY_ELEMENTS
        copy = form.substitute(element=self.source, per_word=self._per_word)
        fill = _FILL.substitute(element=self.source, zero=zero) if needs_fill else ""
        late = _WIDEN.substitute(name="widen", widen=self.widen) if self.is_widened else ""
        return copy + fill + late


_COPY_ELEMENTS = Template("""\
static inline void copy($element *to, const $element *from, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = from[i];
}
""")
_COPY_WORDS = Template("""\
static inline void copy($element *to, const $element *from, int32_t count)
{
    const word *source = (const void *)from;
    word *target = (void *)to;
    for (int32_t i = 0; i < count / $per_word; i++)
        target[i] = source[i];
}
""")
_FILL = Template("""\
static inline void fill($element *to, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = $zero;
}
""")
_WIDEN = Template("""\
static inline void $name(int16_t *to, const int8_t *from, int32_t count)
{
    const word *source = (const void *)from;
    word *target = (void *)to;
    for (int32_t i = 0; i < count / 4; i++) {
        uint32_t four = source[i];
        target[2 * i] = (uint32_t)$widen(four);
        target[2 * i + 1] = (uint32_t)$widen((four >> 8) | (four << 24));
    }
}
""")
