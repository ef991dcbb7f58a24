"""int8 CONV_2D and FULLY_CONNECTED on the core: gather patches, multiply, requantize.

Pixels of the output are taken in blocks. Where the patch of a pixel already lies in memory as
one row (1x1 kernels with stride 1, fully connected) the tile reads it there; else the rows of
the block are gathered into scratch, with the input's zero point where the image ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from covp.codegen.c_text import indent
from covp.codegen.intrinsics import dot_products, find_dot_product
from covp.codegen.kernels.gemm import Block, Gemm
from covp.codegen.kernels.packed import PackedBlock, PackedGemm
from covp.codegen.kernels.packed_weights import PackedWeightsCode
from covp.codegen.kernels.winograd import WinogradCode
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel, prototype
from covp.codegen.schedule import Schedule, Space, valid_schedules
from covp.cores import Core
from covp.errors import UsageError
from covp.graph.resolved import QuantizedConv2D, resolve

_PACKED = Space("packed", {"pairs": (1, 2, 3, 4), "channels": (1, 2, 3), "unroll": (1, 2, 4)})
_PACKED_WEIGHTS = {"pairs": (1, 2, 3, 4, 5, 6, 7, 8), "unroll": (1, 2, 4), "peeled": (0, 1)}
_WINOGRAD = Space(
    "winograd", {"tiles": (1, 2, 3, 4), "channels": (1, 2, 3, 4), "unroll": (1, 2, 4)}
)
_MOST_SUMS = 16
"""Sums beyond this spill on every core."""


def conv2d_schedules(request: KernelRequest) -> list[Schedule]:
    """The valid schedules of a convolution or fully connected layer, the default first."""
    problem = resolve(request.op)
    default = default_schedule(problem, request.core)
    return valid_schedules(
        _spaces(request.core), default, lambda s: is_valid(problem, request.core, s)
    )


def _spaces(core: Core) -> Iterator[Space]:
    """The register blocks of every instruction that the core has, and the packed forms."""
    for dot in filter(lambda dot: dot.fits(core), dot_products()):
        channels: tuple[int, ...] = (1, 2, 3, 4) if dot.lanes > 1 else (1, 2, 3, 4, 6, 8)
        if dot.accumulators:
            channels = (1, 2, 3, 4, 6, 8, 12, 16)
        knobs = {"pixels": (1, 2, 3, 4), "channels": channels, "unroll": (1, 2, 4, 8)}
        yield Space(dot.name, {**knobs, "weights": (8, 16)} if dot.lanes == 2 else knobs)
    yield _PACKED
    yield _WINOGRAD
    # a core without long multiply comes with little flash; a model of 16-bit weights fills it
    weights = (8, 16) if core.has("mull") else (8,)
    yield Space("packed_weights", {**_PACKED_WEIGHTS, "weights": weights})


def is_valid(problem: QuantizedConv2D, core: Core, schedule: Schedule) -> bool:
    """Whether the tile can compute the layer on the core."""
    pixels = problem.batch * problem.out_height * problem.out_width
    if schedule.tile == "packed_weights":
        one = _rows_in_place(problem) and problem.in_height * problem.in_width == 1
        return not core.has("dsp") and one and PackedWeightsCode.takes(problem, schedule["unroll"])
    if schedule.tile == "winograd":
        return WinogradCode.takes(problem, core, schedule)
    block = _block(schedule)
    if block.pixels > pixels or block.channels > problem.out_channels:
        return False
    if isinstance(block, PackedBlock):
        sums = block.pairs * block.channels
        return not core.has("dsp") and 2 * sums <= _MOST_SUMS and PackedGemm.takes(problem, block)
    return block.dot.fits(core) and block.pixels * block.channels <= block.dot.most_sums


def default_schedule(problem: QuantizedConv2D, core: Core) -> Schedule:
    """A good choice without a search, from what searches found on each kind of core."""
    return next(s for s in _preferred(problem, core) if is_valid(problem, core, s))


def _preferred(problem: QuantizedConv2D, core: Core) -> Iterator[Schedule]:
    channels = problem.out_channels
    for dot in filter(lambda dot: dot.lanes == 4 and dot.fits(core), dot_products()):
        wide = 4 if dot.accumulators else 2
        for pixels, together in ((4, min(channels, wide)), (1, min(channels, 4)), (1, 1)):
            yield Schedule(dot.name, {"pixels": pixels, "channels": together, "unroll": 4})
    if core.has("dsp"):
        for pixels, together in ((4, 1), (1, min(channels, 4))):
            knobs = {"pixels": pixels, "channels": together, "unroll": 8, "weights": 8}
            yield Schedule("smlad", knobs)
    riscv = core.architecture == "riscv"
    for unroll in (2, 1):
        knobs = {"pairs": 6 if riscv else 5, "unroll": unroll, "peeled": int(riscv), "weights": 8}
        yield Schedule("packed_weights", knobs)
    # cores with eight low registers have none left for a second channel
    together = min(channels, 2 if core.has("mull") else 1)
    for pairs in (3, 2, 1):
        yield Schedule("packed", {"pairs": pairs, "channels": together, "unroll": 2})
    for pixels in (4, 3, 2, 1) if riscv else (2, 1):
        together = min(channels, 4 if riscv or pixels == 1 else 2)
        yield Schedule("mac", {"pixels": pixels, "channels": together, "unroll": 4})


def _block(schedule: Schedule) -> Block | PackedBlock:
    if schedule.tile == "packed":
        return PackedBlock(schedule["pairs"], schedule["channels"], schedule["unroll"])
    dot = find_dot_product(schedule.tile)
    if dot is None:
        raise UsageError(f"schedule {str(schedule)!r}: no instruction {schedule.tile!r} is known")
    shape = schedule["pixels"], schedule["channels"], schedule["unroll"]
    return Block(*shape, dot, weight_bits=schedule.knobs.get("weights", 8))


@kernel("CONV_2D", "int8", schedules=conv2d_schedules)
@kernel("FULLY_CONNECTED", "int8", schedules=conv2d_schedules)
def emit_conv2d(request: KernelRequest) -> LayerCode:
    """The C of one convolution or fully connected layer."""
    problem = resolve(request.op)
    schedule = request.schedule or default_schedule(problem, request.core)
    if not is_valid(problem, request.core, schedule):
        raise UsageError(f"{request.op.name}: schedule {str(schedule)!r} does not fit the layer")
    if schedule.tile == "packed_weights":
        code = PackedWeightsCode(
            request,
            problem,
            schedule["pairs"],
            schedule["unroll"],
            weight_bits=schedule["weights"],
            peeled=bool(schedule["peeled"]),
        )
        return replace(code.layer(), schedule=str(schedule))
    if schedule.tile == "winograd":
        return replace(WinogradCode(request, problem, schedule).layer(), schedule=str(schedule))
    return replace(Conv2DCode(request, problem, _block(schedule)).layer(), schedule=str(schedule))


class Conv2DCode:
    """C text of one layer."""

    def __init__(
        self, request: KernelRequest, problem: QuantizedConv2D, block: Block | PackedBlock
    ) -> None:
        self.request = request
        self.problem = problem
        self.block = block
        self.depth = problem.kernel[0] * problem.kernel[1] * problem.in_channels
        self.packed = isinstance(block, PackedBlock)
        self.wide = isinstance(block, Block) and block.wide
        self.in_words = isinstance(block, Block) and block.in_words
        aligned = self.depth % 4 == 0 or not self.in_words
        self.direct = _rows_in_place(problem) and not self.wide and aligned
        padded = -(-self.depth // 4) * 4
        self.row_stride = self.depth if self.direct else padded
        self.words = problem.in_channels % 4 == 0
        self.gemm: Gemm | PackedGemm
        if isinstance(block, PackedBlock):
            self.gemm = PackedGemm(problem, request.core, block)
        else:
            self.gemm = Gemm(problem, request.core, block, self.row_stride)

    @property
    def pixels(self) -> int:
        """Output pixels over all images."""
        return self.problem.batch * self.problem.out_height * self.problem.out_width

    def layer(self) -> LayerCode:
        """The whole layer."""
        op = self.request.op
        arguments: dict[str, Argument] = {"input": op.input(0), "output": op.output}
        if self._scratch_bytes():
            arguments["scratch"] = Scratch(self._scratch_bytes())
        parts = [
            self.request.headline,
            "#include <stdint.h>",
            *dict.fromkeys([self._definitions, self.gemm.requantizer.includes]),
            self.gemm.constants(),
            self.gemm.requantizer.function(),
            self.gemm.function("tile"),
            "" if self.direct else self._gather(),
            self._pack() if self.packed else "",
            prototype(self.request.function, op, arguments),
            self._body(),
        ]
        source = "\n".join(part for part in parts if part)
        return LayerCode(op, self.request.function, source, arguments, schedule="")

    @property
    def _definitions(self) -> str:
        return self.block.dot.definitions if isinstance(self.block, Block) else ""

    def _scratch_bytes(self) -> int:
        """Patches of a block; behind them, rows of bytes that are still to be widened or packed."""
        if isinstance(self.gemm, PackedGemm):
            rows = 0 if self.direct else 2 * self.row_stride
            return self.gemm.patch_bytes + rows
        if self.direct:
            return 0
        element = 2 if self.wide else 1
        return self.block.pixels * self.row_stride * element + self.late * self.row_stride

    def _body(self) -> str:
        """Walk over the output in blocks; the last one starts early instead of being smaller."""
        p, block = self.problem, self.block.pixels
        last = self.pixels - block
        lines, reset = self._walk(last)
        lines.append(f"for (int32_t pixel = 0; pixel < {self.pixels}; pixel += {block}) {{")
        if self.pixels % block:
            lines += [
                f"    if (pixel > {last}) {{",
                indent([f"pixel = {last};", *reset], 2),
                "    }",
            ]
        output = f"output + pixel * {p.out_channels}"
        if self.packed:
            lines += [indent(self._pack_block()), f"    tile(packed, {output});"]
        elif self.direct:
            words = "(const uint32_t *)" if self.in_words else ""
            lines.append(f"    tile({words}(input + pixel * {self.row_stride}), {output});")
        else:
            words = "(const uint32_t *)" if self.in_words else ""
            lines += [
                f"    for (int32_t p = 0; p < {block}; p++) {{",
                indent(self._gather_next("p"), 2),
                "    }",
                f"    tile({words}patches, {output});",
            ]
        return "\n".join(["{", indent([*lines, "}"]), "}\n"])

    def _pack_block(self) -> list[str]:
        """Two pixels at a time into words."""
        if self.direct:
            depth = self.depth
            inner = [f"pack(input + (pixel + 2 * p) * {depth}, packed + p);"]
        else:
            inner = [
                "for (int32_t i = 0; i < 2; i++) {",
                indent(self._gather_next("i")),
                "}",
                "pack(patches, packed + p);",
            ]
        return [f"for (int32_t p = 0; p < {self.block.pixels // 2}; p++) {{", indent(inner), "}"]

    def _pack(self) -> str:
        """C text of ``pack(two rows, words)``; words of one k lie side by side."""
        assert isinstance(self.gemm, PackedGemm)
        pairs, row = self.block.pixels // 2, self.row_stride
        unroll = next(n for n in (8, 6, 5, 4, 3, 2, 1) if self.depth % n == 0)
        steps = [
            f"words[{i * pairs}] = rows[{i}] + (int32_t)((uint32_t)rows[{row + i}] << 16);"
            for i in range(unroll)
        ]
        tail = [f"words[{i * pairs}] = 0;" for i in range(self.gemm.padded_depth - self.depth)]
        lines = [
            "static inline void pack(const int8_t *rows, int32_t *words)",
            "{",
            f"    for (int32_t k = 0; k < {self.depth // unroll}; k++) {{",
            indent([*steps, f"words += {unroll * pairs};", f"rows += {unroll};"], 2),
            "    }",
            *(["    " + line for line in tail]),
            "}\n",
        ]
        return "\n".join(lines)

    def _walk(self, last: int) -> tuple[list[str], list[str]]:
        """Declarations before the loop over pixels, and what moves the walk to pixel ``last``."""
        p = self.problem
        declarations = []
        if isinstance(self.gemm, PackedGemm):
            declarations.append("int32_t *packed = scratch;")
            if not self.direct:
                behind = self.gemm.patch_bytes
                declarations.append(f"int8_t *patches = (int8_t *)scratch + {behind};")
        elif not self.direct:
            declarations.append(f"{self._element} *patches = scratch;")
        if _rows_in_place(p):
            return declarations, []
        image, rest = divmod(last, p.out_height * p.out_width)
        row, column = divmod(rest, p.out_width)
        top, left = -p.padding.top, -p.padding.left
        declarations.append(f"int32_t top = {top}, left = {left};")
        reset = [f"top = {top + row * p.stride[0]};", f"left = {left + column * p.stride[1]};"]
        if p.batch > 1:
            declarations.insert(0, "const int8_t *image = input;")
            reset.append(f"image = input + {image * p.in_height * p.in_width * p.in_channels};")
        return declarations, reset

    def _gather_next(self, index: str) -> list[str]:
        """Gather one patch and step to the next pixel; no division, which small cores lack."""
        p = self.problem
        behind = f", (int8_t *)(patches + {self.block.pixels * self.row_stride})"
        patch = f"patches + {index} * {self.row_stride}{behind if self.late else ''}"
        if _rows_in_place(p):
            return [f"gather(input + (pixel + {index}) * {self.depth}, {patch});"]
        top, left = -p.padding.top, -p.padding.left
        next_row = [f"left = {left};", f"top += {p.stride[0]};"]
        if p.batch > 1:
            next_row += [
                f"if (top == {top + p.out_height * p.stride[0]}) {{",
                f"    top = {top};",
                f"    image += {p.in_height * p.in_width * p.in_channels};",
                "}",
            ]
        return [
            f"gather({'image' if p.batch > 1 else 'input'}, top, left, {patch});",
            f"left += {p.stride[1]};",
            f"if (left == {left + p.out_width * p.stride[1]}) {{",
            indent(next_row),
            "}",
        ]

    @property
    def late(self) -> bool:
        """Whether a patch is gathered as bytes first and widened as a whole."""
        return self.wide and not self.words

    @property
    def _element(self) -> str:
        return "int16_t" if self.wide else "int8_t"

    def _gather(self) -> str:
        """C text of ``gather(input, [top, left,] patch)``: one row of the patch matrix.

        With DSP the row is int16 in the order (0, 2), (1, 3) of each four k, which is how SXTB16
        splits the weights. Runs of whole words are widened as they are copied; else the row is
        gathered as bytes behind the block and widened at the end.
        """
        position = "" if _rows_in_place(self.problem) else "int32_t top, int32_t left, "
        target = "int16_t *wide, int8_t *patch" if self.late else f"{self._element} *patch"
        lines = [f"static void gather(const int8_t *input, {position}{target})", "{"]
        if self.late:
            lines.append("    const int8_t *bytes = patch;")
        if _rows_in_place(self.problem):
            lines.append(f"    copy(patch, input, {self.depth});")
        else:
            lines += self._gather_rows()
        if self.late:
            lines.append(f"    widen(wide, bytes, {self.row_stride});")
        return "\n".join([self._copy_functions(), *lines, "}\n"])

    def _gather_rows(self) -> list[str]:
        p = self.problem
        (kh, kw), (dh, dw), c = p.kernel, p.dilation, p.in_channels
        row, width = p.in_width * c, kw * c
        inner = [f"const int8_t *row = input + (top + y * {dh}) * {row} + left * {c};"]
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
            *self._gather_inside(),
            f"    for (int32_t y = 0; y < {kh}; y++) {{",
            f"        if ((uint32_t)(top + y * {dh}) >= {p.in_height}u) {{",
            f"            fill(patch, {width});",
            f"            patch += {width};",
            "            continue;",
            "        }",
            indent(inner, 2),
            "    }",
        ]

    def _gather_inside(self) -> list[str]:
        """Away from the border one look at the pixel saves one at each row of its patch."""
        p = self.problem
        (kh, kw), (dh, dw), c = p.kernel, p.dilation, p.in_channels
        lowest, rightmost = p.in_height - (kh - 1) * dh - 1, p.in_width - kw
        if (dw > 1 and kw > 1) or lowest < 0 or rightmost < 0:
            return []
        row, width = p.in_width * c, kw * c
        return [
            f"    if ((uint32_t)top <= {lowest}u && (uint32_t)left <= {rightmost}u) {{",
            f"        const int8_t *row = input + top * {row} + left * {c};",
            f"        for (int32_t y = 0; y < {kh}; y++, row += {dh * row}, patch += {width})",
            f"            copy(patch, row, {width});",
            # what is late is widened behind
            *(["    } else"] if self.late else ["        return;", "    }"]),
        ]

    def _copy_functions(self) -> str:
        """C text of ``copy``, ``fill`` and ``widen`` as this layer's rows need them."""
        zero = str(self.problem.input_zero_point)
        needs_fill = not _rows_in_place(self.problem)
        widen = self.block.dot.widen if isinstance(self.block, Block) else ""
        wide = _WIDEN.replace("@widen", widen)
        if self.wide and self.words:
            fill = _FILL_WIDE.replace("@zero", zero)
            return wide.replace("void widen(", "void copy(") + (fill if needs_fill else "")
        copy = _COPY_WORDS if self.words else _COPY_BYTES
        fill = _FILL_BYTES.replace("@zero", zero) if needs_fill else ""
        return copy + fill + (wide if self.wide else "")


def _rows_in_place(problem: QuantizedConv2D) -> bool:
    """Whether each pixel's patch is one contiguous row of the input already."""
    return problem.kernel == (1, 1) and problem.stride == (1, 1) and not problem.padding.any


_COPY_BYTES = """\
static inline void copy(int8_t *to, const int8_t *from, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = from[i];
}
"""
_COPY_WORDS = """\
static inline void copy(int8_t *to, const int8_t *from, int32_t count)
{
    const uint32_t *source = (const uint32_t *)from;
    uint32_t *target = (uint32_t *)to;
    for (int32_t i = 0; i < count / 4; i++)
        target[i] = source[i];
}
"""
_FILL_BYTES = """\
static inline void fill(int8_t *to, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = @zero;
}
"""
_WIDEN = """\
static inline void widen(int16_t *to, const int8_t *from, int32_t count)
{
    const uint32_t *source = (const uint32_t *)from;
    uint32_t *target = (uint32_t *)to;
    for (int32_t i = 0; i < count / 4; i++) {
        uint32_t four = source[i];
        target[2 * i] = (uint32_t)@widen(four);
        target[2 * i + 1] = (uint32_t)@widen((four >> 8) | (four << 24));
    }
}
"""
_FILL_WIDE = """\
static inline void fill(int16_t *to, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        to[i] = @zero;
}
"""
