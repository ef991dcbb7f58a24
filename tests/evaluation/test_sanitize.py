"""`covp run --sanitize`: a layer, and a driver, access their own memory only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from covp.errors import DeviceFault, UsageError
from covp.evaluation import Sample, build, run
from covp.graph.graph import Graph, Op
from covp.graph.user_operators import UserOperator, register_operator, unregister_operator
from covp.graph.zoo.tflite_writer import write_tflite
from covp.testing.tensors import plain

RIGHT = "for (int32_t i = 0; i < 8; ++i)\n    output[i] = input[i] + 1;"
DEFECTS = {  # text, the line that is wrong, and the fault
    "ReadsBoth": (
        "int32_t all = 0;\nfor (int32_t i = -1; i <= 8; ++i)\n    all |= input[i];\n"
        f"{RIGHT}\nif (all == 77)\n    output[0] = 0;",
        "all |= input[i];",
        "out-of-bounds read",
        "offset -4 of ",
    ),
    "WritesPast": (
        f"{RIGHT}\n((volatile int32_t *)output)[8] = 0;",
        "((volatile int32_t *)output)[8] = 0;",
        "out-of-bounds write",
        "offset 32 of y, which has 32 bytes",
    ),
    "WritesItsInput": (
        f"{RIGHT}\n*(volatile int32_t *)(uintptr_t)input = 3;",
        "*(volatile int32_t *)(uintptr_t)input = 3;",
        "write to const",
        "offset 0 of x",
    ),
    "AddsToWhatIsThere": (
        f"{RIGHT.replace(' = input[i] + 1', ' += input[i] + 1')}",
        "output[i] += input[i] + 1;",
        "uninitialised read",
        "offset 0 of y",
    ),
}


@pytest.fixture(params=["cortex-m4", "riscv32"])
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    texts = {"Right": RIGHT, **{kind: defect[0] for kind, defect in DEFECTS.items()}}
    for kind, text in texts.items():
        register_operator(
            UserOperator(
                kind,
                reference=lambda op, values: [np.asarray(values[0]) + np.int32(1)],
                body=lambda op, text=text: text,  # type: ignore[misc]
            )
        )
    yield request.param
    for kind in texts:
        unregister_operator(kind)


def model(kind: str, folder: Path) -> Path:
    x, y = (plain(name, (1, 8), np.dtype(np.int32)) for name in ("x", "y"))
    path = folder / f"{kind.lower()}.tflite"
    path.write_bytes(write_tflite(Graph("m", [x], [y], [Op(kind, "op_0", [x], [y])])))
    return path


@pytest.mark.costly
def test_defects_of_a_layer_and_their_twin(platform: str, tmp_path: Path) -> None:
    right = build(model("Right", tmp_path), platform)
    result = run(right, sanitize=True)
    assert result.matches_reference and result.check.sanitized
    assert not run(right).check.sanitized
    with pytest.raises(UsageError, match="checked layer by layer"):
        run(right, sanitize=True, check="output")
    for kind, (_, wrong, fault, where) in DEFECTS.items():
        made = build(model(kind, tmp_path), platform)
        with pytest.raises(DeviceFault) as caught:
            run(made, Sample.of(made.graph, [np.arange(8, dtype=np.int32)[None]]), sanitize=True)
        found = caught.value
        file, _, line = str(found.source).partition(":")
        assert made.program.sources[file].splitlines()[int(line) - 1].strip() == wrong
        assert found.kind == fault and where in found.detail
        assert found.detail.endswith(f"in layer {kind.lower()}_0 (cpu)")


@pytest.mark.costly
@pytest.mark.parametrize(
    "platform_name, accelerator",
    [
        ("riscv32", ""),
        ("cortex-m0plus", ""),
        ("cortex-m4", "gemm"),
        ("riscv32", "qconv2d"),
        ("riscv32", "cfu"),
        ("cortex-m4", "vector"),
    ],
)
def test_kernels_and_drivers_of_a_whole_model(platform_name: str, accelerator: str) -> None:
    made = build("kws", platform_name, (accelerator,) if accelerator else ())
    result = run(made, sanitize=True)
    assert result.matches_reference and result.check.sanitized
    assert (
        accelerator in ("", "vector") or (result.mac_coverage or 0) > 0
    )  # vector's work is no MACs
