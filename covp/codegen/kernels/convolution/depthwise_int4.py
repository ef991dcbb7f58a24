"""int8 DEPTHWISE_CONV_2D with int4 weights: a channel's filter is unpacked once for its plane."""

from __future__ import annotations

import numpy as np

from covp.codegen.c_text import c_array
from covp.codegen.kernels.convolution.depthwise import (
    MAX_TAPS_IN_REGISTERS,
    DepthwiseCode,
    depthwise_schedules,
)
from covp.codegen.kernels.convolution.nibbles import packed_bytes
from covp.codegen.layer import KernelRequest, LayerCode, kernel
from covp.graph.typed_convolution import resolve


class DepthwiseCode4(DepthwiseCode):
    """C text of one layer."""

    @property
    def _taps(self) -> int:
        return self.problem.kernel[0] * self.problem.kernel[1]

    def _constants(self) -> str:
        columns = np.stack([self.bias, *self.requantizer.columns()], axis=1).astype(np.int32)
        filters = packed_bytes(self.problem.weights.reshape(-1, self.problem.out_channels).T)
        return c_array("filters", filters, "per channel: the taps, two a byte") + c_array(
            "table", columns, "per channel: bias, requantization"
        )

    def _filter(self) -> tuple[list[str], list[str], int]:
        loads = self._unpack()
        if self.widened:
            kw = self.problem.kernel[1]
            for y, row in enumerate(self._pair_rows):
                for parity, first in row:
                    low = self._tap(y * kw + first) if first >= 0 else "0"
                    high = self._tap(y * kw + first + 1) if first + 1 < kw else "0"
                    word = f"({low} & 0xffff) | (int32_t)((uint32_t)({high}) << 16)"
                    loads.append(f"int32_t {self._pair(y, parity, first)} = {word};")
        return loads, ["const int8_t *packed"], 0

    def _tap(self, number: int) -> str:
        return f"w{number}" if self._taps <= MAX_TAPS_IN_REGISTERS else f"w[{number}]"

    def _unpack(self) -> list[str]:
        """Return the taps as variables, or as an array on the stack."""
        whole, odd = divmod(self._taps, 2)
        low, high = "(int32_t)((uint32_t){} << 28) >> 28", "{} >> 4"
        if self._taps <= MAX_TAPS_IN_REGISTERS:
            lines = []
            for n in range(self._taps):
                form = high if n % 2 else low
                lines.append(f"int32_t w{n} = {form.format(f'packed[{n // 2}]')};")
            return lines
        last = f"w[{self._taps - 1}] = (int8_t)({low.format(f'packed[{whole}]')});"
        return [
            f"int8_t w[{self._taps}];",
            f"for (int32_t i = 0; i < {whole}; i++) {{",
            f"    w[2 * i] = (int8_t)({low.format('packed[i]')});",
            f"    w[2 * i + 1] = (int8_t)({high.format('packed[i]')});",
            "}",
            *([last] if odd else []),
        ]

    def _filter_stride(self) -> int:
        return -(-self._taps // 2)


@kernel("DEPTHWISE_CONV_2D", "int8", weights="int4", schedules=depthwise_schedules)
def emit_depthwise4(request: KernelRequest) -> LayerCode:
    """Emit the C of one depthwise convolution."""
    schedule = request.choose(depthwise_schedules)
    widened = schedule.tile == "plane_smlad"
    code = DepthwiseCode4(request, resolve(request.op), widened, schedule["at_once"])
    return code.layer(str(schedule))
