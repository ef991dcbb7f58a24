"""covp's own C under its undefined-behaviour checks: nothing is found, and no bit changes.

The runtime's functions are compiled beside their callers, with checks; the session's own have none.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

import covp
from covp.compilers.toolchain import runtime_dir
from covp.graph.models import load_model
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.runtime.module import Module
from covp.runtime.session import Session

from .conftest import has_toolchain
from .test_device_library import MATH, MEMORY, NAMES, spread
from .test_elementary_functions import BINARY, SOURCE, UNARY, pairs

CORES = [
    pytest.param(platform, toolchain, marks=[] if usual else [pytest.mark.slow])
    for platform, toolchain, usual in (
        ("cortex-m4", "zig", False),
        ("cortex-m4", "gcc", True),
        ("cortex-m0plus", "zig", True),
        ("cortex-m0plus", "gcc", False),
        ("riscv32", "zig", True),
        ("riscv32", "gcc", False),
    )
]


def opened(platform: str, toolchain: str, ubsan: bool) -> Session:
    if not has_toolchain(toolchain, platform):
        pytest.skip(f"no gcc for {platform}")
    return Session(platform, toolchain=toolchain, ubsan=ubsan)


def own(*names: str) -> dict[str, str]:
    return {name: (runtime_dir() / name).read_text(encoding="utf-8") for name in names}


def sized(module: Module, values: tuple[NDArray[np.float32], ...], name: str) -> bytes:
    """What ``each_name`` gives for the values."""
    session = module.session
    assert isinstance(session, Session)
    tensors = [session.tensor(v) for v in (*values, np.zeros_like(values[0]))]
    module[f"each_{name}"](*tensors, len(values[0]))
    found = tensors[-1].numpy().tobytes()
    for tensor in tensors:
        tensor.free()
    return found


@pytest.mark.costly
@pytest.mark.parametrize("platform, toolchain", CORES)
def test_mathematical_functions(platform: str, toolchain: str) -> None:
    """For the magnitudes and special values of the accuracy tests."""
    files = own("math.c", "math_elementary.c")
    results = []
    for ubsan in (False, True):
        with opened(platform, toolchain, ubsan) as session:
            sources = {**(files if ubsan else {}), "some.c": MATH, "more.c": SOURCE}
            module = session.load_sources(sources, "functions", flags=("-g",))
            found = [sized(module, (spread(),), name) for name in (*NAMES, *UNARY)]
            found += [sized(module, pairs(), name) for name in BINARY]
            results.append(found)
    assert results[0] == results[1]


@pytest.mark.parametrize("platform, toolchain", CORES)
def test_memory_functions(platform: str, toolchain: str) -> None:
    """At all alignments, forwards and backwards."""
    renamed = tuple(f"-D{n}=checked_{n}" for n in ("memcpy", "memmove", "memset", "memcmp"))
    with opened(platform, toolchain, ubsan=True) as session:
        flags = ("-g", *session.toolchain.plain_loops, *renamed)
        # without the other names that Arm's ABI has for the same functions
        text = own("memory.c")["memory.c"].partition("#ifdef __arm__")[0]
        sources = {"memory.c": text, "calls.c": MEMORY}
        module = session.load_sources(sources, "memory", flags=flags)
        expected = np.random.default_rng(3).integers(0, 3, 96).astype(np.uint8)
        tensor = session.tensor(expected)
        for to in range(6):
            for source in range(30, 36):
                for n in (0, 1, 3, 9, 41):
                    module["move"](tensor, to, source, n)
                    expected[to : to + n] = expected[source : source + n].copy()
                    module["move"](tensor, source + 3, to + 12, n)
                    expected[source + 3 : source + 3 + n] = expected[to + 12 : to + 12 + n].copy()
                    module["copy"](tensor, 48 + to, to, n)
                    expected[48 + to : 48 + to + n] = expected[to : to + n].copy()
                module["set"](tensor, to, source, to)
                expected[to : to + to] = source
                order = module["compare"](tensor, to, source, 20).result()
                left, right = (bytes(expected[at : at + 20]) for at in (to, source))
                assert isinstance(order, int)
                assert (order > 0) - (order < 0) == (left > right) - (left < right)
        assert np.array_equal(tensor.numpy(), expected)


def check_model(
    name: str, platform: str, toolchain: str, accelerators: tuple[str, ...] = ()
) -> None:
    graph = load_model(name)
    inputs = random_inputs(graph.inputs, 5)
    program = covp.compile(graph, platform, accelerators, allow_unused=True)
    with opened(platform, toolchain, ubsan=True) as session:
        output = session.load(program).run(*inputs)
    expected = run_reference(graph, inputs)[0]
    assert np.allclose(output, expected, atol=0 if expected.dtype == np.int8 else 1e-5)


@pytest.mark.costly
@pytest.mark.parametrize("platform, toolchain", CORES)
@pytest.mark.parametrize("name", ["kws", pytest.param("toycar", marks=pytest.mark.slow)])
def test_models(name: str, platform: str, toolchain: str) -> None:
    check_model(name, platform, toolchain)


@pytest.mark.slow
@pytest.mark.parametrize("platform, toolchain", CORES)
@pytest.mark.parametrize("name", ["resnet", "vww", "sww", "kws_float"])
def test_larger_models(name: str, platform: str, toolchain: str) -> None:
    if platform == "cortex-m0plus":
        platform = "cortex-m7"  # they do not fit its flash
    check_model(name, platform, toolchain)


@pytest.mark.costly
@pytest.mark.parametrize(
    "accelerator",
    [
        "gemm",
        "cfu",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("dma", "qconv2d", "vanilla", "vector")),
    ],
)
def test_drivers_of_accelerators(accelerator: str) -> None:
    check_model("kws", "riscv32", "zig", (accelerator,))
