"""`covp run --ubsan`: the overflow of a user's operator wraps on every core, and is found."""

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

BODIES = {
    "Signed": "output[i] = input[i] * 3;",
    "Modular": "output[i] = (int32_t)((uint32_t)input[i] * 3u);",
}
X = np.array([[1, -2, 3, 0x2AAAAAAA, 0x2AAAAAAB, 7, 8, 9]], np.int32)


def thrice(kind: str) -> UserOperator:
    return UserOperator(
        kind,
        reference=lambda op, values: [np.asarray(values[0]) * np.int32(3)],
        body=lambda op: f"for (int32_t i = 0; i < 8; ++i) {{\n    {BODIES[kind]}\n}}",
    )


@pytest.fixture(params=["cortex-m4", "riscv32"])
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    for kind in BODIES:
        register_operator(thrice(kind))
    yield request.param
    for kind in BODIES:
        unregister_operator(kind)


def model(kind: str, folder: Path) -> Path:
    x, y = (plain(name, (1, 8), np.dtype(np.int32)) for name in ("x", "y"))
    path = folder / f"{kind.lower()}.tflite"
    path.write_bytes(write_tflite(Graph("m", [x], [y], [Op(kind, "op_0", [x], [y])])))
    return path


@pytest.mark.costly
def test_the_finding_and_its_twin(platform: str, tmp_path: Path) -> None:
    for kind in BODIES:
        made = build(model(kind, tmp_path), platform)
        sample = Sample.of(made.graph, [X])
        assert run(made, sample).matches_reference  # the defect does not show
        if kind == "Modular":
            result = run(made, sample, ubsan=True)
            assert result.matches_reference and result.check.ubsan
            with pytest.raises(UsageError, match="checked layer by layer"):
                run(made, sample, ubsan=True, check="output")
            continue
        with pytest.raises(DeviceFault) as caught:
            run(made, sample, ubsan=True)
        fault = caught.value
        file, _, line = str(fault.source).partition(":")
        assert made.program.sources[file].splitlines()[int(line) - 1].strip() == BODIES[kind]
        assert fault.kind == "undefined behaviour"
        assert f"{0x2AAAAAAB} * 3 does not fit" in fault.detail
        assert fault.call_stack[0] == f"{made.program.layers[0].function} ({fault.source})"
