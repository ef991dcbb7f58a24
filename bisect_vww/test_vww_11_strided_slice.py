"""Layer copy model/activation/Relu;model/batch_normalization/FusedBatchNormV3;model/conv2d/BiasAdd/ReadVariableOp/resource;model/conv2d/BiasAdd;model/depthwise_conv2d/depthwise;model/conv2d/Conv2D1 rows 0 to 5 kept and more (STRIDED_SLICE on cpu) of vww, stm32l4r5 zig: tensor input_1_int8 [0, 0, 0, 0] is -122, not -33.

Written by `covp bisect`: the layer as it was compiled, in memory that holds its inputs
(0 of 768 input elements are not zero).
"""

from pathlib import Path

import numpy as np

from covp import Session

HERE = Path(__file__).parent
FILES = (
    "vww_11_strided_slice.c",
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
ARGUMENTS = (33408, 27648)  # bytes from the start of the memory


def test_vww_11_strided_slice():
    data = np.load(HERE / "vww_11_strided_slice.npz")
    files = {name: (HERE / name).read_text(encoding="utf-8") for name in FILES}
    with Session('stm32l4r5', 'virtual', 'zig') as session:
        module = session.load_sources(files, "vww_11_strided_slice", flags=FLAGS)
        symbols = module.image.elf.symbols
        memory = module.address("vww_arena")
        session.write(memory, data["memory"].tobytes())
        layer = symbols["vww_11_strided_slice"].value
        session.call(layer, *(memory + offset for offset in ARGUMENTS))
        after = np.frombuffer(session.read(memory, data["memory"].size), np.uint8)
    wanted = data["wanted"]
    got = after[0 : 27648].view(wanted.dtype)
    got = got.reshape(wanted.shape)
    assert got[0, 0, 0, 0] == -33  # it is -122
    np.testing.assert_array_equal(got, wanted)
