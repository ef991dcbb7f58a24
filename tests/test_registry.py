"""Registries that import what registers when it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from covp.base.registry import Registry


@pytest.mark.costly
@pytest.mark.process
def test_a_small_model_imports_the_usual_families_alone() -> None:
    """What every command pays for; a kind that is missing brings the others."""
    code = (
        "import sys, covp\n"
        "covp.compile('kws', 'riscv32')\n"
        "rare = ('covp.graph.ops.recurrent', 'covp.codegen.kernels.recurrent.recurrent',\n"
        "        'covp.graph.tflite.converters.gather', 'covp.graph.onnx', 'onnx')\n"
        "print([name for name in rare if name in sys.modules])\n"
        "from covp.graph.ops import OPS\n"
        "print('GRU' in OPS, 'nothing' in OPS, 'covp.graph.ops.recurrent' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "True False True"]


def test_it_is_a_dictionary() -> None:
    registry: Registry[str, int] = Registry("covp.chip.energy")
    registry["one"] = 1
    assert registry["one"] == 1 and dict(registry) == {"one": 1} and len(registry) == 1
    del registry["one"]
    assert "one" not in registry
    with pytest.raises(KeyError, match="two"):
        registry["two"]


@pytest.mark.process
def test_what_was_imported_before_a_family_knows_it() -> None:
    """Passes that are imported first know pointwise operators of families that come later."""
    code = (
        "from covp.graph.passes.axis_orders import is_elementwise\n"
        "from covp.graph.zoo.builder import GraphBuilder\n"
        "import numpy as np, sys\n"
        "b = GraphBuilder('g')\n"
        "print('covp.graph.ops.unary' in sys.modules)\n"
        "x = b.add('HARD_SWISH', b.input((1, 4), np.float32))\n"
        "graph = b.graph(x)\n"
        "print([is_elementwise(op) for op in graph.ops])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "[True]"]
