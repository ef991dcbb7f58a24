"""float32 RNN, GRU and LSTM: a loop over time around two products of a matrix with a vector.

The sums of all gates of a step go to scratch, then the state is replaced element by element. It
lives in Y_h (and Y_c) where the network wants them, else in scratch too. Weights may be constant or
come at run time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covp.codegen.c_text import c_array, indent
from covp.codegen.kernels.loop_nest import dense_strides
from covp.codegen.kernels.operands import Operands
from covp.codegen.kernels.recurrent.recurrent_cell import cell_functions, sums_of
from covp.codegen.layer import Argument, KernelRequest, LayerCode, Scratch, kernel
from covp.graph.graph import Tensor
from covp.graph.ops.recurrent import (
    BIAS,
    INITIAL_H,
    LENGTHS,
    PEEPHOLES,
    Recurrent,
    extents,
    output_shapes,
)

_NAMES = ("x", "weights", "recurrent", "b", "lengths", "initial_h", "initial_c", "peepholes")


@kernel("RNN", "float32")
@kernel("GRU", "float32")
@kernel("LSTM", "float32")
def emit_recurrent(request: KernelRequest) -> LayerCode:
    """Emit one sequence at a time; Y_h may take the memory of initial_h."""
    return _Code(request).layer()


@dataclass(frozen=True)
class _Code:
    """C text of one layer."""

    request: KernelRequest

    @property
    def _a(self) -> Recurrent:
        attributes: Recurrent = self.request.op.attributes
        return attributes

    def _tensor(self, position: int) -> Tensor | None:
        inputs = self.request.op.inputs
        return inputs[position] if position < len(inputs) else None

    @property
    def _is_lstm(self) -> bool:
        return self.request.op.kind == "LSTM"

    @property
    def _sums(self) -> int:
        """Sums of a step of one direction."""
        return sums_of(self.request.op) * self._a.hidden

    def layer(self) -> LayerCode:
        """Return the whole layer."""
        op = self.request.op
        inputs = {
            name: tensor
            for position, name in enumerate(_NAMES)
            if (tensor := self._tensor(position)) is not None
        }
        arguments: dict[str, Argument] = {n: t for n, t in inputs.items() if t.data is None}
        outputs = dict(zip((name.lower() for name in self._a.outputs), op.outputs, strict=True))
        scratch, declarations = self._scratch(outputs)
        constants = [
            c_array(name, tensor.data)
            for name, tensor in inputs.items()
            if tensor.data is not None and name != "b"
        ]
        if self._start_is_constant:
            constants.append(c_array("biases", self._start(), "the biases added up"))
        operands = Operands({**arguments, **outputs, "scratch": scratch}, "\n".join(constants))
        in_place = inputs["initial_h"] if "initial_h" in arguments else None
        return operands.layer(
            self.request,
            [*declarations, *self._directions(outputs)],
            cell_functions(self.request),
            ["#include <math.h>"],
            [in_place] if in_place is not None and self._a.outputs == ("Y_h",) else [],
            schedule="4 rows at once",
        )

    def _start(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """Return the initial values of each direction's sums."""
        bias, hidden = self._tensor(BIAS), self._a.hidden
        directions = len(self._a.backward)
        if bias is None or bias.data is None:
            return np.zeros((directions, self._sums), np.float32)
        of_w, of_r = np.split(bias.data, 2, axis=1)
        if self._separate:
            of_h = of_r[:, 2 * hidden :]
            joined = of_w + np.pad(of_r[:, : 2 * hidden], ((0, 0), (0, hidden)))
            return np.concatenate([joined, of_h], axis=1)
        return np.asarray(of_w + of_r, np.float32)

    @property
    def _separate(self) -> bool:
        """True if the sums over the state's last gate are kept apart."""
        return self.request.op.kind == "GRU" and self._a.linear_before_reset

    def _scratch(self, outputs: dict[str, Tensor]) -> tuple[Scratch, list[str]]:
        """Return the scratch buffer and declarations of the pointers into it."""
        hidden, size = self._a.hidden, self._sums
        lines = ["float *gates = scratch;"]
        parts = []
        if not self._start_is_constant:
            parts.append(("start", self._sums))
        if "y_h" not in outputs:
            parts.append(("h", hidden))
        if self._is_lstm and "y_c" not in outputs:
            parts.append(("c", hidden))
        for name, extent in parts:
            lines.append(f"float *{name} = gates + {size};")
            size += extent
        return Scratch(4 * size), lines

    @property
    def _start_is_constant(self) -> bool:
        bias = self._tensor(BIAS)
        return bias is None or bias.data is not None

    def _directions(self, outputs: dict[str, Tensor]) -> list[str]:
        """Return the loops over directions and sequences."""
        a, op = self._a, self.request.op
        _, batch, _ = extents(op)
        inner = self._sequence(outputs)
        lines = [
            f"for (int32_t d = 0; d < {len(a.backward)}; d++) {{",
            indent(self._add_biases()),
            f"    for (int32_t s = 0; s < {batch}; s++) {{",
            indent(inner, 2),
            "    }",
            "}",
        ]
        return [line for line in lines if line]

    def _add_biases(self) -> list[str]:
        """Return the start of a direction's sums from a B that comes at run time."""
        if self._start_is_constant:
            return []
        whole, hidden = self.request.op.input(1).shape[1], self._a.hidden
        joined = whole - hidden if self._separate else whole
        lines = [
            f"const float *of_w = b + d * {2 * whole}, *of_r = of_w + {whole};",
            f"for (int32_t i = 0; i < {joined}; i++)",
            "    start[i] = of_w[i] + of_r[i];",
        ]
        if self._separate:
            lines += [
                f"for (int32_t i = {joined}; i < {whole}; i++) {{",
                "    start[i] = of_w[i];",
                f"    start[i + {hidden}] = of_r[i];",
                "}",
            ]
        return lines

    def _sequence(self, outputs: dict[str, Tensor]) -> list[str]:
        """Return the loop over time of one sequence in one direction."""
        a, hidden = self._a, self._a.hidden
        time, batch, size = extents(self.request.op)
        states = ("h", "c") if self._is_lstm else ("h",)
        initial = {name: self._tensor(INITIAL_H + i) for i, name in enumerate(states)}
        lines = []
        if any(f"y_{name}" in outputs or initial[name] is not None for name in states):
            row = f"s * {len(a.backward)} + d" if a.layout else f"d * {batch} + s"
            lines.append(f"int32_t state = ({row}) * {hidden};")
        for name in states:
            if f"y_{name}" in outputs:
                lines.append(f"float *{name} = y_{name} + state;")
            value = "0.0f" if initial[name] is None else f"initial_{name}[state + j]"
            lines += [f"for (int32_t j = 0; j < {hidden}; j++)", f"    {name}[j] = {value};"]
        lines += self._length(time, outputs)
        x = dense_strides((batch, time, size) if a.layout else (time, batch, size))
        x_time, x_sequence = (x[1], x[0]) if a.layout else (x[0], x[1])
        lines.append(f"const float *from = x + s * {x_sequence};")
        if "y" in outputs:
            y = dense_strides(output_shapes(self.request.op)["Y"])
            places = (y[1], y[2], y[0]) if a.layout else (y[0], y[1], y[2])
            lines.append(f"float *to = y + d * {places[1]} + s * {places[2]};")
        return [*lines, *self._time(outputs, x_time)]

    def _length(self, time: int, outputs: dict[str, Tensor]) -> list[str]:
        """Return the number of steps, and zeros for what a shorter sequence leaves out."""
        if self._tensor(LENGTHS) is None:
            return [f"const int32_t length = {time};"]
        lines = [
            "int32_t length = lengths[s] < 0 ? 0 : lengths[s];",
            f"length = length > {time} ? {time} : length;",
        ]
        clear = [f"{n}[j] = 0.0f;" for n in (("h", "c") if self._is_lstm else ("h",))]
        lines += [
            f"for (int32_t j = 0; length == 0 && j < {self._a.hidden}; j++) {{",
            indent(clear),
            "}",
        ]
        return lines

    def _time(self, outputs: dict[str, Tensor], x_time: int) -> list[str]:
        """Return the steps in the order of the direction."""
        a, op, hidden = self._a, self.request.op, self._a.hidden
        size, rows = op.input(0).shape[2], op.input(1).shape[1]
        at = {"forward": "t", "reverse": "length - 1 - t"}.get(
            a.direction, "d ? length - 1 - t : t"
        )
        weights = [f"weights + d * {rows * size}", f"recurrent + d * {rows * hidden}"]
        weights.append(f"biases + d * {self._sums}" if self._start_is_constant else "start")
        state = ["h", *(["c"] if self._is_lstm else [])]
        if self._tensor(PEEPHOLES) is not None:
            state.append(f"peepholes + d * {3 * hidden}")
        arguments = ", ".join([f"from + at * {x_time}", *weights, "gates", *state])
        step = [f"int32_t at = {at};"]
        if len(set(a.activations)) > 1:
            step += ["if (d)", f"    step1({arguments});", "else", f"    step0({arguments});"]
        else:
            step.append(f"step0({arguments});")
        if "y" not in outputs:
            return ["for (int32_t t = 0; t < length; t++) {", indent(step), "}"]
        y = dense_strides(output_shapes(op)["Y"])[1 if a.layout else 0]
        step += [f"for (int32_t j = 0; j < {hidden}; j++)", f"    to[at * {y} + j] = h[j];"]
        lines = ["for (int32_t t = 0; t < length; t++) {", indent(step), "}"]
        if self._tensor(LENGTHS) is not None:
            time = extents(op)[0]
            lines += [
                f"for (int32_t t = length; t < {time}; t++)",
                f"    for (int32_t j = 0; j < {hidden}; j++)",
                f"        to[t * {y} + j] = 0.0f;",
            ]
        return lines
