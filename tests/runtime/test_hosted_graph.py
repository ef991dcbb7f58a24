"""The hosted graph executor: the host drives the layers, the device keeps everything."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import covp
from covp.errors import UsageError
from covp.evaluation import Sample
from covp.graph.reference import run_all, run_reference
from covp.runtime.hosted_graph import HostedGraph
from covp.runtime.session import Session
from tests.testing.bisect.conftest import many

Open = Callable[..., Session]


@pytest.fixture(scope="module")
def toycar():
    return covp.load_model("toycar")


@pytest.mark.parametrize("platform", ["cortex-m4", "riscv32"])
def test_lazy_needs_one_execution_and_strict_one_a_layer(open_session: Open, toycar, platform):
    x = np.random.default_rng(3).integers(-128, 128, toycar.inputs[0].shape, np.int8)
    wanted = run_reference(toycar, [x])[0]
    program = covp.compile(toycar, covp.load_platform(platform))
    profiles = {}
    for strict in (False, True):
        session = open_session(platform, strict=strict)
        graph = session.load(program, hosted=True)
        assert isinstance(graph, HostedGraph)
        np.testing.assert_array_equal(graph.run(x), wanted)
        profiles[strict] = session.profile()
    lazy, strict_ = profiles[False].transfers, profiles[True].transfers
    assert lazy.executes == 1
    assert strict_.executes == len(program.layers) == len(toycar.ops)
    assert strict_.round_trips > 3 * lazy.round_trips
    assert lazy.bytes_written >= x.nbytes and lazy.bytes_read >= wanted.nbytes
    # the same layers cost the same, however they are started
    alone = open_session(platform).load(program)
    alone.run(x)
    costs = [entry.instructions for entry in alone.profile().layers]
    for profile in profiles.values():
        assert [entry.instructions for entry in profile.layers] == costs
    assert alone.profile().transfers.executes == 1


def test_intermediate_tensors_equal_the_reference(open_session: Open, toycar):
    x = np.random.default_rng(4).integers(-128, 128, toycar.inputs[0].shape, np.int8)
    program = covp.compile(toycar, covp.load_platform("riscv32"))
    graph = open_session("riscv32").load(program, hosted=True)
    assert isinstance(graph, HostedGraph)
    values = {op.output.name: op for op in toycar.ops}
    names = [tensor.name for layer in program.layers for tensor in layer.outputs]
    assert set(names) <= set(values) and len(names) == len(program.layers)
    wanted = run_all(toycar, [x])
    for name in names:
        np.testing.assert_array_equal(graph.run_until(name, x), wanted[name])
    with pytest.raises(UsageError, match="no resident tensor 'nonsense'"):
        graph.run_until("nonsense", x)


def test_a_tensor_whose_memory_may_be_taken_is_rejected(open_session: Open, toycar):
    x = np.random.default_rng(5).integers(-128, 128, toycar.inputs[0].shape, np.int8)
    graph = open_session("riscv32").load(covp.compile(toycar, "riscv32"), hosted=True)
    assert isinstance(graph, HostedGraph)
    names = [tensor.name for layer in graph.program.layers for tensor in layer.outputs]
    wanted = run_all(toycar, [x])
    with pytest.raises(UsageError, match="no layer has run"):
        graph.tensor(names[0])
    graph.run(x)
    np.testing.assert_array_equal(graph.tensor(names[-1]), wanted[names[-1]])
    with pytest.raises(UsageError, match=r"may hold another tensor; run_until\("):
        graph.tensor(names[0])
    graph.run_until(names[2], x)
    np.testing.assert_array_equal(graph.tensor(names[2]), wanted[names[2]])
    for name in (names[1], names[3], names[-1]):
        with pytest.raises(UsageError, match="ran last"):
            graph.tensor(name)
    for name, _ in zip(names, graph.steps(x), strict=True):
        np.testing.assert_array_equal(graph.tensor(name), wanted[name])


def test_a_tensor_knows_its_session(open_session: Open) -> None:
    here, there = open_session("riscv32"), open_session("cortex-m4")
    source = "int first(const int *p) { return *p; }"
    tensor = here.tensor(np.array([7], np.int32))
    assert tensor.session is here
    assert here.load_c(source)["first"](tensor).result() == 7
    with pytest.raises(UsageError, match=r"lives in another session, on riscv32"):
        there.load_c(source)["first"](tensor)
    assert there.load_c(source)["first"](there.tensor(tensor.numpy())).result() == 7


def test_a_session_in_use_cannot_be_closed(open_session: Open) -> None:
    session = open_session("riscv32", timeout=30)
    flag = session.tensor(np.zeros(1, np.int32))
    wait = session.load_c("void wait(volatile int *flag) { while (!*flag) { } }")["wait"]
    wait(flag)
    thread = threading.Thread(target=session.sync)
    thread.start()
    while not session.io.busy:
        time.sleep(0.001)
    with pytest.raises(UsageError, match="in use"):
        session.close()
    session.device.board.bus.write(flag.address, b"\1\0\0\0")  # type: ignore[attr-defined]
    thread.join(30)
    assert not thread.is_alive()
    session.close()


@pytest.mark.parametrize("inputs", [11, 12, 40, 256])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus", "cortex-m4", "host"])
def test_a_layer_of_many_inputs(platform: str, inputs: int) -> None:
    """As many as the file has: a task of the host has room for 12."""
    graph = many(inputs)
    sample = Sample.random(graph)
    with covp.Session(platform, "host" if platform == "host" else "virtual") as session:
        for hosted in (False, True):
            module = session.load(covp.compile(graph, platform), hosted=hosted)
            assert np.array_equal(module.run(*sample.inputs), sample.outputs[0])
