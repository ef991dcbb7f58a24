"""Arrays, layers, quantizations and tensors as Hypothesis strategies.

    from hypothesis import given
    from covp.testing import layers

    @given(layers.convolutions("CONV_2D", dtype="int8", kernel=(3, 3)))
    def test_mine(layer):
        op, inputs = layer.op(), layer.inputs()

A drawn layer is a few numbers: Hypothesis shrinks it, and its repr is Python text that makes it
again, values and scales included. `covp.testing.verify` draws from here.

- `arrays`: arrays of numpy with extremes; `near_overflow`: sums at the ends of int32;
- `placements`: of arrays in the device's memory; `reproduce`: failing examples as tests;
- `problems`: strategies of what kernels compute, as arrays and numbers with the expected result;
- `case`, `convolution_case`, `cases`: the layers as dataclasses, `ConvCase` and the others;
- `layers`: strategies of them, for each kind of operator;
- `quantizations`: strategies of scales, zero points, `covp.graph.graph.Quantization`, fixed-point
  factors and `Requantization`;
- `Kernel`, `Buffer`: a C function on a device that takes numpy arrays;
- `Variants`, `differ`: one example on several platforms, compilers and options, bit by bit;
- `tensors`: tensors written in one line, strategies of shapes, tensors and their values.
"""

from covp.laboratory.answers import answering, check_answers
from covp.laboratory.buffers import Buffer
from covp.laboratory.calling_convention import check_registers
from covp.laboratory.constant_time import TimeDifference, constant_time
from covp.laboratory.coverage import Coverage, CoverageData
from covp.laboratory.differential import Difference, Variants, differ
from covp.laboratory.interrupts import check_interrupts, interrupted
from covp.laboratory.kernel import Kernel
from covp.laboratory.placements import placements
from covp.laboratory.reproduction import print_from, reproduce
from covp.laboratory.scripted import ScriptedPeripheral
from covp.laboratory.worst_case import WorstCase, worst_case
from covp.testing import arrays, layers, problems, quantizations, tensors
from covp.testing.case import Case, Layer
from covp.testing.cases import (
    ConcatenationCase,
    ElementwiseCase,
    MatMulCase,
    OperatorCase,
    PoolCase,
    SoftmaxCase,
)
from covp.testing.convolution_case import ConvCase
from covp.testing.convolution_problems import (
    ConvolutionProblem,
    DepthwiseProblem,
    FullyConnectedProblem,
)
from covp.testing.elementwise_problems import AddProblem, MulProblem, PoolProblem
from covp.testing.overflow import Sum, near_overflow
from covp.testing.recurrent_problems import GruProblem, LstmProblem, SvdfProblem
from covp.testing.requantization import Requantization

__all__ = [
    "AddProblem",
    "Buffer",
    "Case",
    "ConcatenationCase",
    "ConvCase",
    "ConvolutionProblem",
    "Coverage",
    "CoverageData",
    "DepthwiseProblem",
    "Difference",
    "ElementwiseCase",
    "FullyConnectedProblem",
    "GruProblem",
    "Kernel",
    "Layer",
    "LstmProblem",
    "MatMulCase",
    "MulProblem",
    "OperatorCase",
    "PoolCase",
    "PoolProblem",
    "Requantization",
    "ScriptedPeripheral",
    "SoftmaxCase",
    "Sum",
    "SvdfProblem",
    "TimeDifference",
    "Variants",
    "WorstCase",
    "answering",
    "arrays",
    "check_answers",
    "check_interrupts",
    "check_registers",
    "constant_time",
    "differ",
    "interrupted",
    "layers",
    "near_overflow",
    "placements",
    "problems",
    "quantizations",
    "reproduce",
    "tensors",
    "worst_case",
]

print_from(__name__, __all__)
