"""int8 CONV_2D and FULLY_CONNECTED on the core: gather patches, multiply, requantize.

Pixels of the output are taken in blocks. Where the patch of a pixel already lies in memory as
one row (1x1 kernels with stride 1, fully connected) the tile reads it there; else the rows of
the block are gathered into scratch, with the input's zero point where the image ends.
"""

from __future__ import annotations

from typing import ClassVar

from covp.codegen.c_text import indent
from covp.codegen.kernels.convolution.conv2d_schedules import (
    block_of,
    conv2d_schedules,
    default_schedule,
    is_valid,
)
from covp.codegen.kernels.convolution.folded_bytes import FoldedBytesCode
from covp.codegen.kernels.convolution.gemm import Gemm, RegisterBlock
from covp.codegen.kernels.convolution.packed_channels import LOADS_AHEAD, PackedWeightsCode
from covp.codegen.kernels.convolution.packed_pixels import PackedBlock, PackedGemm
from covp.codegen.kernels.convolution.packed_threes import PackedThrees
from covp.codegen.kernels.convolution.patches import PatchGather, rows_in_place
from covp.codegen.kernels.convolution.winograd import WinogradCode
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel
from covp.errors import UsageError
from covp.graph.typed_convolution import QuantizedConv2D, resolve


@kernel("CONV_2D", "int8", schedules=conv2d_schedules)
@kernel("FULLY_CONNECTED", "int8", schedules=conv2d_schedules)
def emit_conv2d(request: KernelRequest) -> LayerCode:
    """Emit the C of one convolution or fully connected layer."""
    problem = resolve(request.op)
    schedule = request.schedule or default_schedule(problem, request.core)
    if not is_valid(problem, request.core, schedule):
        raise UsageError(f"{request.op.name}: schedule {str(schedule)!r} does not fit the layer")
    code: Conv2DCode | FoldedBytesCode | PackedWeightsCode | WinogradCode
    if schedule.tile in ("packed_weights", LOADS_AHEAD):
        code = PackedWeightsCode(request, problem, schedule)
    elif schedule.tile.startswith("folded_bytes"):
        code = FoldedBytesCode(request, problem, schedule)
    elif schedule.tile.startswith("winograd"):
        code = WinogradCode(request, problem, schedule)
    else:
        code = Conv2DCode(request, problem, block_of(schedule))
    return code.layer(str(schedule))


class Conv2DCode:
    """C text of one layer.

    Attributes:
        element: C type of inputs and outputs.
        gemm_type: of the tile of a `RegisterBlock`.
        packed_types: of the tile of a `PackedBlock`, by the pixels that it packs together.
        group: k that the tile of a block reads at once, where it reads several.
    """

    element = "int8_t"
    gemm_type: type[Gemm] = Gemm
    packed_types: ClassVar[dict[int, type[PackedGemm]]] = {2: PackedGemm, 3: PackedThrees}
    group = 4

    def __init__(
        self, request: KernelRequest, problem: QuantizedConv2D, block: RegisterBlock | PackedBlock
    ) -> None:
        self.request = request
        self.problem = problem
        self.block = block
        self.depth = problem.kernel[0] * problem.kernel[1] * problem.in_channels
        self.reads_words = isinstance(block, RegisterBlock) and block.reads_words
        is_widened = (
            isinstance(block, RegisterBlock) and block.is_widened and self.element == "int8_t"
        )
        widen = block.dot.widen if isinstance(block, RegisterBlock) and is_widened else ""
        several = self.reads_words or (self.group > 4 and isinstance(block, RegisterBlock))
        aligned = self.depth % self.group == 0 or not several
        # then the tile reads the input itself
        self.patches_in_input = rows_in_place(problem) and not widen and aligned
        self.row_stride = self.depth if self.patches_in_input else self._padded_depth
        self.patches = PatchGather(problem, self.row_stride, widen, self.element)
        self.gemm: Gemm | PackedGemm
        if isinstance(block, PackedBlock):
            self.gemm = self.packed_types[block.together](problem, request.core, block)
        else:
            self.gemm = self.gemm_type(problem, request.core, block, self.row_stride)

    @property
    def _padded_depth(self) -> int:
        return -(-self.depth // self.group) * self.group

    @property
    def pixels(self) -> int:
        """Output pixels over all images."""
        return self.problem.batch * self.problem.out_height * self.problem.out_width

    def layer(self, schedule: str) -> LayerCode:
        """Return the whole layer; ``schedule`` is for reports."""
        op = self.request.op
        arguments: dict[str, Argument] = {"input": op.input(0), "output": op.output}
        if self._scratch_bytes():
            arguments["scratch"] = Scratch(self._scratch_bytes())
        functions = [
            self.gemm.requantizer.function(),
            self.gemm.function("tile"),
            "" if self.patches_in_input else self.patches.function(),
        ]
        if isinstance(self.block, PackedBlock) and isinstance(self.gemm, PackedGemm):
            functions.append(self._pack(self.block, self.gemm))
        includes = list(dict.fromkeys([self._definitions, self.gemm.requantizer.includes]))
        operands = Operands(arguments, self.gemm.constants())
        return operands.layer(self.request, self._body(), functions, includes, schedule=schedule)

    @property
    def _definitions(self) -> str:
        return self.block.dot.definitions if isinstance(self.block, RegisterBlock) else ""

    def _scratch_bytes(self) -> int:
        """Return the bytes of a block's patches and of the rows still to be widened or packed."""
        if isinstance(self.block, PackedBlock) and isinstance(self.gemm, PackedGemm):
            rows = 0 if self.patches_in_input else self.block.together * self.row_stride
            return self.gemm.patch_bytes + rows
        if self.patches_in_input:
            return 0
        element = 1 if self.patches.element == "int8_t" else 2
        return (
            self.block.pixels * self.row_stride * element
            + self.patches.widen_after_gather * self.row_stride
        )

    def _body(self) -> list[str]:
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
        if isinstance(self.block, PackedBlock):
            lines += [indent(self._pack_block(self.block)), f"    tile(packed, {output});"]
        elif self.patches_in_input:
            words = "(const void *)" if self.reads_words else ""
            lines.append(f"    tile({words}(input + pixel * {self.row_stride}), {output});")
        else:
            words = "(const void *)" if self.reads_words else ""
            lines += [
                f"    for (int32_t p = 0; p < {block}; p++) {{",
                indent(self._gather_next("p"), 2),
                "    }",
                f"    tile({words}patches, {output});",
            ]
        return [*lines, "}"]

    def _pack_block(self, block: PackedBlock) -> list[str]:
        """Return C text that packs the pixels of a block, a group at a time."""
        together, place = block.together, f"packed + p * {block.together - 1}"
        if self.patches_in_input:
            inner = [f"pack(input + (pixel + {together} * p) * {self.depth}, {place});"]
        else:
            inner = [
                f"for (int32_t i = 0; i < {together}; i++) {{",
                indent(self._gather_next("i")),
                "}",
                f"pack(patches, {place});",
            ]
        return [f"for (int32_t p = 0; p < {block.groups}; p++) {{", indent(inner), "}"]

    def _pack(self, block: PackedBlock, gemm: PackedGemm) -> str:
        """Return C text of ``pack(rows of a group, words)``; words of one k lie side by side."""
        row = self.row_stride
        unroll = next(n for n in (8, 6, 5, 4, 3, 2, 1) if self.depth % n == 0)
        steps = []
        for i in range(unroll):
            rows = [f"rows[{i + row * pixel}]" for pixel in range(block.together)]
            packed = gemm.packing(rows)
            steps += [f"words[{i * block.words + n}] = {word};" for n, word in enumerate(packed)]
        tail = [
            f"words[{i * block.words + n}] = 0;"
            for i in range(gemm.padded_depth - self.depth)
            for n in range(block.together - 1)
        ]
        lines = [
            f"static inline void pack(const int8_t *rows, {gemm.word} *words)",
            "{",
            f"    for (int32_t k = 0; k < {self.depth // unroll}; k++) {{",
            indent([*steps, f"words += {unroll * block.words};", f"rows += {unroll};"], 2),
            "    }",
            *(["    " + line for line in tail]),
            "}\n",
        ]
        return "\n".join(lines)

    def _walk(self, last: int) -> tuple[list[str], list[str]]:
        """Emit declarations before the loop over pixels, and the step of the walk to ``last``."""
        p = self.problem
        declarations = []
        if isinstance(self.gemm, PackedGemm):
            declarations.append(f"{self.gemm.word} *packed = scratch;")
            if not self.patches_in_input:
                rows = self.gemm.patch_bytes
                declarations.append(f"int8_t *patches = (int8_t *)scratch + {rows};")
        elif not self.patches_in_input:
            declarations.append(f"{self.patches.element} *patches = scratch;")
            declarations += self._no_tail()
        if rows_in_place(p):
            return declarations, []
        image, rest = divmod(last, p.out_height * p.out_width)
        row, column = divmod(rest, p.out_width)
        top, left = -p.padding.top, -p.padding.left
        declarations.append(f"int32_t top = {top}, left = {left};")
        reset = [f"top = {top + row * p.stride[0]};", f"left = {left + column * p.stride[1]};"]
        if p.batch > 1:
            declarations.insert(0, f"const {self.element} *image = input;")
            reset.append(f"image = input + {image * p.in_height * p.in_width * p.in_channels};")
        return declarations, reset

    @property
    def _gathered_bytes(self) -> str:
        """C pointer to the bytes of one patch before they are widened."""
        return f"(int8_t *)(patches + {self.block.pixels * self.row_stride})"

    def _no_tail(self) -> list[str]:
        """Return the C that zeroes a patch's padding to whole words, which is read."""
        if not self.patches.widen_after_gather:
            return []
        places = range(self.depth, self.row_stride)
        return [f"({self._gathered_bytes})[{place}] = 0;" for place in places]

    def _gather_next(self, index: str) -> list[str]:
        """Gather one patch and step to the next pixel; no division, which small cores lack."""
        p = self.problem
        patch = f"patches + {index} * {self.row_stride}"
        if self.patches.widen_after_gather:
            patch += f", {self._gathered_bytes}"
        if rows_in_place(p):
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
