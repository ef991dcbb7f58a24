"""ATTENTION_TILED: attention in tiles of query rows, the scores of one tile at a time in scratch.

For each head the keys and values are brought into the form that the core multiplies best
(`Products`); then, for each tile: scores, softmax, weighted values. The arithmetic is that of
BATCH_MATMUL, MUL, SOFTMAX, BATCH_MATMUL, row by row. Scores are kept as 127 - score, an unsigned
byte, so that the distance from the row's maximum is a difference from the least byte.
"""

from __future__ import annotations

from collections.abc import Sequence

from covp.codegen.c_text import indent
from covp.codegen.kernels.attention.tiled_attention_codes import (
    mix_text,
    product_requantizer,
    score_text,
)
from covp.codegen.kernels.attention.tiled_attention_dsp import dsp_products
from covp.codegen.kernels.attention.tiled_attention_packed import packed_products
from covp.codegen.kernels.attention.tiled_attention_products import Products
from covp.codegen.kernels.attention.tiled_attention_softmax import softmax_functions
from covp.codegen.kernels.loop_nest import LoopNest
from covp.codegen.kernels.operands import Operands
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel
from covp.graph.graph import Tensor
from covp.graph.ops.tiled_attention import TiledAttention


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
    """Each tensor once, under its first name."""
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
    """(rows, first, end) of the tiles that make up all rows."""
    whole = extent - extent % rows
    parts = [(rows, 0, whole), (extent - whole, whole, extent)]
    return [part for part in parts if part[1] < part[2]]
