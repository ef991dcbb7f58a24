"""ATTENTION_TILED: attention in tiles of query rows, the scores of one tile at a time in scratch.

For each head the keys and values are brought into the form that the core multiplies best
(`Products`); then, for each tile: scores, softmax, weighted values. The arithmetic is that of
BATCH_MATMUL, MUL, SOFTMAX, BATCH_MATMUL, row by row. Scores are kept as 127 - score, an unsigned
byte, so that the distance from the row's maximum is a difference from the least byte.

A score's code, 127 - score after the MUL if there is one, comes from a table. On cores without a
saturating instruction the table spans all that the sums can reach, where that is not too much, and
takes the place of the clamp.

All weights of a row are a function of the distance from its maximum, and most distances give 0:
where that holds, the weights of a row are looked up in a table of those that are not 0, which is
shorter than the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from string import Template

import numpy as np
from numpy.typing import NDArray

from covp.chip.cores import Core
from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.attention.tiled_attention_dsp import dsp_products
from covp.codegen.kernels.attention.tiled_attention_packed import packed_products
from covp.codegen.kernels.attention.tiled_attention_products import Products
from covp.codegen.kernels.clamp import clamp, clamp_includes
from covp.codegen.kernels.loop_nest import LoopNest
from covp.codegen.kernels.normalization.softmax import FLAT, MOST_IN_A_SHIFT, RECIPROCAL
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.requantize.finisher import finisher
from covp.codegen.kernels.requantize.requantize import Requantizer
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel
from covp.graph.arithmetic import Arithmetic
from covp.graph.graph import Op, Tensor
from covp.graph.ops import definition
from covp.graph.ops.matmul import matmul_scaling
from covp.graph.ops.softmax import SUM_BITS, check_depth, exponentials
from covp.graph.ops.tiled_attention import TiledAttention
from covp.graph.quantization import multiply_by_quantized_multiplier

_LONGEST_TABLE = 4096
_MARGIN = 2  # what the proved form may give beyond the last step


def product_requantizer(core: Core, op: Op, depth: int) -> Requantizer:
    """Return the requantizer of an int8 BATCH_MATMUL with ``depth`` products per sum."""
    bound = depth * (128 + abs(op.input(0).zero_point)) * (128 + abs(op.input(1).zero_point))
    return finisher(core, Arithmetic.of(op), matmul_scaling(op), bound)


def mix_text(core: Core, attention: TiledAttention) -> str:
    """Return C text of START_mix and ``to_mix(sum, factor)``."""
    return _requantizer_text(product_requantizer(core, attention.mix, attention.shape.keys), "mix")


def score_text(core: Core, attention: TiledAttention) -> str:
    """Return C text of START_scores, ``to_scores(sum, factor)`` and ``CODE(score)``."""
    requantizer = product_requantizer(core, attention.scores, attention.shape.depth)
    low, high = _reach(requantizer)
    if clamp_includes(core, -128, 127) or high - low > _LONGEST_TABLE:
        low, high = -128, 127
        text = _requantizer_text(requantizer, "scores", _middle(128) if attention.scale else "")
        if attention.scale is None:
            return text + "#define CODE(score) (uint8_t)(127 - (score))\n"
    else:
        wide = replace(requantizer, scaling=replace(requantizer.scaling, clamp=(low, high)))
        text = _requantizer_text(wide, "scores", _middle(_MARGIN - low))
        text = text.replace(f"    {clamp(core, 'result', low, high)}\n", "")
        low, high = low - _MARGIN, high + _MARGIN
    table = _codes(attention, np.clip(np.arange(low, high + 1), -128, 127))
    note = f"127 less the scaled score, from score {low} on"
    return c_array("code_of_score", table, note) + text + "#define CODE(score) middle[score]\n"


def _reach(requantizer: Requantizer) -> tuple[int, int]:
    """Return the least and the largest result without a clamp."""
    ends = np.array([-requantizer.bound, requantizer.bound])
    scaling = requantizer.scaling
    scaled = multiply_by_quantized_multiplier(ends, scaling.multiplier, scaling.shift)
    low, high = (scaled + scaling.zero_point).tolist()
    return min(low, -128), max(high, 127)


def _codes(attention: TiledAttention, scores: NDArray[np.int64]) -> NDArray[np.uint8]:
    scaled = scores.astype(np.int8)
    if attention.scale is not None:
        factor = attention.scale.input(1).data
        scaled = definition("MUL").reference(attention.scale, [scaled, factor])[0].reshape(-1)
    return (127 - scaled.astype(np.int64)).astype(np.uint8)


def _middle(zero: int) -> str:
    """Return the place of score 0 in the table, which is read with negative indices too."""
    return f'; const uint8_t *middle = code_of_score + {zero}; __asm__("" : "+r"(middle))'


def _requantizer_text(requantizer: Requantizer, name: str, more: str = "") -> str:
    """Return C text of ``to_<name>(sum, factor)`` and of START_<name>, which declares the factor.

    It is an opaque variable: a compiler that knows it makes four instructions of what is one with a
    register.
    """
    factor, *others = (str(int(column[0])) for column in requantizer.columns())
    text = requantizer.function()
    for helper in ("requantize", "high_multiply"):
        text = text.replace(f"{helper}(", f"{helper}_{name}(")
    arguments = ", ".join(["sum", "factor", *others])
    return (
        f'#define START_{name} int32_t factor = {factor}; __asm__("" : "+r"(factor)){more}\n'
        f"{text}\nstatic inline int32_t to_{name}(int32_t sum, int32_t factor)\n{{\n"
        f"    return requantize_{name}({arguments});\n}}\n"
    )


def softmax_functions(core: Core, attention: TiledAttention, products: Products) -> list[str]:
    """Return C text of ``soften(codes, weights, table)``: a row of codes to weights (plus 128)."""
    op = attention.softmax
    check_depth(op)
    powers = exponentials(op)
    keys = attention.shape.keys
    # at most powers / 2**31 of the whole: less than a quarter of a step of 1/256 is surely 0
    reach = int(np.count_nonzero(powers >= 1 << 21))
    tabled = reach <= keys and bool((np.diff(powers) <= 0).all())
    return [
        c_array("powers", np.append(powers, 0).astype(np.int32), "exp of 0 ... 255 steps down"),
        c_array(
            "terms", ((powers + (1 << (SUM_BITS - 1))) >> SUM_BITS).astype(np.int32), "of the sum"
        ),
        RECIPROCAL,
        _SOFTEN.substitute(
            keys=keys,
            whole=keys // 4 * 4,
            weight=products.weight_type,
            flat=FLAT if keys > MOST_IN_A_SHIFT else "",
            # RoundingDivideByPOT's exponent without the leading zeros
            exponent=SUM_BITS + 31 - 8,
            least=Template(products.least or _LEAST).substitute(keys=keys, words=keys // 4),
            write=Template(_TABLED if tabled else _DIRECT).substitute(
                keys=keys,
                whole=keys // 4 * 4,
                weight=products.weight_type,
                store=_STORE_WORDS if core.has("dsp") else _STORE,
            ),
        ),
    ]


_SOFTEN = Template("""\
/* high_multiply(scale, power) / 2**(shift + 1), rounded: with both roundings in the offset */
static inline int32_t weight(int32_t power, int32_t scale, int64_t offset, int32_t shift)
{
    return (int32_t)(((int64_t)scale * power + offset) >> 32) >> shift;
}

/* loads that wait for nothing, in a row */
#define FOUR_CODES \\
    uint32_t a = codes[i], b = codes[i + 1], c = codes[i + 2], d = codes[i + 3]; \\
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d))

static __attribute__((noinline)) void soften(const uint8_t *codes, $weight *weights, uint8_t *table)
{
    uint32_t least = 255;
$least
    uint32_t sum = 0;
    const int32_t *from = (const int32_t *)((uintptr_t)terms - 4u * least);
    for (int32_t i = 0; i < $whole; i += 4) {
        FOUR_CODES;
        sum += (uint32_t)from[a] + (uint32_t)from[b] + (uint32_t)from[c] + (uint32_t)from[d];
    }
    for (int32_t i = $whole; i < $keys; i++)
        sum += (uint32_t)from[codes[i]];
    int32_t zeros = 0;
    while (!(sum & 0x80000000u)) {
        sum <<= 1;
        zeros++;
    }
    int32_t scale = reciprocal(sum - 0x80000000u);
    int32_t exponent = $exponent - zeros;
    $flat
    int32_t shift = exponent - 1;
    int64_t offset = (1 << 30) + ((int64_t)1 << (30 + exponent));
$write
}
""")
_LEAST = """\
#pragma GCC unroll 4
    for (int32_t i = 0; i < $keys; i++)
        least = codes[i] < least ? codes[i] : least;"""
# the two bytes after the table bound the weights of the row before that are not 0
_TABLED = """\
    uint8_t *last = table + 256;
    for (uint32_t i = last[0] / 4u, end = last[1] / 4u; i <= end; i++)
        ((word *)(void *)table)[i] = 0;
    const int32_t *power = powers;
    uint32_t at = least;
    int32_t next = weight(*power, scale, offset, shift);
    for (; next > 255 && at < 256; next = weight(*++power, scale, offset, shift))
        table[at++] = 255;
    for (; next && at < 256; next = weight(*++power, scale, offset, shift))
        table[at++] = (uint8_t)next;
    last[0] = (uint8_t)least;
    last[1] = (uint8_t)(at - 1);
    for (int32_t i = 0; i < $whole; i += 4) {
        FOUR_CODES;
        $store
    }
    for (int32_t i = $whole; i < $keys; i++)
        weights[i] = ($weight)table[codes[i]];"""
_DIRECT = """\
    (void)table;
    for (int32_t i = 0; i < $keys; i++) {
        int32_t next = weight(powers[codes[i] - least], scale, offset, shift);
        weights[i] = ($weight)(next > 255 ? 255 : next);
    }"""
_STORE = """\
weights[i] = table[a]; weights[i + 1] = table[b];
        weights[i + 2] = table[c]; weights[i + 3] = table[d];"""
# where OR shifts its operand for nothing
_STORE_WORDS = """\
((word *)(void *)weights)[i / 2] = table[a] | (uint32_t)table[b] << 16;
        ((word *)(void *)weights)[i / 2 + 1] = table[c] | (uint32_t)table[d] << 16;"""


@kernel("ATTENTION_TILED", "int8")
def emit_attention(request: KernelRequest) -> LayerCode:
    """Emit the tiles; the output may take the memory of the queries."""
    op = request.op
    attention: TiledAttention = op.attributes
    shape = attention.shape
    core = request.core
    products = (dsp_products if core.has("dsp") else packed_products)(core, attention)
    functions = [
        score_text(core, attention),
        mix_text(core, attention),
        *softmax_functions(core, attention, products),
        *products.functions(),
        *(_tile(products, rows) for rows in products.tiles(shape.queries)),
    ]
    tensors = [tensor for tensor in op.inputs if tensor is not None]
    names = dict(zip(("q", "k", "v"), tensors, strict=True))
    shared = _without_repetition(names)
    arguments: dict[str, Argument] = {**shared, "output": op.output}
    arguments["scratch"] = Scratch(products.scratch_bytes)
    includes = [product_requantizer(core, attention.mix, shape.keys).includes, products.includes]
    return Operands(arguments, "").layer(
        request,
        _body(products, names, shared),
        functions,
        list(dict.fromkeys(includes)),
        [tensors[0]] if _in_place(attention, tensors) else [],
        schedule=f"tiles of {products.rows} rows",
    )


def _without_repetition(names: dict[str, Tensor]) -> dict[str, Tensor]:
    """Keep the first name of each tensor."""
    seen: dict[int, str] = {}
    for name, tensor in names.items():
        seen.setdefault(id(tensor), name)
    return {name: tensor for name, tensor in names.items() if seen[id(tensor)] == name}


def _in_place(attention: TiledAttention, tensors: Sequence[Tensor]) -> bool:
    """Return whether each tile overwrites its own queries, which are not read again."""
    shape = attention.shape
    alone = all(tensors[0] is not other for other in tensors[1:])
    return alone and shape.q == shape.output and shape.depth == shape.width


def _tile(products: Products, rows: int) -> str:
    """Return C text of ``tile<rows>``: some rows of queries from end to end."""
    return (
        f"static void tile{rows}(const int8_t *q, const int8_t *k, const int8_t *v,\n"
        "    int8_t *output, uint8_t *scratch)\n{\n"
        + indent(
            [
                *products.pointers(),
                *products.load_queries(rows),
                f"scores{rows}({products.score_arguments});",
                f"for (int32_t row = 0; row < {rows}; row++)",
                f"    soften(codes_of + row * {products.code_stride},"
                f" weights_of + row * {products.weight_stride}, table_of);",
                f"mix{rows}({products.mix_arguments}, output);",
            ]
        )
        + "\n}\n"
    )


def _body(products: Products, names: dict[str, Tensor], shared: dict[str, Tensor]) -> list[str]:
    """Return the loops over batches and heads, then over tiles."""
    shape = products.shape
    axes = len(shape.batches)
    parts = {"q": shape.q, "k": shape.k, "v": shape.v, "output": shape.output}
    nest = LoopNest.over(shape.batches, **{name: parts[name][:axes] for name in parts})
    owner = {id(tensor): name for name, tensor in shared.items()}

    def head(ahead: int) -> list[str]:
        lines = [
            f"const int8_t *{name}_of = {owner[id(names[name])]} + {nest.at(name, ahead)};"
            for name in names
        ]
        lines += [f"int8_t *to = output + {nest.at('output', ahead)};", *products.load_head()]
        step, row = shape.output[axes], shape.q[axes]
        for rows, first, last in _tiles(shape.queries, products.rows):
            lines += [
                f"for (int32_t row = {first}; row < {last}; row += {rows})",
                f"    tile{rows}(q_of + row * {row}, k_of, v_of, to + row * {step}, scratch);",
            ]
        return lines

    return [*products.start(), *nest.loops(head)]


def _tiles(extent: int, rows: int) -> list[tuple[int, int, int]]:
    """Return (rows, first, end) of the tiles that make up all rows."""
    whole = extent - extent % rows
    parts = [(rows, 0, whole), (extent - whole, whole, extent)]
    return [part for part in parts if part[1] < part[2]]
