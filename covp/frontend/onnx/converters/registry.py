"""The registry of converters from ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from covp.frontend.onnx.importer import Importer
from covp.frontend.onnx.node import Node
from covp.graph.graph import Tensor

Converter = Callable[[Node, Importer], Tensor | Sequence[Tensor | None]]
"""Adds what a node computes to the importer; returns its output, or all of its outputs (None for
one that the node does not want)."""

CONVERTERS: dict[tuple[str, str], Converter] = {}
"""(domain, operator) to converter; ONNX's own domain is ""."""


def register(*kinds: str, domain: str = "") -> Callable[[Converter], Converter]:
    """Make a function the converter of some operators; a later one replaces an earlier one."""

    def add(convert: Converter) -> Converter:
        CONVERTERS.update({(domain, kind): convert for kind in kinds})
        return convert

    return add
