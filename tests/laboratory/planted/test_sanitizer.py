"""Memory errors: every planted one is found by the sanitizer, with its kind and line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from covp.testing import Buffer
from tests.laboratory.planted.bench import Call, Draw, check, on_platforms
from tests.laboratory.planted.sections import sections


def ragged(d: Draw, by: int = 4) -> int:
    """A length that is no multiple of ``by``."""
    return by * d.integer(0, 3) + d.integer(1, by - 1)


def scratch(dtype: str, n: int) -> Buffer:
    """Memory that nothing has written yet."""
    return Buffer(np.full(n, 0x5A, dtype), scratch=True)


def zeros(dtype: str, n: int) -> Any:
    return np.zeros(n, dtype)


def conv1d(k, d):
    taps = d.integer(1, 4)
    n = taps + d.integer(1, 6)
    k("conv1d_s8")(d.array("int8", n), d.array("int8", taps), n, taps, zeros("int32", n))


def pool(k, d):
    n, window = ragged(d, 3), 3
    k("max_pool")(d.array("int8", n), n, window, zeros("int8", -(-n // window)))


def fir(k, d):
    n, taps = d.integer(1, 9), d.integer(2, 4)
    x, weights = d.array("int16", n, -99, 99), d.array("int16", taps, -99, 99)
    k("fir_s16")(x, weights, n, taps, zeros("int32", n))


def bias(k, d):
    pixels, channels = d.integer(2, 5), d.integer(1, 4)
    acc = d.array("int32", pixels * channels, -99, 99)
    k("add_bias")(acc, d.array("int32", channels, -99, 99), pixels, channels)


def columns(k, d):
    rows, columns = d.integer(4, 6), d.integer(1, 3)
    k("column_sum")(d.array("int32", rows * columns), rows, columns, d.integer(0, columns - 1))


def bilinear(k, d):
    n, scale = d.integer(1, 6), d.integer(2, 4)
    k("bilinear")(d.array("uint8", n), n, scale, zeros("uint8", n * scale))


def depthwise(k, d):
    channels, times = d.integer(1, 4), d.integer(2, 3)
    x, multipliers = d.array("int8", channels), d.array("int32", channels, -99, 99)
    k("depthwise")(x, multipliers, channels, times, zeros("int32", channels * times))


def conv2d(k, d):
    height, width = d.integer(1, 4), d.integer(1, 4)
    x, weights = d.array("int8", height * width), d.array("int8", 3)
    k("conv2d_same")(x, weights, height, width, zeros("int32", height * width))


def swapped(k, d):
    n = d.integer(1, 5)
    k("swap_arguments")(zeros("int32", n), n, zeros("int32", n + 2), n + 2)


def sized(name: str, dtype: str, low: int = 1, *outputs: str) -> Call:
    """A call of name(input, outputs ..., n)."""

    def call(k: Any, d: Draw) -> None:
        n = d.integer(low, low + 9)
        k(name)(d.array(dtype, n, -99, 99), *(zeros(output, n) for output in outputs), n)

    return call


READS: dict[str, Call] = {
    "dot_s8": lambda k, d: (
        n := d.integer(1, 9),
        k("dot_s8")(d.array("int8", n), d.array("int8", n), n),
    ),
    "fir_s16": fir,
    "conv1d_s8": conv1d,
    "add_bias": bias,
    "sum_words": lambda k, d: (n := ragged(d), k("sum_words")(d.array("uint8", n), n)),
    "dot_unrolled": lambda k, d: (
        n := ragged(d),
        k("dot_unrolled")(d.array("int16", n, -99, 99), d.array("int16", n), n),
    ),
    "max_pool": pool,
    "column_sum": columns,
    "lookup": lambda k, d: k("lookup")(
        d.array("int8", 5), d.array("int16", 256), 5, zeros("int16", 5)
    ),
    "sum_pcm16": lambda k, d: (n := ragged(d, 2), k("sum_pcm16")(d.array("uint8", n), n)),
    "find_end": lambda k, d: (n := d.integer(1, 9), k("find_end")(d.array("uint8", n, 1, 255), n)),
    "lower_bound": lambda k, d: (
        n := d.integer(1, 9),
        k("lower_bound")(np.sort(d.array("int32", n, 0, 9)), n, d.integer(0, 12)),
    ),
    "shift_delay_line": lambda k, d: (
        n := d.integer(1, 9),
        k("shift_delay_line")(d.array("int16", n), n, 7),
    ),
    "copy_block": sized("copy_block", "int32", 1, "int32"),
    "depthwise": depthwise,
    "first_of": lambda k, d: (n := d.integer(0, 1), k("first_of")(d.array("int16", n), n)),
    "sum_backwards": sized("sum_backwards", "int8"),
    "bilinear": bilinear,
    "conv2d_same": conv2d,
    "block_max": lambda k, d: (n := ragged(d), k("block_max")(d.array("int32", n), n)),
}


def padded(k, d):
    n, padding = d.integer(1, 6), d.integer(1, 3)
    k("pad_left")(d.array("int16", n), zeros("int16", n + padding), n, padding)


def patches(k, d):
    n, size = d.integer(4, 9), d.integer(1, 3)
    k("im2col")(d.array("int8", n), zeros("int16", (n - size + 1) * size), n, size)


def transposed(k, d):
    rows, columns = 2, d.integer(3, 6)
    size = rows * columns
    k("transpose")(d.array("int32", size), zeros("int32", size), rows, columns)


def pushed(k, d):
    n, count = d.integer(1, 5), d.integer(6, 9)
    k("push_all")(zeros("int32", n), n, d.array("int32", count), count)


def scattered(k, d):
    n, size = d.integer(1, 6), d.integer(1, 6)
    index, x = d.array("int32", n, -2, size + 2), d.array("int16", n)
    k("scatter")(index, x, zeros("int16", size), n, size)


WRITES: dict[str, Call] = {
    "relu_s8": sized("relu_s8", "int8", 1, "int8"),
    "pad_left": padded,
    "im2col": patches,
    "fill_words": lambda k, d: (n := ragged(d), k("fill_words")(zeros("uint8", n), n, 77)),
    "transpose": transposed,
    "push_all": pushed,
    "upsample": lambda k, d: (
        n := d.integer(1, 6),
        k("upsample")(d.array("int16", n), zeros("int16", 2 * n), n),
    ),
    "histogram": lambda k, d: (
        bins := d.integer(2, 6),
        k("histogram")(d.array("uint8", 8, 250, 255), 8, zeros("uint32", bins), bins),
    ),
    "clear_scratch": lambda k, d: (
        n := d.integer(1, 9),
        k("clear_scratch")(zeros("int16", n), n),
    ),
    "put_u16": lambda k, d: (
        n := d.integer(2, 9),
        k("put_u16")(zeros("uint8", n), n, d.integer(0, 9)),
    ),
    "write_pair": lambda k, d: k("write_pair")(zeros("int32", 1), 1, 2),
    "scatter": scattered,
    "swap_arguments": swapped,
}


def fields(k, d):
    text = np.frombuffer(b"gain,7,offset,-3", np.uint8)
    k("parse_fields")(text, len(text), zeros("uint8", len(text)))


LIFETIMES: dict[str, Call] = {
    "sum_later": lambda k, d: (
        k("remember")(d.array("int32", 8, 0, 9)),
        k("sum_later")(),
    ),
    "finish_later": lambda k, d: (k("start")(zeros("int32", 1)), k("finish_later")(3)),
    "next_state": lambda k, d: (k("first_state")(d.array("int16", 4)), k("next_state")(1)),
    "normalize": sized("normalize", "int16", 2, "int16"),
    "parse_fields": fields,
    "reorder_weights": lambda k, d: k("reorder_weights")(d.array("int8", 8), zeros("int8", 8), 4),
    "clamp_all": sized("clamp_all", "int8", 1, "int8"),
    "set_gain": lambda k, d: k("set_gain")(d.integer(0, 9)),
    "patch_code": lambda k, d: k("patch_code")(3),
    "moving_average": lambda k, d: k("moving_average")(
        d.array("int32", 4, 0, 9), zeros("int32", 4)
    ),
}


def history(k, d):
    n = d.integer(1, 9)
    k("keep_history")(d.array("int16", n, -99, 99), n, scratch("int16", n), scratch("int16", n))


UNINITIALISED: dict[str, Call] = {
    "accumulate": lambda k, d: k("accumulate")(d.array("int8", 5), 5, scratch("int32", 1)),
    "sum_patches": lambda k, d: (
        n := d.integer(1, 5),
        k("sum_patches")(d.array("int16", 9), 9, scratch("int32", n), n),
    ),
    "even_only": lambda k, d: (
        n := d.integer(1, 5),
        k("even_only")(d.array("int16", n), n, scratch("int16", 2 * n)),
    ),
    "fill_and_sum": lambda k, d: (
        n := d.integer(1, 16),
        k("fill_and_sum")(d.array("int8", n), n),
    ),
    "quantize_with": lambda k, d: k("quantize_with")(d.integer(0, 9), d.integer(1, 9)),
    "select_mode": lambda k, d: k("select_mode")(d.integer(0, 9)),
    "copy_padded": lambda k, d: k("copy_padded")(d.integer(0, 9)),
    "first_run": lambda k, d: k("first_run")(scratch("int32", 1), 3, d.integer(0, 9)),
    "word_of_bytes": lambda k, d: k("word_of_bytes")(d.array("uint8", 4), scratch("uint8", 4)),
    "first_result": lambda k, d: k("first_result")(scratch("int32", 1), d.integer(0, 1)),
    "look_up": lambda k, d: k("look_up")(d.array("int32", 4, 0, 9)),
    "float_gain": lambda k, d: k("float_gain")(d.integer(1, 8), 1.25),
    "count_rounds": lambda k, d: k("count_rounds")(scratch("int32", 3), d.integer(0, 9)),
    "pass_by_value": lambda k, d: k("pass_by_value")(d.integer(0, 9)),
    "checksum": lambda k, d: (
        n := d.integer(1, 31),
        k("checksum")(d.array("uint8", n), n),
    ),
    "keep_history": history,
}
STACK: dict[str, Call] = {
    "depth_of": lambda k, d: k("depth_of")(d.integer(0, 20)),
    "flood_fill": lambda k, d: k("flood_fill")(zeros("uint8", 2000), 2000),
    "big_frame": lambda k, d: k("big_frame")(d.array("uint8", 64), 64),
    "local_of_length": lambda k, d: k("local_of_length")(d.integer(9000, 12_000)),
    "write_past_local": lambda k, d: k("write_past_local")(d.integer(1, 3)),
    "smash_caller": lambda k, d: k("smash_caller")(d.integer(8, 16)),
}
STATIC: dict[str, Call] = {
    "dot_weights": lambda k, d: k("dot_weights")(d.array("int8", 10), d.integer(0, 1)),
    "scratch_ring": lambda k, d: k("scratch_ring")(d.integer(0, 20)),
    "filter_state": lambda k, d: k("filter_state")(d.integer(0, 9)),
    "bias_table": lambda k, d: k("bias_table")(6),
    "copy_name": lambda k, d: k("copy_name")(d.integer(0, 1)),
}
TABLES = {
    "bounds_static.c": STATIC,
    "bounds_read.c": READS,
    "bounds_write.c": WRITES,
    "lifetime.c": LIFETIMES,
    "uninitialised.c": UNINITIALISED,
    "stack.c": STACK,
}
FILE_OF = {name: file for file, table in TABLES.items() for name in table}


@pytest.mark.parametrize(("name", "platform", "toolchain"), on_platforms(FILE_OF))
def test_sanitizer(bench, name, platform, toolchain):
    session = bench.session(platform, toolchain=toolchain, sanitize=True)
    file = FILE_OF[name]
    check(bench, sections(file)[name], TABLES[file][name], session)


def test_every_section_is_called():
    for file, table in TABLES.items():
        assert set(table) == set(sections(file))
