"""float32 ATTENTION: one query at a time; only its own scores are kept."""

from __future__ import annotations

from string import Template

from covp.codegen.c_text import c_array, c_float, indent
from covp.codegen.kernels.loop_nest import broadcast_strides, dense_strides
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel, prototype
from covp.graph.graph import Op, Tensor
from covp.graph.ops.attention import LENGTHS, MASK, Attention, Extents, optional


@kernel("ATTENTION", "float32")
def emit_attention(request: KernelRequest) -> LayerCode:
    """Emit ATTENTION, which skips masked keys unless the second output wants their scores."""
    op = request.op
    a: Attention = op.attributes
    n = Extents.of(op)
    inputs = {"q": op.input(0), "k": op.input(1), "v": op.input(2)}
    for name, position in (("mask", MASK), ("lengths", LENGTHS)):
        tensor = optional(op, position)
        if tensor is not None:
            inputs[name] = tensor
    arguments: dict[str, Argument] = {x: t for x, t in inputs.items() if t.data is None}
    constants = [c_array(x, t.data) for x, t in inputs.items() if t.data is not None]
    arguments["y"] = op.output
    if a.scores is not None:
        arguments["all_scores"] = op.outputs[1]
    if a.scores != 3:
        arguments["scratch"] = Scratch(4 * max(n.keys, 1))
    source = "\n".join(
        [
            request.headline,
            "#include <math.h>\n#include <stdint.h>",
            *constants,
            _dot(n.size),
            prototype(request.function, op, arguments),
            _BODY.substitute(
                batch=n.batch,
                heads=a.heads,
                queries=n.queries,
                query=_at(op.input(0), a.heads, "h", "i"),
                key=_at(op.input(1), a.kv_heads, f"h / {a.heads // a.kv_heads}", ""),
                value=_at(op.input(2), a.kv_heads, f"h / {a.heads // a.kv_heads}", ""),
                weighted=indent(_weighted_sum(n, _steps(op.input(2), a.kv_heads)[2]), 4),
                result=_at(op.output, a.heads, "h", "i"),
                seen=indent(_key_range(op, n), 4),
                weights=_row("all_scores", a.heads, n) if a.scores == 3 else "scratch",
                scores=indent(_scores(op, n), 4),
                clear=indent(_clear(a, n), 4),
            ),
        ]
    )
    return LayerCode(op, request.function, source, arguments)


def _steps(tensor: Tensor, heads: int) -> tuple[int, int, int]:
    """Return the elements from one batch, one head and one position to the next."""
    strides = dense_strides(tensor.shape)
    if len(tensor.shape) == 4:
        return strides[0], strides[1], strides[2]
    return strides[0], tensor.shape[2] // heads, strides[1]


def _at(tensor: Tensor, heads: int, head: str, position: str) -> str:
    batch, per_head, step = _steps(tensor, heads)
    place = f" + {position} * {step}" if position else ""
    return f"b * {batch} + ({head}) * {per_head}{place}"


def _row(name: str, heads: int, n: Extents) -> str:
    return f"{name} + ((b * {heads} + h) * {n.queries} + i) * {n.keys}"


def _key_range(op: Op, n: Extents) -> list[str]:
    """Return the first key that the query sees and the one after the last."""
    a: Attention = op.attributes
    mask, lengths = optional(op, MASK), optional(op, LENGTHS)
    lines = [f"int32_t first = 0, last = {n.keys if mask is None else mask.shape[-1]};"]
    if lengths is not None:
        lines.append("last = lengths[b] < last ? (int32_t)lengths[b] : last;")
    if a.causal or max(a.left, a.right) >= 0:
        start = f"(int32_t)lengths[b] - {n.queries}" if lengths is not None else str(a.offset)
        lines.append(f"int32_t position = i + {start};")
    reach = 0 if a.causal else a.right
    if reach >= 0:
        lines.append(f"last = position + {reach} < last ? position + {reach + 1} : last;")
    if a.left >= 0:
        lines.append(f"first = position > {a.left} ? position - {a.left} : 0;")
    return lines


def _scores(op: Op, n: Extents) -> list[str]:
    """Return scores with their bias in ``w[first]`` to ``w[last - 1]``, the largest in ``most``."""
    a: Attention = op.attributes
    mask = optional(op, MASK)
    dot = f"dot(query, key + j * {_steps(op.input(1), a.kv_heads)[2]}) * {c_float(a.scale)}"
    body = [f"float score = {dot};"]
    every = a.scores in (0, 1, 2)
    if a.scores == 0:
        body.append("row[j] = score;")
    if a.softcap:
        body.append(f"score = tanhf(score / {c_float(a.softcap)}) * {c_float(a.softcap)};")
    if a.scores == 1:
        body.append("row[j] = score;")
    if a.scores == 2:
        body.append("row[j] = -INFINITY;")
    if every:
        body += ["if (j < first || j >= last)", "    continue;"]
    if mask is not None:
        strides = broadcast_strides(mask.shape[:-1], (n.batch, a.heads, n.queries))
        row = " + ".join(f"{x} * {s * mask.shape[-1]}" for x, s in zip("bhi", strides, strict=True))
        if mask.dtype.name == "float32":
            body += [f"float bias = mask[{row} + j];", "int32_t sees = bias != -INFINITY;"]
            body.append("score = sees ? score + bias : -INFINITY;")
        else:
            body.append(f"score = mask[{row} + j] ? score : -INFINITY;")
    if a.scores == 2:
        body.append("row[j] = score;")
    body += ["w[j] = score;", "most = score > most ? score : most;"]
    bounds = f"j = 0; j < {n.keys}" if every else "j = first; j < last"
    head = [f"float *row = {_row('all_scores', a.heads, n)};"] if every else []
    return [*head, f"for (int32_t {bounds}; j++) {{", indent(body), "}"]


def _clear(a: Attention, n: Extents) -> list[str]:
    """Return the weights of keys that are not seen, where they are an output."""
    if a.scores != 3:
        return ["/* no weights are kept */"]
    return [
        f"for (int32_t j = 0; j < {n.keys}; j++)",
        "    if (j < first || j >= last)",
        "        w[j] = 0.0f;",
    ]


def _dot(size: int) -> str:
    """Return the C of a query's product with a key; in several sums, as additions wait."""
    sums = range(_divisor(size))
    step = len(sums)
    terms = [f"s{i} += a[d + {i}] * b[d + {i}];" for i in sums]
    return "\n".join(
        [
            "static float dot(const float *a, const float *b)\n{",
            indent([f"float {', '.join(f's{i} = 0.0f' for i in sums)};"]),
            indent([f"for (int32_t d = 0; d < {size}; d += {step}) {{", indent(terms), "}"]),
            indent([f"return {' + '.join(f's{i}' for i in sums)};"]),
            "}\n",
        ]
    )


def _weighted_sum(n: Extents, step: int) -> list[str]:
    """Return the values' sum by weights, several elements in one pass over the weights."""
    sums = range(_divisor(n.value_size))
    terms = [f"s{i} += w[j] * value[j * {step} + d + {i}];" for i in sums]
    return [
        f"for (int32_t d = 0; d < {n.value_size}; d += {len(sums)}) {{",
        indent(
            [
                f"float {', '.join(f's{i} = 0.0f' for i in sums)};",
                "for (int32_t j = first; j < last; j++) {",
                indent(terms),
                "}",
                *(f"result[d + {i}] = s{i};" for i in sums),
            ]
        ),
        "}",
    ]


def _divisor(extent: int) -> int:
    return next(n for n in (4, 3, 2, 1) if extent % n == 0)


_BODY = Template("""\
{
    for (int32_t b = 0; b < $batch; b++)
        for (int32_t h = 0; h < $heads; h++) {
            const float *key = k + $key, *value = v + $value;
            for (int32_t i = 0; i < $queries; i++) {
                const float *query = q + $query;
                float *result = y + $result;
                float *w = $weights;
                float most = -INFINITY, sum = 0.0f;
$seen
$scores
                /* a query that sees nothing has no weights */
                float highest = most == -INFINITY ? 0.0f : most;
                for (int32_t j = first; j < last; j++) {
                    w[j] = expf(w[j] - highest);
                    sum += w[j];
                }
                float factor = sum > 0.0f ? 1.0f / sum : 0.0f;
                for (int32_t j = first; j < last; j++)
                    w[j] *= factor;
$clear
$weighted
            }
        }
}
""")
