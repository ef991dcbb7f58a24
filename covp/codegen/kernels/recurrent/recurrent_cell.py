"""One step of time of a float32 RNN, GRU or LSTM in C."""

from __future__ import annotations

from covp.chip.cores import Core
from covp.codegen.c_text import c_float, indent
from covp.codegen.layer import KernelRequest
from covp.graph.graph import Op
from covp.graph.ops.recurrent import GATES, PEEPHOLES, Activation, Recurrent

_ROWS = 4  # sums at once: each value of the vector is loaded once for all of them


def sums_of(op: Op) -> int:
    """Return the sums of a step for each element of the state.

    One a gate; a GRU with the reset after R keeps the last gate's two products apart.
    """
    return GATES[op.kind] + (op.kind == "GRU" and op.attributes.linear_before_reset)


def cell_functions(request: KernelRequest) -> list[str]:
    """Return C text of ``step0(x, w, r, start, gates, h[, c][, p])``; of ``step1`` where the second
    direction has other activations."""
    op = request.op
    a: Recurrent = op.attributes
    size = op.input(0).shape[2]
    products = [_product(request.core, depth) for depth in sorted({size, a.hidden})]
    steps = dict.fromkeys(a.activations)
    return [*products, *(_step(op, i, functions) for i, functions in enumerate(steps))]


def _product(core: Core, depth: int) -> str:
    """Emit ``product<depth>``: start + w x for some rows of w; ``to`` may be ``start``."""
    unroll = next(n for n in (4, 3, 2, 1) if depth % n == 0)

    def block(rows: int) -> list[str]:
        sums = ", ".join(f"s{n} = start[{n}]" for n in range(rows))
        adds = []
        for i in range(unroll):
            for n in range(rows):
                factor, value = f"w[k + {n * depth + i}]", f"x[k + {i}]"
                adds.append(f"s{n} = {_multiply_add(core, factor, value, f's{n}')};")
        return [
            f"float {sums};",
            f"for (int32_t k = 0; k < {depth}; k += {unroll}) {{",
            indent(adds),
            "}",
            *(f"to[{n}] = s{n};" for n in range(rows)),
            f"w += {rows * depth};",
            f"start += {rows};",
            f"to += {rows};",
        ]

    lines = [
        f"static __attribute__((noinline)) void product{depth}(const float *w, const float *x,",
        "    const float *start, float *to, int32_t rows)",
        "{",
        f"    for (; rows >= {_ROWS}; rows -= {_ROWS}) {{",
        indent(block(_ROWS), 2),
        "    }",
        "    for (; rows > 0; rows--) {",
        indent(block(1), 2),
        "    }",
        "}\n",
    ]
    return "\n".join(lines)


def _multiply_add(core: Core, a: str, b: str, total: str) -> str:
    # Arm's VMLA and VFMA take as long as the two instructions do (Cortex-M4 TRM, table 7-1)
    if core.has("fpu") and core.architecture == "riscv":
        return f"__builtin_fmaf({a}, {b}, {total})"
    return f"{total} + {a} * {b}"


def _step(op: Op, number: int, functions: tuple[Activation, ...]) -> str:
    a: Recurrent = op.attributes
    size, hidden = op.input(0).shape[2], a.hidden
    peepholes = len(op.inputs) > PEEPHOLES and op.inputs[PEEPHOLES] is not None
    body = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}[op.kind](a, number, size, peepholes)
    parameters = "const float *x, const float *w, const float *r, const float *start, "
    parameters += "float *gates, float *h"
    parameters += ", float *c" * (op.kind == "LSTM") + ", const float *p" * peepholes
    names = "fgh"[: len(functions)]
    return "\n".join(
        [
            *(
                _function(f"{name}{number}", function, a.clip if name != "h" else None)
                for name, function in zip(names, functions, strict=True)
            ),
            f"static void step{number}({parameters})",
            "{",
            f"    enum {{ N = {hidden} }};",
            indent(body),
            "}\n",
        ]
    )


def _rnn(a: Recurrent, number: int, size: int, peepholes: bool) -> list[str]:
    return [
        f"product{size}(w, x, start, gates, N);",
        f"product{a.hidden}(r, h, gates, gates, N);",
        "for (int32_t j = 0; j < N; j++)",
        f"    h[j] = f{number}(gates[j]);",
    ]


def _gru(a: Recurrent, number: int, size: int, peepholes: bool) -> list[str]:
    product = f"product{a.hidden}"
    lines = [f"product{size}(w, x, start, gates, 3 * N);", f"{product}(r, h, gates, gates, 2 * N);"]
    if a.linear_before_reset:
        lines.append(f"{product}(r + 2 * N * N, h, start + 3 * N, gates + 3 * N, N);")
        last = f"gates[2 * N + j] + f{number}(gates[N + j]) * gates[3 * N + j]"
    else:
        lines += [
            "for (int32_t j = 0; j < N; j++)",
            f"    gates[N + j] = f{number}(gates[N + j]) * h[j];",
            f"{product}(r + 2 * N * N, gates + N, gates + 2 * N, gates + 2 * N, N);",
        ]
        last = "gates[2 * N + j]"
    return [
        *lines,
        "for (int32_t j = 0; j < N; j++) {",
        f"    float z = f{number}(gates[j]);",
        f"    h[j] = (1.0f - z) * g{number}({last}) + z * h[j];",
        "}",
    ]


def _lstm(a: Recurrent, number: int, size: int, peepholes: bool) -> list[str]:
    def gate(block: str, peephole: str, cell: str) -> str:
        peek = f" + p[{peephole}j] * {cell}" if peepholes else ""
        return f"f{number}(gates[{block}j]{peek})"

    forget = "1.0f - i" if a.input_forget else gate("2 * N + ", "2 * N + ", "c[j]")
    return [
        f"product{size}(w, x, start, gates, 4 * N);",
        f"product{a.hidden}(r, h, gates, gates, 4 * N);",
        "for (int32_t j = 0; j < N; j++) {",
        f"    float i = {gate('', '', 'c[j]')};",
        f"    float forget = {forget};",
        f"    float cell = forget * c[j] + i * g{number}(gates[3 * N + j]);",
        "    c[j] = cell;",
        f"    h[j] = {gate('N + ', 'N + ', 'cell')} * h{number}(cell);",
        "}",
    ]


def _function(name: str, function: Activation, clip: float | None) -> str:
    lines = []
    if clip is not None:
        low, high = c_float(-clip), c_float(clip)
        lines.append(f"    x = x < {low} ? {low} : x > {high} ? {high} : x;\n")
    return (
        f"static inline float {name}(float x)\n{{\n{''.join(lines)}"
        f"    return {_formula(function)};\n}}\n"
    )


def _formula(function: Activation) -> str:
    a, b = c_float(function.alpha), c_float(function.beta)
    return {
        "sigmoid": "1.0f / (1.0f + expf(-x))",
        "tanh": "tanhf(x)",
        "relu": "x < 0.0f ? 0.0f : x",
        "affine": f"{a} * x + {b}",
        "leakyrelu": f"x < 0.0f ? {a} * x : x",
        "thresholdedrelu": f"x > {a} ? x : 0.0f",
        "scaledtanh": f"{a} * tanhf({b} * x)",
        "hardsigmoid": f"fminf(fmaxf({a} * x + {b}, 0.0f), 1.0f)",
        "elu": f"x < 0.0f ? {a} * (expf(x) - 1.0f) : x",
        "softsign": "x / (1.0f + fabsf(x))",
        "softplus": "logf(1.0f + expf(-fabsf(x))) + fmaxf(x, 0.0f)",
    }[function.name]
