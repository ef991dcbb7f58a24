"""Strategies of layers that a pattern is made for: of one operator, or of several in a chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from covp.graph.attributes import Mean, Pad, Transpose
from covp.graph.graph import Op
from covp.graph.pattern import COMMUTATIVE, Node, Pattern
from covp.graph.user_operators import find_user_operator
from covp.testing import layers, tensors
from covp.testing.cases import OperatorCase, PoolCase, SoftmaxCase
from covp.testing.convolution_case import ConvCase
from covp.testing.layers import STRATEGIES
from covp.testing.tensors import Shape
from covp.testing.verify.chain import ChainCase, with_output

S = st.SearchStrategy
Draw = Callable[[str], S[Any]]
"""A function from an operator's kind to a strategy of its layers."""

_PAIRS = st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 2), (2, 1)])
_KERNELS = st.sampled_from([(1, 1), (3, 3), (3, 3), (2, 3), (1, 3)])
_STORED = st.integers(-128, 127)


def pattern_layers(pattern: Pattern, leaf: Draw | None = None) -> dict[str, S[Any]]:
    """Return layers for a pattern, by the kind of its last operator; {} if none are drawn.

    Args:
        pattern: of an accelerator.
        leaf: layers of the operators that read nothing but the graph's inputs.
    """
    leaf = drawn if leaf is None else leaf
    found: dict[str, list[S[Any]]] = {}
    for option in pattern.node.options():
        kind = getattr(option, "kind", "")
        if not _is_known(option):
            continue
        several = any(_operator(node) for node in getattr(option, "inputs", ()))
        strategy = _chains(option, leaf) if several else leaf(kind)
        found.setdefault(kind, []).append(strategy)
    return {kind: st.one_of(strategies) for kind, strategies in found.items()}


def drawn(kind: str) -> S[Any]:
    """Return layers of a kind of operator, also of one from outside.

    Raises:
        KeyError: nothing draws them.
    """
    if kind in STRATEGIES:
        return STRATEGIES[kind](kind)
    if find_user_operator(kind) is None:
        raise KeyError(kind)
    scales = st.floats(1 / 64, 1.0, width=32)
    long = st.tuples(st.just(1), st.sampled_from([64, 255, 256, 257, 300, 1031, 4095, 4096, 70001]))
    return st.builds(
        OperatorCase,
        kind=st.just(kind),
        shape=st.one_of(tensors.shapes(max_extent=9), tensors.shapes(), long),
        dtype=st.sampled_from(["int8", "int8", "int8", "float32"]),
        scale=scales,
        zero_point=_STORED,
        output_scale=scales,
        output_zero_point=_STORED,
        seed=st.integers(0, 2**16),
        gap=st.integers(0, 7),
    )


def _is_known(node: Node) -> bool:
    """Return whether layers of all operators of a node are drawn."""
    return all(kind in STRATEGIES or find_user_operator(kind) for kind in node.all_kinds())


def _operator(node: Node) -> bool:
    return bool(node.kinds())


def _chains(root: Node, leaf: Draw) -> S[ChainCase]:
    return st.builds(_finish_chain, _chain(root, leaf), st.integers(0, 2**16), st.integers(0, 7))


def _finish_chain(chain: ChainCase, seed: int, gap: int) -> ChainCase:
    return ChainCase(chain.parts, chain.wires, seed, gap)


@st.composite
def _chain(draw: st.DrawFn, root: Node, leaf: Draw) -> ChainCase:
    parts: list[Any] = []
    wires: list[tuple[int, int, int]] = []
    dtype = draw(st.sampled_from(["int8", "int8", "int8", "int8", "float32"]))
    plain = draw(st.sampled_from([True, True, True, False]))

    def add(node: Node, shape: Shape | None) -> Op:
        """Add an operator with all that it reads; of a result's shape, if one is requested."""
        option = draw(st.sampled_from([n for n in node.options() if _operator(n)]))
        kind, inputs = option.kind, option.inputs  # type: ignore[attr-defined]
        sources: list[tuple[int, int, Op]] = []
        wanted = None
        for position, child in enumerate(inputs):
            if _operator(child):
                op = add(child, wanted)
                wanted = op.output.shape
                sources.append((position, len(parts) - 1, op))
        if kind in COMMUTATIVE and len(sources) == 1 and draw(st.booleans()):
            sources = [(1 - sources[0][0], *sources[0][1:])]  # a pattern finds either order
        constant = [getattr(child, "constant", None) is True for child in inputs]
        if sources:
            case = draw(_after(kind, sources[0][2].output.shape, dtype, constant))
        else:
            case = draw(leaf(kind))
            if plain:
                case = _plain(case)
        case = _with_dtype(case, dtype)
        if shape is not None:
            case = with_output(case, shape)
        parts.append(case)
        own = case.graph().ops[-1]
        for position, writer, source in sources:
            assume(position < len(own.inputs) and own.input(position).shape == source.output.shape)
            assume(own.input(position).dtype == source.output.dtype)
            wires.append((len(parts) - 1, position, writer))
        assume(shape is None or own.output.shape == shape)
        return own  # type: ignore[no-any-return]

    add(root, None)
    return ChainCase(tuple(parts), tuple(wires))


def _with_dtype(case: Any, dtype: str) -> Any:
    """Replace a case's type, but not those of QUANTIZE and DEQUANTIZE."""
    if case.kind in ("QUANTIZE", "DEQUANTIZE") or getattr(case, "dtype", dtype) == dtype:
        return case
    return _replace_layers(case, dtype=dtype)


def _plain(case: Any) -> Any:
    """Return the same layer of one image, without dilation: what most fused units want."""
    if isinstance(case, ConvCase):
        return replace(case, batch=1, dilation=(1, 1))
    return replace(case, batch=1) if isinstance(case, PoolCase) else case


def _replace_layers(case: Any, **fields: Any) -> Any:
    return replace(case, **fields)


def _after(kind: str, shape: Shape, dtype: str, constant: list[bool]) -> S[Any]:
    """Return layers of a kind whose input, or first operand, is of a shape."""
    scale = st.floats(1 / 64, 1.0, width=32)
    if kind in layers.CONVOLUTIONS:
        return _convolutions_after(kind, shape, dtype)
    if kind in layers.ELEMENTWISE:
        return layers.elementwise(
            kind,
            shape=shape,
            dtype=dtype,
            constant=any(constant),
            scales=st.tuples(scale, scale, scale),
        )
    if kind in layers.POOLS:
        if len(shape) != 4:
            return st.nothing()
        extents = st.tuples(*(st.integers(1, min(extent, 5)) for extent in shape[1:3]))
        windows = st.one_of(st.sampled_from([(2, 2), (2, 2), (3, 3), (4, 4), shape[1:3]]), extents)
        fitting = windows.map(lambda w: (min(w[0], shape[1]), min(w[1], shape[2])))
        steps = st.tuples(st.integers(1, 6), st.integers(1, 6))
        return fitting.flatmap(
            lambda filter: layers.pools(
                kind,
                batch=shape[0],
                size=shape[1:3],
                channels=shape[3],
                dtype=dtype,
                filter=filter,
                stride=st.one_of(st.sampled_from([filter, filter, (1, 1), (2, 2)]), steps),
                same=st.sampled_from([False, False, True]),
            )
        )
    if kind == "SOFTMAX":
        if len(shape) != 2:
            return st.nothing()
        return st.builds(
            SoftmaxCase, rows=st.just(shape[0]), depth=st.just(shape[1]), dtype=st.just(dtype)
        )
    return _operators_after(kind, shape, dtype)


def _convolutions_after(kind: str, shape: Shape, dtype: str) -> S[ConvCase]:
    outputs = st.one_of(st.integers(1, 20), st.sampled_from([4, 8, 16, 32]))
    common: dict[str, Any] = {"batch": shape[0], "dtype": dtype}
    if kind == "FULLY_CONNECTED":
        if len(shape) != 2:
            return st.nothing()
        return layers.convolutions(kind, **common, channels=outputs.map(lambda n: (shape[1], n)))
    if len(shape) != 4:
        return st.nothing()
    wide = shape[3]
    deep = st.just(wide) if kind == "DEPTHWISE_CONV_2D" else outputs
    kernels = _KERNELS.map(lambda k: (min(k[0], shape[1]), min(k[1], shape[2])))
    return layers.convolutions(
        kind,
        **common,
        size=shape[1:3],
        channels=deep.map(lambda n: (wide, n)),
        kernel=kernels,
        stride=_PAIRS,
        dilation=(1, 1),
    )


def _operators_after(kind: str, shape: Shape, dtype: str) -> S[Any]:
    """Return a strategy of operators of one input, which has a shape and type."""
    rank = len(shape)
    fixed: dict[str, Any] = {"shape": shape, "dtype": dtype}
    if kind in layers.FUNCTIONS:
        return layers.functions(kind, **fixed)
    if kind == "RESHAPE":
        flat = (shape[0], -1)
        size = 1
        for extent in shape[1:]:
            size *= extent
        shapes = st.sampled_from([(flat[0], size), (flat[0], size), (flat[0] * size,)])
        return st.builds(
            OperatorCase, kind=st.just(kind), shape=st.just(shape), dtype=st.just(dtype),
            reshaped=shapes,
        )  # fmt: skip
    if kind in ("MEAN", "REDUCE_MAX"):
        axes = (1, 2) if rank == 4 else (rank - 1,)
        return layers.means(
            **fixed, kind=kind, attributes=st.builds(Mean, st.just(axes), st.booleans())
        )
    if kind in ("PAD", "PADV2"):
        sides = st.tuples(st.integers(0, 2), st.integers(0, 2))
        none = st.just((0, 0))
        each = [none, sides, sides, none] if rank == 4 else [none] * (rank - 1) + [sides]
        zero = 0.0
        return st.builds(
            OperatorCase,
            kind=st.just(kind),
            shape=st.just(shape),
            dtype=st.just(dtype),
            attributes=st.tuples(*each).map(lambda pads: Pad(pads, zero)),
        )
    if kind == "TRANSPOSE":
        orders = st.permutations(range(rank)).map(lambda order: Transpose(tuple(order)))
        return st.builds(
            OperatorCase, kind=st.just(kind), shape=st.just(shape), dtype=st.just(dtype),
            attributes=orders,
        )  # fmt: skip
    if kind == "QUANTIZE":
        return layers.conversions(kind, **fixed)
    if kind == "DEQUANTIZE":
        return layers.conversions(kind, shape=shape)
    if find_user_operator(kind) is not None:
        return drawn(kind).map(lambda case: _replace_layers(case, shape=shape, dtype=dtype))
    return st.nothing()
