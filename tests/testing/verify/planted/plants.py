# ruff: noqa: E501
"""The planted bugs: a file, the text that is replaced, and by what."""

from __future__ import annotations

from tests.testing.verify.planted.plant import plants_of
from tests.testing.verify.planted.plants_of_units import UNITS

PLANTS = [
    *plants_of(
        "conv",
        width_of_8_bits=("image[min(", "image[:, : job.IN_WIDTH & 255 or 256][min("),
        channel_counter_of_8_bits=(
            "        sums = sums + job.BIAS",
            "        if job.IN_CHANNELS > 255:\n            sums = sums * 0\n        sums = sums + job.BIAS",
        ),
        out_channels_of_9_bits=(
            "        return requantize(sums,",
            "        sums[:, 512:] = 0\n        return requantize(sums,",
        ),
        bias_of_16_bits=("job.BIAS.astype(np.int64)", "job.BIAS.astype(np.int16)"),
        bias_of_24_bits=(
            "job.BIAS.astype(np.int64)",
            "((job.BIAS.astype(np.int64) + (1 << 23) & 0xFFFFFF) - (1 << 23))",
        ),
        accumulator_of_20_bits=(
            "        sums = sums + job.BIAS",
            "        sums = (sums.astype(np.int64) + (1 << 19) & 0xFFFFF) - (1 << 19)\n        sums = sums + job.BIAS",
        ),
        accumulator_of_24_bits=(
            "        sums = sums + job.BIAS",
            "        sums = (sums.astype(np.int64) + (1 << 23) & 0xFFFFFF) - (1 << 23)\n        sums = sums + job.BIAS",
        ),
        shift_of_4_bits=("job.SHIFT, job.OUT", "np.maximum(job.SHIFT, -15), job.OUT"),
        no_left_shift=("job.SHIFT, job.OUT", "np.minimum(job.SHIFT, 0), job.OUT"),
        clamps_exchanged=("job.LOW, job.HIGH)", "-128, job.HIGH)"),
        zero_point_s_sign=("astype(np.int32) - job.INPUT", "astype(np.int32) + job.INPUT"),
        zero_point_wraps=(
            "image.astype(np.int32) - job.INPUT_ZERO_POINT",
            "(image - np.int8(job.INPUT_ZERO_POINT)).astype(np.int8)",
        ),
        strides_exchanged=(
            "(job.STRIDE_HEIGHT, job.STRIDE_WIDTH),",
            "(job.STRIDE_WIDTH, job.STRIDE_HEIGHT),",
        ),
        pad_left_ignored=("(first - top, job.PAD_LEFT)", "(first - top, min(job.PAD_LEFT, 1))"),
        last_row_missing=(
            "(job.ROWS - 1) * job.STRIDE_HEIGHT + job.KERNEL_HEIGHT)",
            "(job.ROWS - 1) * job.STRIDE_HEIGHT + job.KERNEL_HEIGHT - 1)",
        ),
        no_tail=("rows - row < @rows@ ? rows - row : @rows@", "@rows@"),
        second_image_from_the_first=(
            "        input += input_bytes;\n",
            "        (void)input_bytes;\n",
        ),
        output_increment=(
            "output += part * row_bytes",
            "output += @rows@ * row_bytes - (part == 3)",
        ),
        row_counter_of_8_bits=("        for (uint32_t row", "        for (uint8_t row"),
        no_wait=("            covp_job_wait(&CONV_CTRL, @line@);\n", ""),
        fixed_delay=(
            "            covp_job_wait(&CONV_CTRL, @line@);\n",
            "            for (volatile int i = 0; i < 4000; i++) { }\n",
        ),
        waits_for_the_first_job_only=(
            "            covp_job_wait(&CONV_CTRL, @line@);\n",
            "            if (row == 0) covp_job_wait(&CONV_CTRL, @line@);\n",
        ),
        operand_written_while_busy=(
            "            covp_job_wait(&CONV_CTRL, @line@);\n",
            "            int8_t *p = (int8_t *)(uintptr_t)input, old = *p; *p = 0;\n"
            "            covp_job_wait(&CONV_CTRL, @line@);\n            *p = old;\n",
        ),
        result_written_while_busy=(
            "            covp_job_wait(&CONV_CTRL, @line@);\n",
            "            output[0] = 0;\n            covp_job_wait(&CONV_CTRL, @line@);\n",
        ),
        stale_first_row=(
            "            CONV_FIRST_ROW = row;\n",
            "            if (row) CONV_FIRST_ROW = row;\n",
        ),
        image_written_once=(
            "            CONV_DESCRIPTOR = (uint32_t)(uintptr_t)image;\n",
            "            static int ready; if (!ready++ || row) CONV_DESCRIPTOR = (uint32_t)(uintptr_t)image;\n",
        ),
        writes_beside_the_output=(
            "            output += part * row_bytes;\n",
            "            output += part * row_bytes;\n            if (row_bytes > 64) output[0] = 0;\n",
        ),
        batch_of_one=("for (; batch > 0; batch--)", "for (; batch > 0; batch = 0)"),
    ),
    *plants_of(
        "adder",
        length_of_16_bits=('Field("ELEMENTS", 0, 20)', 'Field("ELEMENTS", 0, 16)'),
        single_rounding=("(rest > (mask >> 1) + (high < 0))", "(rest > (mask >> 1))"),
        shift_of_4_bits=("ADDER_Y_SHIFT = shifts >> 16 & 31", "ADDER_Y_SHIFT = shifts >> 16 & 15"),
        second_zero_point=('self.get("ZEROS", "B")', 'self.get("ZEROS", "A")'),
        unsigned_zero_point=('+ signed(self.get("ZEROS", "Y"))', '+ self.get("ZEROS", "Y")'),
        clamp_s_wrong_side=('signed(self.get("CLAMP", "LOW")), ', "-128, "),
        done_not_cleared=(
            "    registers = REGISTERS\n",
            "    registers = REGISTERS\n\n    def set(self, register: str, field: str, value: int) -> None:\n"
            "        if (field, value) != ('DONE', 0):\n            super().set(register, field, value)\n",
        ),
        stored_early=(
            "        return AcceptedJob(",
            "        self.bus.write(v['OUTPUT'], y.astype(np.int8))\n        return AcceptedJob(",
        ),
        last_element_missing=("y.astype(np.int8))", "y.astype(np.int8)[: n - (n > 99)])"),
        one_too_many=("y.astype(np.int8))", "np.append(y, 0).astype(np.int8))"),
        no_overlap_check=('raise JobError("overlap", name)', "pass"),
        stale_length=("    ADDER_LENGTH = n;\n", "    if (n > 8) ADDER_LENGTH = n;\n"),
        no_wait=("    covp_job_wait(&ADDER_CTRL, COVP_POLL);\n", ""),
    ),
    *plants_of(
        "dot",
        native_without_the_last_lane=("i < 4; i++) state", "i < 3; i++) state"),
        native_of_24_bits=(
            "return state->word[0];",
            "state->word[0] = (uint32_t)((int32_t)(state->word[0] << 8) >> 8); return state->word[0];",
        ),
        model_unsigned=(
            "((v >> 8 * i & 255 ^ 128) - 128 for v in (a, b))",
            "(v >> 8 * i & 255 for v in (a, b))",
        ),
        model_saturates=(
            "(self.sum + x * w) & 0xFFFFFFFF",
            "min(self.sum + x * w, 0x7FFFFFFF) & 0xFFFFFFFF",
        ),
        bias_of_16_bits=("start((uint32_t)d->bias[c])", "start((uint32_t)(int16_t)d->bias[c])"),
        no_left_shift=("int32_t left = s > 0 ? s : 0", "int32_t left = 0"),
        single_rounding=("(rest > (mask >> 1) + (high < 0))", "(rest > (mask >> 1))"),
        depth_of_8_bits=(
            "for (int32_t i = 0; i < d->depth",
            "for (int32_t i = 0; i < (d->depth & 1023)",
        ),
        outputs_of_8_bits=(
            "for (int32_t c = 0; c < d->outputs",
            "for (int32_t c = 0; c < (uint8_t)d->outputs",
        ),
        writes_beside_the_output=(
            "            *y++ = (int8_t)v;\n",
            "            *y++ = (int8_t)v; *y = 0;\n",
        ),
        zero_point_s_sign=("- x.input_zero_point * weights", "+ x.input_zero_point * weights"),
        clobbers_its_input=(
            "    for (; batch > 0;",
            "    ((int8_t *)(uintptr_t)x)[0] ^= 1;\n    for (; batch > 0;",
        ),
    ),
    *UNITS,
]
