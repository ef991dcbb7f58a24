"""The firmware's serial protocol on emulated cores, against a model of it in Python."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from covp.graph.reference import run_reference

from .firmware_bench import FirmwareBench, small_network
from .protocol_model import ProtocolModel, fits

SIZE = 12
GRAPH = small_network(SIZE)
PLATFORMS = ["cortex-m4", "riscv32", "cortex-m0plus"]


def result(data: bytes) -> str:
    """Of kws01: the bytes are the network's input."""
    (output,) = run_reference(GRAPH, [np.frombuffer(data, np.int8).reshape(1, SIZE)])
    return ",".join(f"{0.25 * (int(value) + 5):.3f}" for value in output.ravel())


@pytest.fixture(scope="module", params=PLATFORMS)
def bench(request: pytest.FixtureRequest) -> Iterator[FirmwareBench]:
    made = FirmwareBench(request.param, "kws01", graph=GRAPH)
    yield made
    made.close()


def test_the_start(bench: FirmwareBench) -> None:
    assert fits(
        bench.boot, ["m-timestamp-mode-performance", "m-lap-us-*", "m-init-done", "m-ready"]
    )


numbers = st.one_of(
    st.integers(0, 3).map(str),
    st.sampled_from(["", "00", "-1", "+1", "0x1", "1e1", "one", "4294967296", 20 * "9"]),
)
hexes = st.one_of(
    st.binary(max_size=SIZE + 2).map(bytes.hex),
    st.binary(max_size=5).map(lambda data: data.hex().upper()),
    st.sampled_from(["0", "012", "0g", "zz", "01 02"]),
)
commands = st.one_of(
    st.just(f"db load {SIZE}"),
    hexes.map("db {}".format),
    st.tuples(numbers, numbers).map(lambda two: "infer {} {}".format(*two)),
    st.sampled_from([
        "name", "profile", "timestamp", "results", "infer", "infer 1", "db", "db load",
        "db load 0", f"db load {SIZE + 1}", f"db load {SIZE}x", f"db load {SIZE} {SIZE}",
        "db print", "db print 3 5 ", "db print 99 2", "db print x", "", " ", "Name", "names",
        "\r\nname\r\n", "infer 1 1 1", "name " + 75 * "x", "name " + 76 * "x", 200 * "db ",
    ]),
    st.binary(max_size=100).map(lambda data: data.replace(b"%", b"").decode("latin-1")),
)  # fmt: skip


@pytest.mark.costly
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(commands, min_size=1, max_size=8), st.binary(min_size=SIZE, max_size=SIZE))
def test_any_commands(bench: FirmwareBench, sent: list[str], data: bytes) -> None:
    """Each gets the lines of the model and one m-ready, and a download works after all of them."""
    bench.restart()
    model = ProtocolModel("kws01", SIZE, result)
    good = [f"db load {SIZE}", f"db {data[:7].hex()}", f"db {data[7:].hex()}", "infer 2 1"]
    for command in [*sent, *good]:
        text = command.encode("latin-1")
        lines, expected = bench.say(text + b"%"), model.answer(text)
        assert fits(lines, expected), (command, lines, expected)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(min_size=SIZE, max_size=SIZE), st.data())
def test_lost_bytes_are_noticed(bench: FirmwareBench, data: bytes, draw: st.DataObject) -> None:
    """A transfer with a byte lost, changed or repeated never ends in a wrong result."""
    bench.restart()
    text = bytearray(f"db load {SIZE}%db {data[:6].hex()}%db {data[6:].hex()}%".encode())
    place = draw.draw(st.integers(0, len(text) - 2))
    del text[place : min(place + draw.draw(st.integers(1, 4)), len(text) - 1)]
    seen = bench.say(bytes(text))
    assert all(line.startswith(("e-[", "m-")) for line in seen)
    bench.say(b"%")  # ends what may have begun
    lines = bench.say(b"infer 1 0%")
    assert lines[-1] == "m-ready"
    results = [line for line in lines if line.startswith("m-results")]
    # what is left may be a whole transfer: two lines that became one
    assert results == [f"m-results-[{result(data)}]"] if results else lines[0].startswith("e-[")


def test_a_command_ends_an_inference_that_takes_too_long(bench: FirmwareBench) -> None:
    """The board of a runner that was restarted answers it, with one m-ready."""
    bench.restart()
    bench.say(f"db load {SIZE}%db {bytes(SIZE).hex()}%".encode())
    lines = bench.say(b"infer 4000000000 0%name%")
    assert lines[-3:] == ["e-[Interrupted by the next command]", "m-name-dut-[covp]", "m-ready"]
    assert lines.count("m-ready") == 1
    assert bench.say(b"results%") == ["e-[No inference was made yet]", "m-ready"]


@pytest.mark.costly
def test_laps_are_virtual_time(bench: FirmwareBench) -> None:
    """N inferences take N times as long as one, whatever the host does."""
    bench.restart()
    bench.say(f"db load {SIZE}%db {bytes(SIZE).hex()}%".encode())
    elapsed = []
    for count in (100, 1100, 2100):
        laps = [
            int(line.removeprefix("m-lap-us-"))
            for line in bench.say(f"infer {count} 0%".encode())
            if line.startswith("m-lap-us-")
        ]
        elapsed.append(laps[1] - laps[0])
    assert elapsed[0] > 0
    # SysTick's interrupts, of cores without a longer counter, come now and then
    assert abs((elapsed[2] - elapsed[1]) - (elapsed[1] - elapsed[0])) <= 2 + elapsed[2] / 1000


def test_energy_mode_says_so() -> None:
    bench = FirmwareBench("riscv32", "kws01", "energy")
    assert bench.boot[0] == "m-timestamp-mode-energy"
    bench.close()
