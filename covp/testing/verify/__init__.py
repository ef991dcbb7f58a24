"""Property tests of an accelerator: driver on the emulated core and model against the reference."""

from covp.testing import (
    Case,
    ConcatenationCase,
    ConvCase,
    ElementwiseCase,
    MatMulCase,
    OperatorCase,
    PoolCase,
    SoftmaxCase,
)
from covp.testing.verify.check import check
from covp.testing.verify.instruction_search import Executed, check_instructions
from covp.testing.verify.verification import Verdict, verify

__all__ = [
    "Case",
    "ConcatenationCase",
    "ConvCase",
    "ElementwiseCase",
    "Executed",
    "MatMulCase",
    "OperatorCase",
    "PoolCase",
    "SoftmaxCase",
    "Verdict",
    "check",
    "check_instructions",
    "verify",
]
