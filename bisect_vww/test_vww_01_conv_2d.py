"""Layer conv_2d_0 rows 0 to 5 (CONV_2D on cpu) of vww, stm32l4r5 zig: output [0, 0, 0, 0] is -92, not -106.

Written by `covp bisect`: the layer as it was compiled, in memory that holds its inputs
(0 of 0 input elements are not zero).
"""

from pathlib import Path

import numpy as np

from covp import Session

HERE = Path(__file__).parent
FILES = (
    "vww_01_conv_2d.c",
    "vww_01_conv_2d_weights.c",
    "vww_02_depthwise_conv_2d_table.c",
    "vww_05_depthwise_conv_2d_table.c",
    "vww_07_conv_2d_weights.c",
    "vww_07_conv_2d_channel_table.c",
    "vww_08_depthwise_conv_2d_table.c",
    "vww_09_conv_2d_weights.c",
    "vww_09_conv_2d_channel_table.c",
    "vww_infer.h",
    "vww_arena.c",
)
FLAGS = ('-g1', '-ffp-contract=off', '-fno-strict-aliasing')
ARGUMENTS = (0, 27648, 29952)  # bytes from the start of the memory


def test_vww_01_conv_2d():
    data = np.load(HERE / "vww_01_conv_2d.npz")
    files = {name: (HERE / name).read_text(encoding="utf-8") for name in FILES}
    with Session('stm32l4r5', 'virtual', 'zig') as session:
        module = session.load_sources(files, "vww_01_conv_2d", flags=FLAGS)
        symbols = module.image.elf.symbols
        memory = module.address("vww_arena")
        session.write(memory, data["memory"].tobytes())
        layer = symbols["vww_01_conv_2d"].value
        session.call(layer, *(memory + offset for offset in ARGUMENTS))
        after = np.frombuffer(session.read(memory, data["memory"].size), np.uint8)
    wanted = data["wanted"]
    got = after[27648 : 29952].view(wanted.dtype)
    got = got.reshape(wanted.shape)
    assert got[0, 0, 0, 0] == -106  # it is -92
    np.testing.assert_array_equal(got, wanted)
