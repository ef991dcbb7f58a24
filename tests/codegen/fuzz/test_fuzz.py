"""Random layers of every kind, their numbers at extremes, with random schedules.

The generated C of four kinds of cores runs natively under the undefined-behaviour sanitizer, and on
the emulated cores themselves; results are those of the specification (oracle.py) where that file
knows the operator, and of covp's reference, which is compared with it and with LiteRT, elsewhere.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import covp
from covp.chip.cores import find_core
from covp.codegen.program import Program
from covp.compilers.toolchain import UNDEFINED_BEHAVIOUR_FLAGS
from covp.graph.equality import differences
from covp.graph.random_inputs import random_inputs
from covp.graph.reference import run_reference
from covp.graph.tflite import read_tflite
from covp.graph.zoo.tflite_writer import write_tflite
from covp.runtime.session import Session
from covp.testing.contents import Content
from covp.testing.tensors import filled

from .batch import Ran, run_batch
from .oracle import oracle
from .programs import joined
from .unusual import Unusual, as_litert, unusual

on_host = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the host device needs Linux on x86-64",
)
CORES = [find_core(name) for name in ("cortex-m0plus", "cortex-m4f", "cortex-m7f", "rv32imc")]
PLATFORMS = ["cortex-m0plus", "cortex-m4", "cortex-m7", "riscv32"]
ACCELERATORS = ["cfu", "dma", "gemm", "qconv2d", "vanilla", "vector"]
LAYERS = 25


def batches(count: int) -> settings:
    """So many batches; a failure names its layer, so nothing is shrunk."""
    return settings(
        max_examples=count + 1,  # the first one is the simplest there is
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


several = st.lists(unusual(), min_size=LAYERS, max_size=LAYERS)
few = st.lists(unusual(), min_size=10, max_size=10)


def is_right(ran: Ran) -> None:
    """The outputs are the specification's and the reference's."""
    graph, inputs = ran.case.graph(), ran.case.inputs()
    wanted = run_reference(graph, inputs)
    specified = oracle(graph.ops[0], inputs)
    if specified is not None:
        assert np.array_equal(wanted[0], specified), "the reference is wrong"
    for got, value in zip(ran.outputs, wanted, strict=True):
        assert differences(got, value.reshape(got.shape)).size == 0, "wrong outputs"


def under_the_sanitizer(cases: list[Unusual]) -> None:
    with Session("host", device="host", timeout=60) as session:
        failures = run_batch(session, cases, CORES, UNDEFINED_BEHAVIOUR_FLAGS, is_right)
    assert not failures, "\n".join(failures)


def on_cores(name: str, cases: list[Unusual]) -> None:
    with Session(name, timeout=60, sanitize=True) as session:
        failures = run_batch(session, cases, [session.platform.core], check=is_right)
    assert not failures, "\n".join(failures)


@batches(150)
@given(as_litert())
def test_the_reference_is_litert_at_extremes_too(litert: Any, case: Unusual) -> None:
    graph, inputs = case.graph(), case.inputs()
    data = write_tflite(graph)
    found = run_reference(read_tflite(data), inputs)
    for ours, theirs in zip(found, litert(data, inputs), strict=True):
        assert differences(ours, theirs).size == 0


def accelerated(names: str, cases: list[Unusual]) -> None:
    """All layers as one program; units take those that they accept."""
    graph, inputs = joined(cases)
    wanted = run_reference(graph, inputs)
    program = covp.compile(graph, "riscv32", names.split("+"), allow_unused=True)
    with Session("riscv32", timeout=60) as session:
        outputs = session.load(program).run(*inputs)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    wrong = [
        tensor.name
        for tensor, got, value in zip(graph.outputs, outputs, wanted, strict=True)
        if differences(got, value).size
    ]
    assert not wrong, f"{wrong} of {cases!r}"


@pytest.mark.costly
@on_host
@batches(1)
@given(several)
def test_generated_code_has_no_undefined_behaviour(cases: list[Unusual]) -> None:
    under_the_sanitizer(cases)


@pytest.mark.costly
@pytest.mark.parametrize(
    "name", ["cortex-m0plus", "riscv32", pytest.param("cortex-m4", marks=pytest.mark.slow)]
)
@batches(1)
@given(few)
def test_cores_execute_no_undefined_behaviour(name: str, cases: list[Unusual]) -> None:
    """The code of that very core, and accesses outside its tables as well."""
    with Session(name, timeout=60, ubsan=True) as session:
        failures = run_batch(session, cases, [session.platform.core], check=is_right)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", PLATFORMS)
@batches(1)
@given(few)
def test_every_core_computes_what_is_specified(name: str, cases: list[Unusual]) -> None:
    on_cores(name, cases)


@pytest.mark.costly
@on_host
@pytest.mark.parametrize(
    "name",
    [
        "toycar",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet", "kws", "vww", "sww")),
    ],
)
def test_whole_programs_have_no_undefined_behaviour(name: str) -> None:
    """With the glue between the layers; the extremes of the inputs too."""
    program = covp.compile(covp.load_model(name), "host")
    flags = (*program.flags, *UNDEFINED_BEHAVIOUR_FLAGS)
    with Session("host", device="host", timeout=60) as session:
        module = session.load(replace(program, flags=flags))
        for inputs in (random_inputs(program.inputs, 1), *_extremes(program)):
            got = module.run(*inputs)
            assert differences(np.asarray(got), program.reference(inputs)[0]).size == 0


def _extremes(program: Program) -> list[list[NDArray[Any]]]:
    contents: tuple[Content, ...] = ("lowest", "highest")
    return [[filled(tensor, 0, content) for tensor in program.graph.inputs] for content in contents]


@pytest.mark.slow
@on_host
@batches(80)
@given(several)
def test_two_thousand_layers_without_undefined_behaviour(cases: list[Unusual]) -> None:
    under_the_sanitizer(cases)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLATFORMS)
@batches(20)
@given(several)
def test_five_hundred_layers_on_every_core(name: str, cases: list[Unusual]) -> None:
    on_cores(name, cases)


@pytest.mark.costly
@pytest.mark.parametrize("accelerator", ACCELERATORS)
@batches(1)
@given(few)
def test_every_accelerator_computes_what_is_specified(
    accelerator: str, cases: list[Unusual]
) -> None:
    accelerated(accelerator, cases)


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", [*ACCELERATORS, "gemm+vector+dma"])
@batches(15)
@given(several)
def test_hundreds_of_layers_on_every_accelerator(accelerator: str, cases: list[Unusual]) -> None:
    accelerated(accelerator, cases)
