"""Operators that keep a state: LSTM, SVDF, CIRCULAR_BUFFER."""

from __future__ import annotations

import math
from typing import Any

import tflite
from flatbuffers import flexbuffers

from covp.errors import ModelError
from covp.graph.graph import Op
from covp.graph.ops.circular_buffer import CircularBuffer
from covp.graph.ops.sequence_lstm import SequenceLstm
from covp.graph.ops.svdf import Svdf
from covp.graph.tflite.converters.common import activation_of, options_of, register


@register("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _sequence_lstm(op: Op, table: Any) -> SequenceLstm:
    options = options_of(tflite.UnidirectionalSequenceLSTMOptions, table)
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.TANH:
        raise ModelError("its activation is not tanh; convert the model with activation='tanh'")
    if options.ProjClip() > 0:
        raise ModelError("a projection is not supported; use a Keras LSTM layer")
    clip = float(options.CellClip())
    if not math.isfinite(clip):
        raise ModelError(f"its cell clip {clip:g} is not a number")
    return SequenceLstm(bool(options.TimeMajor()), max(clip, 0.0))


@register("SVDF")
def _svdf(op: Op, table: Any) -> Svdf:
    options = options_of(tflite.SVDFOptions, table)
    return Svdf(int(options.Rank()), activation_of(options.FusedActivationFunction()))


@register("CIRCULAR_BUFFER")
def _circular_buffer(op: Op, content: bytes) -> CircularBuffer:
    """Convert TFLM's custom CIRCULAR_BUFFER; cycles_max is the first value of its FlexBuffer.

    Without them TFLM takes the shapes of two networks of its own: circular_buffer_common.cc.
    """
    if content:
        cycles = int(flexbuffers.GetRoot(bytearray(content)).AsVector[0].AsInt)
    else:
        cycles = 1 if op.output.shape[1] in (5, 13, 25) else 2
    if cycles != 1:
        raise ModelError(
            f"it ends the inference {cycles - 1} of {cycles} times, which is not supported; use "
            "--streaming on the model without it"
        )
    return CircularBuffer(1)
