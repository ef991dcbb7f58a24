"""A model brought into one form: local functions inlined, an old opset converted."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
import onnx.inliner
import onnx.version_converter

from covp.errors import ModelError

OLDEST = 13
"""The oldest opset whose operators converters understand; older models are converted to it."""
MOST_NODES = 100_000
"""Of a graph with its functions inlined and its loops unrolled."""


def prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same network without functions, of an opset from `OLDEST` on.

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
    return model if version >= OLDEST else _converted(model, version)


def opset_of(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators; 1 where a model that uses some states none."""
    versions = [e.version for e in model.opset_import if e.domain in ("", "ai.onnx")]
    uses_none = all(node.domain not in ("", "ai.onnx") for node in model.graph.node)
    return max(versions, default=OLDEST if uses_none and model.graph.node else 1)


def _converted(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
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
    """Raises ModelError for a function that calls itself, and for more nodes than can be inlined.

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
