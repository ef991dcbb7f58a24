"""What other runtimes reach on the MLPerf Tiny int8 models, for comparison.

Instructions per inference, flash and arena bytes, counted on emulated cores with GCC 12.2, the
best of -O2, -O3 and -funroll-loops: TFLM 90b983c2 with CMSIS-NN 99f736a6 or muRISCV-NN 4eb6a1f6
(scalar). The accelerator's figures are the ones of the CODAI'23 paper, Table 2.
"""

from __future__ import annotations

from typing import NamedTuple


class Anchor(NamedTuple):
    """One inference of another runtime."""

    runtime: str
    instructions: int
    flash: int
    arena: int


_CMSIS = "TFLM + CMSIS-NN"
_MURISCV = "TFLM + muRISCV-NN"

ANCHORS: dict[str, dict[str, Anchor]] = {
    "cortex-m4f": {
        "toycar": Anchor(_CMSIS, 582_320, 313_192, 2_580),
        "resnet": Anchor(_CMSIS, 29_863_072, 187_488, 54_996),
        "kws": Anchor(_CMSIS, 7_697_836, 142_816, 22_820),
        "vww": Anchor(_CMSIS, 24_101_721, 422_168, 100_708),
        "sww": Anchor(_CMSIS, 2_225_904, 162_720, 16_596),
    },
    "cortex-m7f": {
        "toycar": Anchor(_CMSIS, 582_622, 313_320, 2_580),
        "resnet": Anchor(_CMSIS, 29_937_685, 188_736, 54_996),
        "kws": Anchor(_CMSIS, 7_761_253, 145_952, 22_820),
        "vww": Anchor(_CMSIS, 24_483_820, 425_304, 100_708),
        "sww": Anchor(_CMSIS, 2_187_224, 163_296, 16_596),
    },
    "cortex-m0plus": {
        "toycar": Anchor(_CMSIS, 1_763_164, 316_800, 2_580),
        "resnet": Anchor(_CMSIS, 97_568_867, 190_080, 54_980),
        "kws": Anchor(_CMSIS, 29_003_762, 145_960, 22_820),
        "vww": Anchor(_CMSIS, 86_878_559, 425_312, 100_708),
        "sww": Anchor(_CMSIS, 9_319_499, 163_192, 15_300),
    },
    "rv32imc": {
        "toycar": Anchor(_MURISCV, 1_152_884, 322_680, 2_684),
        "resnet": Anchor(_MURISCV, 49_245_978, 204_224, 55_020),
        "kws": Anchor(_MURISCV, 14_073_036, 163_344, 22_828),
        "vww": Anchor(_MURISCV, 42_445_335, 442_696, 100_716),
        "sww": Anchor(_MURISCV, 5_250_234, 178_264, 15_308),
    },
}
"""Core to model to figures."""
