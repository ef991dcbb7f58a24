"""Property tests of an accelerator: driver on the emulated core and model against the reference."""

from covp.verify.cases import (
    Case,
    ConcatenationCase,
    ConvCase,
    ElementwiseCase,
    PoolCase,
    SoftmaxCase,
)
from covp.verify.search import Verdict, check, verify

__all__ = [
    "Case",
    "ConcatenationCase",
    "ConvCase",
    "ElementwiseCase",
    "PoolCase",
    "SoftmaxCase",
    "Verdict",
    "check",
    "verify",
]
