"""sww01: firmware that listens, interface board, energy monitor, the count of detections."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from covp.chip.platform_file import load_platform
from covp.compilers.toolchain import get_toolchain, runtime_dir, split_sources
from covp.errors import ModelError, ToolchainError, UsageError
from covp.evaluation import Build, build
from covp.firmware.firmware import board_config
from covp.firmware.library import Library
from covp.firmware.mlperf.bench import BoardBench
from covp.firmware.mlperf.detections import RUNNER_SECONDS, read_truth, score
from covp.firmware.mlperf.interface_board import InterfaceBoard
from covp.firmware.mlperf.log_mel import BANDS, HOP, log_mel, quantize
from covp.firmware.mlperf.power_monitor import decimal
from covp.firmware.mlperf.station import WakeWordStation
from covp.firmware.mlperf.wake_word import (
    NO_WORD,
    THRESHOLD,
    WINDOW_ROWS,
    build_wake_word,
    wake_word_application,
)
from covp.graph.attributes import Conv2D, FullyConnected, Padding, Softmax
from covp.graph.graph import Graph
from covp.graph.zoo.builder import GraphBuilder
from tests.docs.test_json import check, described
from tests.firmware.mlperf.terminal_client import Client

COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]
STRICT = (
    "-std=c99", "-Werror", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-align",
)  # fmt: skip
SCALE, ZERO, RATE = 0.003701042616739869, -128, 16_000


def loudness(rows: int = WINDOW_ROWS) -> Graph:
    """A network whose "word" is noise: a softmax of 40 (the mean of all features - 0.3)."""
    builder = GraphBuilder("loudness")
    x = builder.input((1, rows, 1, BANDS), np.int8, SCALE, ZERO)
    mean = builder.constant(np.full((1, 3, 1, BANDS), 100, np.int8), 1 / 100 / (3 * BANDS))
    means = builder.add(
        "CONV_2D", x, mean, attributes=Conv2D((1, 1), Padding()), scale=1 / 255, zero_point=-128
    )
    flat = builder.add("RESHAPE", means, shape=(1, rows - 2))
    weights = np.zeros((3, rows - 2), np.int8)
    weights[0] = 100
    scale = 40 / (rows - 2) / 100
    bias = builder.constant(np.array([-12 * 255 / scale, 0, 0]).astype(np.int32), scale / 255)
    dense = builder.constant(weights, scale)
    sums = builder.add("FULLY_CONNECTED", flat, dense, bias, attributes=FullyConnected(), scale=0.1)
    out = builder.add("SOFTMAX", sums, attributes=Softmax(), scale=1 / 256, zero_point=-128)
    return builder.graph(out)


def sound() -> NDArray[np.int16]:
    """Noise from 1.0 to 2.2 seconds, quiet noise before and after: 3.3 seconds, stereo."""
    rng = np.random.default_rng(5)
    level = np.full(int(3.3 * RATE), 3.0)
    level[RATE : int(2.2 * RATE)] = 3000.0
    left = (rng.normal(0, 1, level.size) * level).clip(-32_768, 32_767).astype(np.int16)
    return np.stack([left, rng.integers(-9000, 9000, left.size).astype(np.int16)], 1)


def expected(graph: Graph, samples: NDArray[np.int16]) -> list[int]:
    """Outputs of the reference on features in double precision."""
    rows = quantize(log_mel(np.concatenate([np.zeros(HOP, np.int16), samples])), SCALE, ZERO)
    program = build(graph, "riscv32").program
    outputs = [NO_WORD] * (WINDOW_ROWS - 1)
    for frame in range(WINDOW_ROWS - 1, len(samples) // HOP):
        window = rows[frame + 1 - WINDOW_ROWS : frame + 1].reshape(1, WINDOW_ROWS, 1, BANDS)
        outputs.append(int(program.reference([window])[0][0, 0]))
    return outputs


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("card")
    with wave.open(str(folder / "noise.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(sound().tobytes())
    (folder / "notes.txt").write_text("no wave")
    return folder


class Desk:
    """A board and an interface board without terminals."""

    def __init__(self, bench: BoardBench, card: Path) -> None:
        self.bench, self._text = bench, ""
        self.interface = InterfaceBoard(bench, card, self._write)

    def _write(self, text: str) -> None:
        self._text += text

    def say(self, command: str) -> str:
        self._text = ""
        self.interface.execute(command)
        return self._text


def made(platform: str, streaming: bool) -> Build:
    return build(loudness(), platform, streaming=streaming)


@pytest.fixture(
    scope="module", params=[("riscv32", True), ("riscv32", False), ("cortex-m0plus", True)]
)
def desk(request: pytest.FixtureRequest, card: Path) -> Iterator[Desk]:
    one = made(*request.param)
    with BoardBench(one.program, build_wake_word(one)) as bench:
        yield Desk(bench, card)


def outputs(reply: str) -> list[int]:
    """What the runner reads of the answer to `stop` (streaming_ww_utils.array_from_strings)."""
    joined = "".join(line.replace("[dut]: ", "") for line in reply.split("\r\n"))
    found = re.search(r"target activations:\s*(\[.*?\])\s*m-ready", joined)
    assert found, reply
    return [int(value) for value in found[1][1:-1].split(",")]


@pytest.mark.costly
def test_the_board_listens_like_the_reference(desk: Desk) -> None:
    """All outputs and each detection of two runs; the second one begins as the first did."""
    want = expected(loudness(), sound()[:, 0])
    assert max(want) > THRESHOLD and want[WINDOW_ROWS] < THRESHOLD, "the test has no detection"
    for _ in range(2):
        assert desk.say("dut start").endswith("[dut]: m-ready\r\n")
        assert desk.say("record_detections") == "Now recording detections\r\nm-ready\r\n"
        played = desk.say("play noise.wav")
        assert played == "Attempting to play noise.wav\nsucceeded.\nm-ready\r\n"
        reply = desk.say("dut stop")
        assert "e-[" not in reply
        got = np.array(outputs(reply))
        assert len(got) == len(sound()) // HOP and np.abs(got - want).max() <= 4
        times = [int(line[:-1]) for line in desk.say("print_detections").split("\r\n")[1:-2]]
        frames = [0, *np.nonzero(got > THRESHOLD)[0]]
        assert len(times) == len(frames)
        # the first one says when the audio began
        since = np.array(times) - times[0] - np.array(frames) * HOP / RATE * 1000
        assert np.abs(since).max() < 2


@pytest.mark.costly
def test_frames_are_marked_on_a_pin(desk: Desk) -> None:
    desk.say("dut start")
    desk.say("record_detections")
    desk.say("play noise.wav")
    desk.say("dut stop")
    text = desk.say("print_dutycycle")
    assert text.startswith("Duty cycle start times (s)\r\n") and text.endswith("m-ready\r\n")
    start, stop = (
        np.array([int(number) for number in re.findall(r"\d+", part)])
        for part in text.split("Duty cycle stop times (s)")
    )
    assert len(start) == len(stop) == 100, "the interface board records 100"
    assert np.all(np.diff(start) == 3200) and np.all((stop > start) & (stop < start + 3200))


@pytest.mark.costly
def test_the_interface_board_answers_as_the_runner_expects(desk: Desk) -> None:
    assert desk.say("name").endswith("m-ready\r\n")
    assert desk.say("ls") == "noise.wav\r\nnotes.txt\r\nm-ready\r\n"
    assert desk.say("setbaud 115200") == "set baud to: 115200\nm-ready\r\n"
    assert desk.say("nonsense") == "m-ready\r\n"
    for missing in ("play none.wav", "play notes.txt", "play ../card/none", "play"):
        assert "Error playing file" in desk.say(missing)
    first, end, *rest = desk.say("dut profile").split("\r\n")
    assert (first, end) == ("m-dut-passthrough(profile)", "m-ready")
    assert rest[1:] == ["[dut]: m-model-[sww01]", "[dut]: m-ready", ""]
    assert "e-[Unknown command: infer]" in desk.say("dut infer 1")
    assert "[dut]: Detection does not run\r\n" in desk.say("dut stop")
    desk.say("dut start")
    assert "e-[Detection runs already]" in desk.say("dut start")
    desk.say("dut stop")


@pytest.mark.costly
def test_a_core_that_is_too_slow_says_so(card: Path) -> None:
    """At a hundredth of the clock frames are lost, and the firmware lives on."""
    slow = msgspec.structs.replace(load_platform("riscv32"), clock_hz=1_000_000)
    one = build(loudness(), slow)
    with BoardBench(one.program, build_wake_word(one)) as bench:
        desk = Desk(bench, card)
        for command in ("dut start", "record_detections", "play noise.wav"):
            desk.say(command)
        assert "e-[Frames came faster than they were computed]" in desk.say("dut stop")
        assert "[dut]: m-name-dut-[covp]" in desk.say("dut name")


@pytest.mark.costly
def test_the_station_speaks_over_terminals(card: Path) -> None:
    """What the official runner does, byte by byte: three devices, samples and two events."""
    one = made("nrf52840", True)
    with WakeWordStation(one.program, build_wake_word(one), card) as station:
        assert station.monitor is not None
        with Client(station.interface) as host, Client(station.monitor) as meter:
            meter.send("htc\r\n")
            assert "ack htc" in meter.until("ack htc")
            meter.send("start\r\n")
            meter.until("ack start")
            for command in ("dut start", "record_detections", "play noise.wav"):
                host.send(f"{command}%")
                host.until("[dut]: m-ready\r\n" if command.startswith("dut") else "m-ready\r\n")
            host.send("dut stop%")
            host.until("[dut]: m-ready\r\n")
            meter.send("stop\r\n")
            text = meter.until("Acquisition completed")
        lines = [line for line in text.splitlines() if re.match(r"\d{4}[+-]\d\d$|event", line)]
        begin, end = (lines.index(f"event {number:02d} ris") for number in (0, 1))
        samples = [float(re.sub("([+-])", r"e\1", line)) for line in lines[begin + 1 : end]]
        assert 3300 <= len(samples) <= 3400, "one a millisecond of virtual time"
        energy = one.platform.energy
        assert energy is not None
        watts = energy.run.value * 1e-12 * one.platform.clock_hz
        assert sum(samples) == pytest.approx(watts * len(samples) / 1000, rel=0.01)


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus"])
def test_its_sources_compile_without_a_warning(platform: str, toolchain: str) -> None:
    one = made(platform, False)
    try:
        compiler = get_toolchain(toolchain, one.platform.core)
    except ToolchainError as error:
        pytest.skip(str(error))
    application = wake_word_application(Library.of(one.program))
    library = {Path(name).name: text for name, text in Library.of(one.program).files.items()}
    board = {
        "board.h": (runtime_dir() / "boards" / "board.h").read_text(),
        "board_config.h": board_config(one.platform),
    }
    sources, headers = split_sources({**application.files, **board, **library})
    own = [source for source in sources if source.name in application.files]
    assert len(own) >= 8 and compiler.compile(own, headers, flags=STRICT)


@pytest.mark.slow
def test_the_exported_project_is_the_board(card: Path, tmp_path: Path) -> None:
    """Built by make, it hears what the board of `covp board` hears."""
    folder = tmp_path / "project"
    options = ["-p", "riscv32", "--streaming", "--firmware", "mlperf-tiny", "-o", str(folder)]
    subprocess.run([*COVP, "export", "sww", *options], check=True, stdout=subprocess.DEVNULL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    subprocess.run(["make", "-C", folder, "-j2"], env=environment, check=True, capture_output=True)
    one = build("sww", "riscv32", streaming=True)
    replies = []
    for elf in (folder / "firmware.elf", build_wake_word(one)):
        with BoardBench(one.program, elf) as bench:
            desk = Desk(bench, card)
            for command in ("dut start", "record_detections", "play noise.wav"):
                desk.say(command)
            replies.append(desk.say("dut stop"))
    assert replies[0] == replies[1] and len(set(outputs(replies[0]))) > 10


@pytest.mark.costly
def test_the_command_serves_the_station(card: Path) -> None:
    """Its document; the terminals answer until it is interrupted."""
    command = [*COVP, "board", "sww"]
    options = ["-p", "riscv32", "--streaming", "--card", str(card), "--json"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, text
            text += line
        document = json.loads(text)
        assert check("covp.station/1", document) == set(described("covp.station/1"))
        path, vendor, product = document["ports"][0].rsplit(":", 2)
        assert (vendor, product) == ("0483", "374e") and len(document["ports"]) == 1
        with Client(path) as host:
            host.send("dut name%")
            assert "[dut]: m-name-dut-[covp]" in host.until("[dut]: m-ready\r\n")
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_energies_are_written_with_four_digits() -> None:
    written = {640.9e-6: "6409-07", 0.0: "0000-09", 9.9999e-6: "1000-08", 12.0: "1200-02"}
    for value, text in written.items():
        assert decimal(value) == text


def test_networks_of_another_shape_are_rejected() -> None:
    one = build(loudness(20), "riscv32")
    with pytest.raises(ModelError, match="one int8 input of 40 features"):
        build_wake_word(one)


def test_detections_are_counted_by_the_rules(tmp_path: Path) -> None:
    """The example of the runner's README: 2.60 s is a true positive, 2.8 s a false one."""
    windows = [(1.0, 1.6476250000000001), (7.0, 7.358625)]
    counted = score([0.5, 2.60, 2.8, 3.7, 3.9, 5.0, 9.0], windows)
    assert counted.true_positives == (1.0,) and counted.false_negatives == (7.0,)
    # one within a second after another is the same sound
    assert counted.false_positives == (0.5, 2.8, 3.9, 5.0, 9.0)
    assert score([2.8], windows, RUNNER_SECONDS).true_positives == (1.0,)
    assert score([20.0 + 2 * i for i in range(8)], []).passes
    assert not score([20.0 + 2 * i for i in range(9)], []).passes
    (tmp_path / "t.json").write_text(
        '[{"wav_file": "a.wav", "length_sec": 3, "detection_windows": [[1, 2]]}]'
    )
    (truth,) = read_truth(tmp_path / "t.json")
    assert (truth.wave, truth.seconds, truth.windows) == ("a.wav", 3.0, ((1.0, 2.0),))
    (tmp_path / "bad.json").write_text("[{}]")
    with pytest.raises(UsageError, match="not a truth file"):
        read_truth(tmp_path / "bad.json")
