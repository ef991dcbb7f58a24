"""The registry of converters from ONNX operators."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from covp.errors import ModelError
from covp.graph.graph import Tensor
from covp.graph.onnx.importer import Importer
from covp.graph.onnx.node import OnnxNode

Converter = Callable[[OnnxNode, Importer], Tensor | Sequence[Tensor | None]]
"""Adds what a node computes to the importer; returns its output, or all of its outputs (None for
one that the node does not want)."""

CONVERTERS: dict[tuple[str, str], Converter] = {}
"""The converter of each (domain, operator); ONNX's own domain is ""."""


def register(*kinds: str, domain: str = "") -> Callable[[Converter], Converter]:
    """Make a function the converter of some operators; a later one replaces an earlier one."""

    def add(convert: Converter) -> Converter:
        CONVERTERS.update({(domain, kind): convert for kind in kinds})
        return convert

    return add


_DYNAMIC = ("Compress", "NonMaxSuppression", "NonZero", "Unique")


def unknown_operator(node: OnnxNode) -> ModelError:
    """Return the error of an operator that has neither a converter nor a body."""
    name = f"{node.domain}::{node.kind}" if node.domain else node.kind
    text = f"operator {name} of opset {node.opset} is not supported; "
    if not node.domain and node.kind in _DYNAMIC:
        return ModelError(f"{text}the shape of its output depends on values")
    known = [kind for domain, kind in CONVERTERS if domain == node.domain]
    misspelt = difflib.get_close_matches(node.kind, known, n=1, cutoff=0.85)
    hint = "docs/onnx-operators.md lists those that are"
    if misspelt:  # one of ONNX's own is like another by chance: Scan, Tan
        hint = f"did you mean {misspelt[0]}?"
    return ModelError(f"{text}{hint} (covp.graph.onnx.converters.register teaches others)")
