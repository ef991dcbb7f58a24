"""A model brought into one form: local functions inlined, an old opset converted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.defs
import onnx.inliner
import onnx.version_converter

from covp.errors import ModelError
from covp.graph.attributes import Concatenation
from covp.graph.graph import Tensor
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode

OLDEST = 13
"""The oldest opset whose operators converters understand; older models are converted to it."""
MOST_NODES = 100_000
"""Most nodes of a graph with its functions inlined and its loops unrolled."""


def prepare(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the same network without functions, of an opset from `OLDEST` on.

    Raises:
        ModelError: functions call each other in a circle, or the opset is too new or too old.
    """
    version, newest = opset_of(model), onnx.defs.onnx_opset_version()
    if version > newest:
        raise ModelError(
            f"opset {version} is newer than {newest}, the newest that the installed onnx knows; "
            "install a newer onnx package"
        )
    if model.functions:
        _check_calls(model)
        try:
            model = onnx.inliner.inline_local_functions(model)
        except Exception as error:
            raise ModelError(f"its local functions cannot be inlined: {error}") from None
    return model if version >= OLDEST else _convert_version(model, version)


def opset_of(model: onnx.ModelProto) -> int:
    """Return the version of ONNX's own operators; 1 where a model that uses some states none."""
    versions = [e.version for e in model.opset_import if e.domain in ("", "ai.onnx")]
    uses_none = all(node.domain not in ("", "ai.onnx") for node in model.graph.node)
    return max(versions, default=OLDEST if uses_none and model.graph.node else 1)


def _convert_version(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    try:
        onnx.checker.check_model(model)
        return onnx.version_converter.convert_version(model, OLDEST)
    except Exception as error:
        text = str(error).strip().partition("\n")[0]
        raise ModelError(
            f"opset {version} is older than {OLDEST} and onnx.version_converter cannot convert it "
            f"({text:.160}); export the model with a newer opset"
        ) from None


def _check_calls(model: onnx.ModelProto) -> None:
    """Raise ModelError for a function that calls itself, and for more nodes than can be inlined.

    The inliner would not come to an end.
    """
    functions = {(f.domain, f.name): f for f in model.functions}
    counts: dict[tuple[str, str], int] = {}
    open_calls: list[tuple[str, str]] = []

    def count(nodes: Iterable[onnx.NodeProto]) -> int:
        total = 0
        for node in nodes:
            called = (node.domain, node.op_type)
            total += 1 if called not in functions else size(called)
            total += sum(count(a.g.node) for a in node.attribute if a.HasField("g"))
        if total > MOST_NODES:
            raise ModelError(f"has more than {MOST_NODES} nodes once its functions are inlined")
        return total

    def size(name: tuple[str, str]) -> int:
        if name in open_calls:
            raise ModelError(f"function {name[1]} calls itself")
        if name not in counts:
            open_calls.append(name)
            counts[name] = count(functions[name].node)
            open_calls.pop()
        return counts[name]

    count(model.graph.node)


Run = Callable[[onnx.GraphProto, Sequence[Tensor | None]], list[Tensor]]
"""Function that converts a subgraph's nodes for given inputs and returns its outputs."""
MOST_TURNS = 1000
"""Most turns of a loop: a core's flash holds no more."""


def convert_if(node: OnnxNode, importer: Importer, run: Run) -> list[Tensor]:
    """Convert the branch that a constant condition takes; else both, and select the results.

    Branches have no effect but their results, so that computing both costs time alone.
    """
    branches = [node.get("then_branch"), node.get("else_branch")]
    if not all(isinstance(branch, onnx.GraphProto) for branch in branches):
        raise ModelError("does not have both branches")
    condition = node.input(0)
    if condition.dtype != np.bool_ or condition.size != 1:
        raise ModelError(f"the condition {condition.name} is not one bool")
    if condition.data is not None:
        return run(branches[0 if condition.data.reshape(-1)[0] else 1], [])
    results = []
    for x, y in zip(run(branches[0], []), run(branches[1], []), strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise ModelError(
                f"the condition must be constant, as its branches give {x.dtype} {x.shape} and "
                f"{y.dtype} {y.shape}"
            )
        which = importer.reshape(condition, ())
        results.append(importer.add("SELECT_V2", which, x, y, dtype=x.dtype))
    return results


def convert_loop(node: OnnxNode, importer: Importer, run: Run) -> list[Tensor]:
    """Unroll a loop: one copy of the body per turn.

    The body's inputs are the turn, the condition and the values carried over; its outputs the
    condition, the values carried over, and what is collected over the turns.
    """
    body = node.get("body")
    if not isinstance(body, onnx.GraphProto):
        raise ModelError("has no body")
    turns = MOST_TURNS + 1
    if node.optional(0) is not None:
        turns = int(node.constant(0, "the number of turns").reshape(-1)[0])
    goes_on = True
    if node.optional(1) is not None:
        goes_on = bool(node.constant(1, "the condition").reshape(-1)[0])
    carried = [node.input(position) for position in range(2, len(node.inputs))]
    collected: list[list[Tensor]] = []
    turn = 0
    while goes_on and turn < turns:
        if turn == MOST_TURNS:
            raise ModelError(f"has more than {MOST_TURNS} turns; loops are unrolled")
        counter = importer.constant(np.array(turn, np.int64))
        found = run(body, [counter, importer.constant(np.array(True)), *carried])
        if found[0].data is None:
            raise ModelError("its condition is computed at run time; only constant ones are known")
        goes_on = bool(found[0].data.reshape(-1)[0])
        carried = found[1 : 1 + len(carried)]
        collected.append(found[1 + len(carried) :])
        turn += 1
    if not collected and len(node.outputs) > len(carried):
        raise ModelError("collects values over no turn")
    return [*carried, *(_stack(importer, parts) for parts in zip(*collected, strict=True))]


def _stack(importer: Importer, parts: Sequence[Tensor]) -> Tensor:
    rows = [importer.reshape(part, (1, *part.shape)) for part in parts]
    if len(rows) == 1:
        return rows[0]
    return importer.add("CONCATENATION", *rows, attributes=Concatenation(axis=0))


def body_of(
    proto: onnx.NodeProto, node: OnnxNode, opsets: Mapping[str, int]
) -> onnx.FunctionProto | None:
    """Return the body with the node's attributes in it; None where the standard has none.

    Args:
        proto: the node as the model states it.
        node: the same with its tensors: some bodies depend on their types.
        opsets: versions of the model's domains.
    """
    version = opsets.get(node.domain, 1)
    if not onnx.defs.has(node.kind, version, node.domain):
        return None
    schema: Any = onnx.defs.get_schema(node.kind, version, node.domain)
    body = onnx.FunctionProto()
    if schema.has_context_dependent_function:
        types = [_type_of(node, position) for position in range(len(node.inputs))]
        usable = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        if not usable:
            return None
        text = schema.get_context_dependent_function_with_opset_version(
            usable[-1], proto.SerializeToString(), types
        )
    elif schema.has_function:
        usable = [v for v in schema.function_opset_versions if v <= version]
        if not usable:
            return None
        text = schema.get_function_with_opset_version(usable[-1])
    else:
        return None
    body.ParseFromString(text)
    _fill_in(body, proto, schema)
    return body


def _type_of(node: OnnxNode, position: int) -> bytes:
    tensor = node.optional(position)
    if tensor is None:
        return b""
    kind = onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
    made = onnx.helper.make_tensor_type_proto(kind, tensor.shape)
    return bytes(made.SerializeToString())


def _fill_in(body: onnx.FunctionProto, proto: onnx.NodeProto, schema: Any) -> None:
    """Substitute the node's attributes, or their defaults, where the body refers to them."""
    given = {a.name: a for a in proto.attribute}
    for name, stated in schema.attributes.items():
        if name not in given and stated.default_value.name:
            given[name] = stated.default_value
    for inner in body.node:
        for attribute in list(inner.attribute):
            if not attribute.ref_attr_name:
                continue
            name, source = attribute.name, given.get(attribute.ref_attr_name)
            inner.attribute.remove(attribute)
            if source is not None:
                copy = onnx.AttributeProto()
                copy.CopyFrom(source)
                copy.name = name
                inner.attribute.append(copy)
