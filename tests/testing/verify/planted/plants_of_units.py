# ruff: noqa: E501
"""Planted bugs of a fused unit, one with a palette, one with a scratchpad, custom instructions."""

from __future__ import annotations

from tests.testing.verify.planted.plant import Plant, plants_of

_LOADED = "        image = job.INPUT.reshape("
_RETURN = "        return requantize("

UNITS: list[Plant] = [
    *plants_of(
        "fused",
        # the pool behind the convolution
        stride_beyond_the_window=(
            "top = row * job.POOL_STEP_HEIGHT - job.POOL_TOP",
            "top = row * min(job.POOL_STEP_HEIGHT, job.POOL_HEIGHT) - job.POOL_TOP",
        ),
        stride_of_two_bits=("* job.POOL_STEP_WIDTH", "* (job.POOL_STEP_WIDTH & 3 or 4)"),
        stride_five_and_more=("* job.POOL_STEP_HEIGHT", "* min(job.POOL_STEP_HEIGHT, 4)"),
        average_of_four_by_four=(
            "value = np.sign(value) * (np.abs(value) // count)",
            "value = np.sign(value) * (np.abs(value) // count) if count != 16 else total >> 4",
        ),
        average_rounds_down=("np.where(total > 0, total + half, total - half)", "total"),
        negative_ties=("total - half)", "total - half + 1)"),
        one_less_for_negative_windows_of_16=(
            "value = np.sign(value) * (np.abs(value) // count)",
            "value = np.sign(value) * (np.abs(value) // count) - ((count == 16) & (total < 0))",
        ),
        negative_ties_of_seven_by_two=(
            "value = np.sign(value) * (np.abs(value) // count)",
            "value = np.sign(value) * (np.abs(value) // count) + ((count == 14) & (-total % 14 == 7) & (total < 0))",
        ),
        single_pixel=(
            "        out = np.empty(",
            "        if inner.size == 1:\n            inner = inner ^ 1\n        out = np.empty(",
        ),
        average_counts_padding=(
            "count = window.shape[0] * window.shape[1]",
            "count = job.POOL_HEIGHT * job.POOL_WIDTH",
        ),
        max_begins_with_zero=(
            "value = window.max(axis=(0, 1))",
            "value = np.maximum(window.max(axis=(0, 1)), -127)",
        ),
        max_pads_with_the_zero_point=(
            "value = window.max(axis=(0, 1))",
            "value = window.max(axis=(0, 1))\n                    if left < 0:\n                        value = np.maximum(value, job.OUTPUT_ZERO_POINT)",
        ),
        pool_clamp_missing=("np.clip(value, job.POOL_LOW, job.POOL_HIGH)", "value"),
        conv_clamp_missing=(
            "job.OUTPUT_ZERO_POINT, job.LOW, job.HIGH",
            "job.OUTPUT_ZERO_POINT, -128, 127",
        ),
        pool_window_exchanged=(
            "max(top, 0) : top + job.POOL_HEIGHT",
            "max(top, 0) : top + job.POOL_WIDTH",
        ),
        pool_steps_exchanged=("* job.POOL_STEP_WIDTH - ", "* job.POOL_STEP_HEIGHT - "),
        pool_left_ignored=("* job.POOL_STEP_WIDTH - job.POOL_LEFT", "* job.POOL_STEP_WIDTH"),
        pool_accumulator_of_12_bits=(
            "total = window.sum(axis=(0, 1))",
            "total = (window.sum(axis=(0, 1)) + 2048 & 4095) - 2048",
        ),
        pool_window_of_1=(
            "        out = np.empty(",
            "        if job.POOL_HEIGHT * job.POOL_WIDTH == 1:\n            inner = np.roll(inner, 1)\n        out = np.empty(",
        ),
        single_column=(
            "        out = np.empty(",
            "        if job.POOLED_WIDTH == 1 and job.POOLED_HEIGHT > 2:\n            inner = inner[::-1]\n        out = np.empty(",
        ),
        # the convolution
        dilation_exchanged=(
            "(job.DILATION_HEIGHT, job.DILATION_WIDTH),",
            "(job.DILATION_WIDTH, job.DILATION_HEIGHT),",
        ),
        padding_is_the_zero_point_s_negative=(
            "            (job.DILATION_HEIGHT, job.DILATION_WIDTH),\n        )",
            "            (job.DILATION_HEIGHT, job.DILATION_WIDTH),\n            fill=job.INPUT_ZERO_POINT * (job.PAD_LEFT > 1),\n        )",
        ),
        # addresses and stores
        result_address_of_29_bits=(
            "    FUSED_OUTPUT = (uint32_t)(uintptr_t)output;",
            "    FUSED_OUTPUT = 0x80000000u | ((uint32_t)(uintptr_t)output & 0x1fffffffu);",
        ),
        input_address_of_29_bits=(
            "    FUSED_INPUT = (uint32_t)(uintptr_t)input;",
            "    FUSED_INPUT = 0x80000000u | ((uint32_t)(uintptr_t)input & 0x1fffffffu);",
        ),
        old_bytes_back=(
            "        return self.pool(job, inner)",
            "        return self.pool(job, inner)\n\n    def make_peripheral(self) -> Any:\n        unit = super().make_peripheral()\n        inner = unit._over\n\n        def over() -> None:\n            end = unit.latest.span[1]\n            unit.bus.write(end, unit.bus.read(end, 4))\n            inner()\n\n        unit._over = over\n        return unit",
        ),
        word_at_0x80000000=(
            "        return self.pool(job, inner)",
            "        return self.pool(job, inner)\n\n    def make_peripheral(self) -> Any:\n        unit = super().make_peripheral()\n        inner = unit._over\n\n        def over() -> None:\n            unit.bus.write(0x80000000, b'done')\n            inner()\n\n        unit._over = over\n        return unit",
        ),
        # two halves
        end_does_not_wait=("    covp_job_end(&FUSED_CTRL, @line@);", "    covp_fence();"),
        register_after_the_start=(
            "    program(image, input, output);\n    covp_job_begin(&FUSED_CTRL, @line@);",
            "    program(image, input, output);\n    covp_job_begin(&FUSED_CTRL, @line@);\n    FUSED_INPUT = 0;",
        ),
        begin_forgets_all_but_the_last=(
            "        covp_job_wait(&FUSED_CTRL, @line@);\n    }\n    program(image, input, output);\n    covp_job_begin",
            "        covp_job_wait(&FUSED_CTRL, @line@);\n        input -= input_bytes;\n    }\n    program(image, input, output);\n    covp_job_begin",
        ),
        end_waits_a_while=(
            "    covp_job_end(&FUSED_CTRL, @line@);",
            "    for (volatile int i = 0; i < 3000; i++) { }",
        ),
        # one life
        bug_at_the_100th_call=(
            "static void program(const uintptr_t *image, const int8_t *input, int8_t *output)\n{",
            "static uint32_t calls;\nstatic void program(const uintptr_t *image, const int8_t *input, int8_t *output)\n{\n    if (++calls == 100) input++;",
        ),
        counter_of_8_bits=(
            "static void program(const uintptr_t *image, const int8_t *input, int8_t *output)\n{",
            "static uint8_t calls;\nstatic void program(const uintptr_t *image, const int8_t *input, int8_t *output)\n{\n    if (!++calls) output++;",
        ),
        image_written_where_it_changes=(
            "    FUSED_DESCRIPTOR = (uint32_t)(uintptr_t)image;",
            "    static const uintptr_t *last;\n    if (image != last) FUSED_DESCRIPTOR = (uint32_t)(uintptr_t)image;\n    last = image;",
        ),
        hang_of_one_size=(
            "        covp_job_wait(&FUSED_CTRL, @line@);\n    }\n}\n",
            "        covp_job_wait(&FUSED_CTRL, @line@);\n        while (output_bytes == 18) FUSED_INTERRUPT;\n    }\n}\n",
        ),
        sleeps_once=(
            "        covp_job_wait(&FUSED_CTRL, @line@);\n    }\n}\n",
            "        covp_sleep();\n        if (@line@ == COVP_POLL || FUSED_INTERRUPT & 2) covp_job_wait(&FUSED_CTRL, @line@);\n    }\n}\n",
        ),
    ),
    *plants_of(
        "palette",
        sixteenth_colour=("job.COLOURS[indices[", "np.append(job.COLOURS[:15], 0)[indices["),
        colours_without_a_sign=("job.COLOURS[indices", "job.COLOURS.view(np.uint8)[indices"),
        halves_exchanged=(
            "np.stack([packed & 15, packed >> 4]",
            "np.stack([packed >> 4, packed & 15]",
        ),
        rows_not_begun_anew=(
            "        if indices.shape[1] % 2:\n            indices = np.pad(indices, ((0, 0), (0, 1)))\n",
            "        odd = indices.size % 2\n        indices = np.pad(indices.ravel(), (0, odd)).reshape(1, -1)\n",
        ),
        lowest_colour_is_minus_127=(
            "weights = job.COLOURS",
            "weights = np.maximum(job.COLOURS, -127)",
        ),
        single_colour=(
            "weights = job.COLOURS[",
            "weights = (job.COLOURS * (indices.max() > 0))[",
        ),
        three_bits=("packed & 15, packed >> 4]", "packed & 7, packed >> 4]"),
        palette_kept_between_layers=(
            "        weights = job.COLOURS[",
            "        if (first := job.COLOURS[0]) != getattr(self, 'kept', (None,))[0]:\n            self.kept = job.COLOURS\n        weights = self.kept[",
        ),
        depth_of_8_bits=(
            "indices[:, :depth]]\n",
            "indices[:, :depth]]\n        weights[:, 256:] = 0\n",
        ),
        zero_in_the_palette_skipped=(
            "        sums = exact",
            "        seen = np.where(seen == -job.INPUT_ZERO_POINT, 0, seen) if job.COLOURS[0] == 0 else seen\n        sums = exact",
        ),
        left_and_top_exchanged=("(job.PAD_TOP, job.PAD_LEFT)", "(job.PAD_LEFT, job.PAD_TOP)"),
        bias_saturates=(
            "job.BIAS.astype(np.int64)",
            "np.clip(job.BIAS.astype(np.int64), -(1 << 22), (1 << 22) - 1)",
        ),
        last_channel_of_odd_ones=(
            _RETURN,
            "        if job.OUT_CHANNELS % 4 == 3:\n            sums[:, -1] = sums[:, 0]\n"
            + _RETURN,
        ),
    ),
    *plants_of(
        "scratchpad",
        no_wait=(
            "    while (PAD_STATUS & 1u) { }\n",
            "    for (volatile int i = 0; i < 30; i++) { }\n",
        ),
        last_tile_is_whole=(
            "outputs - c < 16 ? outputs - c : 16",
            "outputs - c < 15 ? outputs - c : 16",
        ),
        depth_tail_lost=("i < depth; i += 32", "i + 31 < depth || i == 0; i += 32"),
        depth_tail_of_one=("i < depth; i += 32", "i + 1 < depth || i == 0; i += 32"),
        tail_is_stale=(
            "load(x + i, 0, 1, columns, 0);",
            "load(x + i, 0, 1, columns & ~1u ? columns & ~1u : 1, 0);",
        ),
        sums_not_cleared=(
            "            command(BIAS);\n",
            "            if (c == 0) command(BIAS);\n",
        ),
        bias_of_the_first_tile=("(bias + c)", "(bias + (c & 31))"),
        weights_kept_between_images=(
            "                load(weights + c * depth + i, 1024, rows, columns, depth);\n",
            "                static const int8_t *held;\n                if (held != weights + c * depth + i) load(held = weights + c * depth + i, 1024, rows, columns, depth);\n",
        ),
        weights_kept_by_16_bits=(
            "                load(weights + c * depth + i, 1024, rows, columns, depth);\n",
            "                static uint32_t held; uint32_t now = (uint16_t)(uintptr_t)(weights + c * depth + i) | (rows << 16) | columns << 24;\n                if (held != now) load(weights + c * depth + i, 1024, rows, columns, depth);\n                held = now;\n",
        ),
        second_image=(
            "batch--, x += depth, sums += outputs",
            "batch--, x += depth + (outputs > 64), sums += outputs",
        ),
        pitch_of_10_bits=("    PAD_PITCH = pitch;", "    PAD_PITCH = pitch & 1023u;"),
        bank_wraps=("place + r * columns", "(place + r * columns) % 1500"),
        sums_of_24_bits=(
            "self.sums[:rows] += w @ x",
            "self.sums[:rows] = (self.sums[:rows] + w @ x + (1 << 23) & 0xFFFFFF) - (1 << 23)",
        ),
        stores_sixteen=("self.sums[:rows].astype(np.int32))", "self.sums.astype(np.int32))"),
        stores_old_bytes_beside=(
            "            self.bus.write(address, self.sums[:rows].astype(np.int32))\n",
            "            self.bus.write(address, self.sums[:rows].astype(np.int32))\n            self.bus.write(address + 4 * rows, self.bus.read(address + 4 * rows, 4))\n",
        ),
        stores_a_word_at_the_start=(
            "            self.bus.write(address, self.sums[:rows].astype(np.int32))\n",
            "            self.bus.write(address, self.sums[:rows].astype(np.int32))\n            self.bus.write(0x80000000, b'done')\n",
        ),
        loads_whole_words=(
            "self.bus.read(address + r * pitch, columns)",
            "self.bus.read(address + r * pitch, -(-columns // 16) * 16)[:columns]",
        ),
        load_of_address_28_bits=(
            "    PAD_ADDRESS = (uint32_t)(uintptr_t)from;",
            "    PAD_ADDRESS = (uint32_t)(uintptr_t)from & 0x8fffffffu;",
        ),
        store_of_address_28_bits=(
            "            PAD_ADDRESS = (uint32_t)(uintptr_t)(sums + c);",
            "            PAD_ADDRESS = (uint32_t)(uintptr_t)(sums + c) & 0x8fffffffu;",
        ),
        bug_at_the_200th_call=(
            "    for (; batch > 0; batch--, x",
            "    static uint32_t calls;\n    if (++calls >= 200) bias = sums;\n    for (; batch > 0; batch--, x",
        ),
    ),
    *plants_of(
        "dot",
        second_row=("batch--, x += d->depth)", "batch--, x += d->depth & 127)"),
        clamp_before_the_zero_point=(
            "d->shift[c]) + d->zero;\n            v = v < d->low ? d->low : v;",
            "d->shift[c]);\n            v = v < d->low ? d->low : v;\n            v += d->zero;",
        ),
        high_is_127=("v = v > d->high ? d->high : v;", "v = v > 127 ? 127 : v;"),
        sum_kept_for_depth_4=(
            "            start((uint32_t)d->bias[c]);\n",
            "            if (d->depth > 4 || c == 0) start((uint32_t)d->bias[c]);\n",
        ),
        weights_of_256_outputs=("d->weights + c * d->depth", "d->weights + (uint8_t)c * d->depth"),
        shift_beyond_24=("right = s > 0 ? 0 : -s;", "right = s > 0 ? 0 : -s & 15;"),
        counter_of_8_bits=(
            "    for (; batch > 0;",
            "    static uint8_t calls;\n    if (!++calls) x++;\n    for (; batch > 0;",
        ),
        reads_beyond=(
            "            int32_t v = scaled(",
            "            sum += (uint32_t)(((const volatile int8_t *)x)[d->depth] & 0);\n            int32_t v = scaled(",
        ),
        lane_of_minus_128=(
            "x[i] * w[i])",
            "(x[i] == -128 && w[i] == -128 ? 16383 : x[i] * w[i]))",
        ),
    ),
]
