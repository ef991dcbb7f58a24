"""`show`: a model's graph after a pass, and its layers as they are compiled, as one document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from covp.base.document import Bytes, Count, Macs
from covp.building.builder import Build
from covp.codegen.lifetimes import ArenaTensor, arena_tensors
from covp.codegen.program import Program, ProgramLayer
from covp.errors import UsageError
from covp.graph.graph import Graph, Op, Tensor, attributes_text


class TensorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A value in the graph, without its data.

    Attributes:
        shape: batch first
        dtype: as stored, such as `int8`; `int4` where two values share a byte
        is_constant: known when the model is compiled
        quantization: in words; null for float and plain integer tensors
    """

    name: str
    shape: tuple[Count, ...]
    dtype: str
    is_constant: bool
    quantization: str | None = None

    @classmethod
    def of(cls, tensor: Tensor) -> TensorRecord:
        """Return the record of a tensor."""
        return cls(
            name=tensor.name,
            shape=tensor.shape,
            dtype=tensor.dtype.name if tensor.bits is None else f"int{tensor.bits}",
            is_constant=tensor.constant,
            quantization=None if tensor.quantization is None else str(tensor.quantization),
        )


class OperatorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An operator of the graph.

    Attributes:
        layer: the number of its layer, as `covp run` prints it
        kind: such as `CONV_2D`
        inputs: null stands for an optional input that is left out
        attributes: those that are not the default, in words
    """

    layer: Count
    kind: str
    name: str
    inputs: list[TensorRecord | None]
    outputs: list[TensorRecord]
    attributes: str = ""

    @classmethod
    def of(cls, op: Op) -> OperatorRecord:
        """Return the record of an operator."""
        return cls(
            layer=op.index,
            kind=op.kind,
            name=op.name,
            inputs=[None if tensor is None else TensorRecord.of(tensor) for tensor in op.inputs],
            outputs=[TensorRecord.of(tensor) for tensor in op.outputs],
            attributes=attributes_text(op.attributes),
        )


class CompiledLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of the program.

    Attributes:
        layer: its number, as `covp run` prints it
        name: of its last operator
        kind: of that operator
        target: `cpu`, or the name of an accelerator
        schedule: the choice that the kernel made; empty where it has none
        function: of its C
        operators: names of those that it computes
    """

    layer: Count
    name: str
    kind: str
    target: str
    schedule: str
    function: str
    macs: Macs
    operators: tuple[str, ...]

    @classmethod
    def of(cls, layer: ProgramLayer) -> CompiledLayer:
        """Return the record of a layer."""
        return cls(
            layer=layer.index,
            name=layer.name,
            kind=layer.op,
            target=layer.target,
            schedule=layer.schedule,
            function=layer.function,
            macs=layer.macs,
            operators=layer.operators,
        )


class SourceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of generated C."""

    name: str
    text: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What `covp show` has found.

    Attributes:
        model: zoo name, or the file's stem
        model_source: as in covp.run/1
        after: the pass; null: as read
        operators: of the graph; empty where the layers are shown alone
        platform: null without `-p`
        accelerators: as given to `-a`
        arena_bytes: of the whole program; null without `-p`
        layers: as compiled, in the order they run; empty without `-p`
        memory: the plan of the arena, by the first layer; of one layer, what it finds there
        files: with `--c`, the generated C
    """

    model: str
    model_source: str
    after: str | None = None
    operators: list[OperatorRecord] = []
    platform: str | None = None
    accelerators: tuple[str, ...] = ()
    arena_bytes: Bytes | None = None
    layers: list[CompiledLayer] = []
    memory: list[ArenaTensor] = []
    files: list[SourceFile] = []

    @property
    def headline(self) -> str:
        """What the layers are of, on a line."""
        units = f" with {', '.join(self.accelerators)}" if self.accelerators else ""
        return f"{self.model} on {self.platform}{units}, an arena of {self.arena_bytes:,} bytes"

    def document(self) -> dict[str, Any]:
        """Return the JSON document ``covp.show/1``."""
        return {"schema": "covp.show/1", **msgspec.to_builtins(self)}


def operators_of(graph: Graph, layer: int | None = None) -> list[Op]:
    """Return the operators of a ``graph``, or those of one ``layer``.

    Raises:
        UsageError: no operator has this number.
    """
    if layer is None:
        return list(graph.ops)
    found = [op for op in graph.ops if op.index == layer]
    return found or _no_layer(layer, [op.index for op in graph.ops], f"the graph of {graph.name}")


def layers_of(program: Program, layer: int | None = None) -> list[ProgramLayer]:
    """Return the layers of a ``program``, or those of the number ``layer``.

    Raises:
        UsageError: no layer has this number.
    """
    if layer is None:
        return list(program.layers)
    found = [one for one in program.layers if one.index == layer]
    return found or _no_layer(layer, [one.index for one in program.layers], program.name)


def _no_layer(layer: int, numbers: Sequence[int], where: str) -> Any:
    known = ", ".join(map(str, dict.fromkeys(numbers))) or "none"
    raise UsageError(f"--layer {layer}: {where} has no such layer; known are {known}")


def memory_of(program: Program, layers: Sequence[ProgramLayer]) -> list[ArenaTensor]:
    """Return what lies in the arena of a ``program`` while one of these ``layers`` runs."""
    places = [position for position, one in enumerate(program.layers) if one in layers]
    return [
        one
        for one in arena_tensors(program)
        if not program.layers or any(one.first <= place <= one.last for place in places)
    ]


def files_of(program: Program, layer: int | None = None) -> dict[str, str]:
    """Return the program's sources, or those that belong to one layer alone.

    Args:
        program: that was compiled.
        layer: its number; None: all files.

    Raises:
        UsageError: no layer has this number.
    """
    if layer is None:
        return dict(program.sources)
    functions = {name for one in layers_of(program, layer) for name in one.functions}
    return {name: program.sources[name] for name in _names(program, functions)}


def _names(program: Program, functions: set[str]) -> Iterator[str]:
    for name in program.sources:
        stem = name.removesuffix(".c")
        if any(stem == one or stem.startswith(f"{one}_") for one in functions):
            yield name


def describe(
    graph: Graph | None,
    build: Build | None,
    *,
    after: str | None = None,
    layer: int | None = None,
    with_code: bool = False,
) -> Shown:
    """Return what is known of a ``graph``, of a ``build``, or of both.

    Args:
        graph: as read or after a pass; None: not to be shown.
        build: of the same model; None: not compiled.
        after: the pass that the graph is after.
        layer: the only one to be shown.
        with_code: add the generated C.

    Raises:
        UsageError: no such layer.
    """
    whole = graph or (build.graph if build else None)
    assert whole is not None, "a graph or a build"
    shown = Shown(
        model=whole.name,
        model_source=whole.source,
        after=after,
        operators=[OperatorRecord.of(op) for op in operators_of(graph, layer)] if graph else [],
    )
    if build is None:
        return shown
    layers = layers_of(build.program, layer)
    files = files_of(build.program, layer) if with_code else {}
    return msgspec.structs.replace(
        shown,
        platform=build.platform.name,
        accelerators=build.accelerators,
        arena_bytes=build.program.arena_bytes,
        layers=[CompiledLayer.of(one) for one in layers],
        memory=memory_of(build.program, layers),
        files=[SourceFile(name=name, text=text) for name, text in files.items()],
    )
