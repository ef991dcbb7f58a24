"""Patterns: what part of a graph an accelerator, or a pass, is looking for.

A pattern is a small tree of nodes that is laid over the graph from its last operator backwards::

    Pattern("conv_add", op("ADD", conv2d(wildcard("input"), constant("weights")), wildcard("skip")))

Alternatives are written with ``|``. Operators inside a match feed nothing but the match, so that
it can be computed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from covp.graph.graph import Graph, Op, Tensor

COMMUTATIVE = frozenset({"ADD", "MUL"})
"""Operators whose two inputs a pattern may find in either order."""

Values = tuple["Tensor | None", ...]


@dataclass(frozen=True)
class _Found:
    """A partial match: the operators so far (last one first) and the named tensors."""

    ops: tuple[Op, ...] = ()
    bindings: tuple[tuple[str, Tensor], ...] = ()

    def bind(self, name: str, tensor: Tensor) -> _Found | None:
        """Return the match with one more name; None when the name is bound to another tensor."""
        if not name:
            return self
        for known, other in self.bindings:
            if known == name:
                return self if other is tensor else None
        return _Found(self.ops, (*self.bindings, (name, tensor)))


class Node:
    """A node of a pattern. Made by `wildcard`, `constant`, `optional`, `op` and `conv2d`."""

    def __or__(self, other: Node) -> Node:
        """Return a pattern of either node; the first one that matches counts."""
        return _Alternatives((*self.options(), *other.options()))

    def options(self) -> tuple[Node, ...]:
        """Return the alternatives of this node."""
        return (self,)

    def kinds(self) -> frozenset[str]:
        """Return the operator kinds that this node matches; empty for leaves."""
        return frozenset()

    def all_kinds(self) -> frozenset[str]:
        """Return the operator kinds anywhere in the tree below, this node's included."""
        return self.kinds()

    def _match(self, graph: Graph, tensor: Tensor | None, found: _Found) -> Iterator[_Found]:
        raise NotImplementedError


@dataclass(frozen=True)
class _Leaf(Node):
    name: str
    constant: bool | None
    predicate: Callable[[Tensor], bool] | None
    missing: bool = False

    def _match(self, graph: Graph, tensor: Tensor | None, found: _Found) -> Iterator[_Found]:
        if tensor is None:
            if self.missing:
                yield found
            return
        if self.constant is not None and tensor.constant != self.constant:
            return
        if self.predicate is not None and not self.predicate(tensor):
            return
        bound = found.bind(self.name, tensor)
        if bound is not None:
            yield bound


@dataclass(frozen=True)
class _Alternatives(Node):
    nodes: tuple[Node, ...]

    def options(self) -> tuple[Node, ...]:
        return self.nodes

    def kinds(self) -> frozenset[str]:
        return frozenset().union(*(node.kinds() for node in self.nodes))

    def all_kinds(self) -> frozenset[str]:
        return frozenset().union(*(node.all_kinds() for node in self.nodes))

    def _match(self, graph: Graph, tensor: Tensor | None, found: _Found) -> Iterator[_Found]:
        for node in self.nodes:
            yield from node._match(graph, tensor, found)


@dataclass(frozen=True)
class _OpNode(Node):
    kind: str
    inputs: tuple[Node, ...]
    predicate: Callable[[Op], bool] | None

    def kinds(self) -> frozenset[str]:
        return frozenset({self.kind})

    def all_kinds(self) -> frozenset[str]:
        return frozenset({self.kind}).union(*(node.all_kinds() for node in self.inputs))

    def _match(self, graph: Graph, tensor: Tensor | None, found: _Found) -> Iterator[_Found]:
        producer = graph.producer(tensor) if tensor is not None else None
        if producer is None or not _feeds_only(graph, producer, found.ops):
            return
        yield from self._match_op(graph, producer, found)

    def _match_op(self, graph: Graph, operator: Op, found: _Found) -> Iterator[_Found]:
        if operator.kind != self.kind or operator in found.ops:
            return
        if self.predicate is not None and not self.predicate(operator):
            return
        grown = _Found((*found.ops, operator), found.bindings)
        for values in self._orders(operator):
            yield from _match_all(graph, self.inputs, values, grown)

    def _orders(self, operator: Op) -> Iterator[Values]:
        """Yield the operator's inputs as the pattern counts them, None where one is left out."""
        if not self.inputs:
            yield ()
            return
        extra = len(self.inputs) - len(operator.inputs)
        values: Values = (*operator.inputs, *(None for _ in range(extra)))
        if len(values) > len(self.inputs) and any(
            v is not None for v in values[len(self.inputs) :]
        ):
            return
        values = values[: len(self.inputs)]
        yield values
        if self.kind in COMMUTATIVE and len(values) == 2:
            yield values[::-1]


def _match_all(
    graph: Graph, nodes: Sequence[Node], tensors: Values, found: _Found
) -> Iterator[_Found]:
    if not nodes:
        yield found
        return
    for first in nodes[0]._match(graph, tensors[0], found):
        yield from _match_all(graph, nodes[1:], tensors[1:], first)


def _feeds_only(graph: Graph, producer: Op, ops: Sequence[Op]) -> bool:
    """Return whether nothing outside the match reads what the operator writes."""
    return all(
        all(reader in ops for reader in graph.consumers(tensor)) and not graph.is_result(tensor)
        for tensor in producer.outputs
    )


def wildcard(name: str = "", predicate: Callable[[Tensor], bool] | None = None) -> Node:
    """Return a node for any tensor that ``predicate`` accepts, bound to ``name`` in the match."""
    return _Leaf(name, None, predicate)


def constant(name: str = "", predicate: Callable[[Tensor], bool] | None = None) -> Node:
    """Return a node for a compile-time constant; ``name`` and ``predicate`` as in `wildcard`."""
    return _Leaf(name, True, predicate)


def optional(name: str = "", predicate: Callable[[Tensor], bool] | None = None) -> Node:
    """Return a node for a constant or an input that is left out (a layer without bias).

    ``name`` and ``predicate`` as in `wildcard`.
    """
    return _Leaf(name, True, predicate, missing=True)


def op(kind: str, *inputs: Node, predicate: Callable[[Op], bool] | None = None) -> Node:
    """Return a node for an operator.

    Args:
        kind: TFLite's builtin name, e.g. "ADD".
        inputs: a node for each input; none at all matches whatever the inputs are. The two
            inputs of ADD and MUL match in either order.
        predicate: turns the operator down by its attributes, shapes or types.
    """
    return _OpNode(kind, inputs, predicate)


def conv2d(
    input: Node,
    weights: Node,
    bias: Node | None = None,
    *,
    predicate: Callable[[Op], bool] | None = None,
) -> Node:
    """Return a node for CONV_2D; without ``bias`` it matches layers with and without one.

    Args:
        input, weights, bias: patterns of the operands.
        predicate: on the operator, e.g. its stride; None accepts all.
    """
    return op("CONV_2D", input, weights, bias or optional(), predicate=predicate)


@dataclass(frozen=True, eq=False)
class Match:
    """A place where a pattern lies over the graph.

    Attributes:
        name: of the pattern.
        ops: the operators, in the graph's order; the last one is the pattern's root.
        bindings: the tensors that the pattern gives names to.
        inputs: what the match reads at run time, each once, in the order of use.
        outputs: what it writes for others to read.
    """

    name: str
    ops: tuple[Op, ...]
    bindings: dict[str, Tensor] = field(default_factory=dict)
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()

    @property
    def op(self) -> Op:
        """The last operator, whose outputs are the match's."""
        return self.ops[-1]


@dataclass(frozen=True)
class Pattern:
    """A named pattern; ``node`` is its last operator, or alternatives of it."""

    name: str
    node: Node

    def match(self, graph: Graph, root: Op) -> Match | None:
        """Lay the pattern over the graph with ``root`` as the last operator: the first that fits.

        Alternatives are tried in their order, and the operands of commutative operators first as
        the model has them.
        """
        return next(self._matches(graph, root), None)

    def matches(self, graph: Graph, root: Op) -> list[Match]:
        """Return every match of the pattern in the graph with ``root`` as the last operator.

        The one of `match` comes first.

        Those that differ neither in their operators nor in what they bind count once.
        """
        found: dict[object, Match] = {}
        for match in self._matches(graph, root):
            bound = tuple(sorted((name, id(tensor)) for name, tensor in match.bindings.items()))
            found.setdefault((match.ops, bound), match)
        return list(found.values())

    def _matches(self, graph: Graph, root: Op) -> Iterator[Match]:
        for node in self.node.options():
            if isinstance(node, _OpNode):
                for found in node._match_op(graph, root, _Found()):
                    yield _describe(self.name, graph, root, found)


def _describe(name: str, graph: Graph, root: Op, found: _Found) -> Match:
    ops = tuple(sorted(found.ops, key=graph.ops.index))
    inner = {id(tensor) for member in ops for tensor in member.outputs}
    inputs: dict[int, Tensor] = {}
    for member in ops:
        for tensor in member.inputs:
            if tensor is not None and not tensor.constant and id(tensor) not in inner:
                inputs.setdefault(id(tensor), tensor)
    return Match(name, ops, dict(found.bindings), tuple(inputs.values()), tuple(root.outputs))
