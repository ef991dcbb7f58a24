"""Boards on pseudo terminals: clients that come and go, several boards, the command."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from covp.errors import DeviceFault
from covp.evaluation import build
from covp.firmware.mlperf.board import BenchmarkBoard, serial_port
from covp.firmware.mlperf.firmware import build_firmware
from covp.firmware.mlperf.serial_link import WINDOW
from covp.graph.reference import run_reference
from tests.docs.test_json import check, described

from .firmware_bench import small_network

SIZE = 12
GRAPH = small_network(SIZE)
COVP = [sys.executable, "-c", "from covp.cli.main import main; main()"]


class Client:
    """What the runner does with a port: commands, and lines up to ``m-ready``."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self.pending = b""

    def close(self) -> None:
        os.close(self.file)

    def ask(self, command: str) -> list[str]:
        os.write(self.file, f"{command}%".encode())
        lines: list[str] = []
        while not lines or lines[-1] != "m-ready":
            lines.append(self.line())
        return lines

    def line(self, seconds: float = 30.0) -> str:
        while b"\r\n" not in self.pending:
            assert select.select([self.file], [], [], seconds)[0], "the board says nothing"
            self.pending += os.read(self.file, 4096)
        line, self.pending = self.pending.split(b"\r\n", 1)
        return line.decode()

    def infer(self, data: bytes, count: int = 1) -> str:
        """The result line of a download and inferences."""
        self.ask(f"db load {len(data)}")
        for i in range(0, len(data), 5):
            last = self.ask(f"db {data[i : i + 5].hex()}")
        assert last == ["m-load-done", "m-ready"]
        return self.ask(f"infer {count} 0")[-2]


def expected(data: bytes) -> str:
    (output,) = run_reference(GRAPH, [np.frombuffer(data, np.int8).reshape(1, SIZE)])
    return "m-results-[" + ",".join(f"{0.25 * (int(v) + 5):.3f}" for v in output.ravel()) + "]"


def inputs(count: int) -> list[bytes]:
    rng = np.random.default_rng(8)
    return [rng.integers(-128, 128, SIZE, dtype=np.int8).tobytes() for _ in range(count)]


def open_board(platform: str = "riscv32", **options: str) -> BenchmarkBoard:
    return BenchmarkBoard(build_firmware(build(GRAPH, platform), "kws01"), **options)  # type: ignore[arg-type]


@pytest.fixture
def board() -> Iterator[BenchmarkBoard]:
    with open_board() as made:
        yield made


@pytest.mark.costly
def test_clients_come_and_go(board: BenchmarkBoard) -> None:
    """One that leaves within a transfer costs the next one an error line, and no more."""
    for data in inputs(3):
        leaving = Client(board.path)
        leaving.ask(f"db load {SIZE}")
        os.write(leaving.file, b"db 0102")
        leaving.close()
        client = Client(board.path)
        first = client.ask("name")
        assert first[0].startswith("e-[") and first[1:] == ["m-ready"]
        assert client.ask("name") == ["m-name-dut-[covp]", "m-ready"]
        assert client.infer(data) == expected(data)
        client.close()
    assert board.windows.inferences == 3


@pytest.mark.slow
def test_several_boards_at_once() -> None:
    """In one process, on different platforms, in turns within a transfer."""
    data = inputs(3)
    boards = [open_board(name) for name in ("riscv32", "cortex-m33", "riscv32")]
    try:
        assert len({board.path for board in boards}) == 3
        clients = [Client(board.path) for board in boards]
        for client in clients:
            client.ask(f"db load {SIZE}")
        for i in range(0, SIZE, 4):
            for client, own in zip(clients, data, strict=True):
                client.ask(f"db {own[i : i + 4].hex()}")
        results = [client.ask("infer 3 1")[-2] for client in clients]
        assert results == [expected(own) for own in data]
        for client in clients:
            client.close()
    finally:
        for board in boards:
            board.close()


@pytest.mark.costly
def test_a_window_lasts_long_enough_for_the_runner(board: BenchmarkBoard) -> None:
    """Five take ten seconds; an accuracy run's single inferences do not wait."""
    client = Client(board.path)
    (data,) = inputs(1)
    start = time.monotonic()
    client.infer(data, count=3)
    assert time.monotonic() - start >= WINDOW
    assert 5 * WINDOW > 10
    client.close()


@pytest.mark.costly
def test_real_pace_is_never_ahead_of_virtual_time() -> None:
    with open_board(pace="real") as board:
        client = Client(board.path)
        laps = []
        for _ in range(2):
            line = client.ask("timestamp")[0]
            laps.append((int(line.removeprefix("m-lap-us-")) * 1e-6, time.monotonic()))
            time.sleep(0.3)
        (first, before), (last, after) = laps
        # what passes on the host while the board waits passes on the board
        assert 0.2 < last - first <= after - before + 0.1
        client.close()


@pytest.mark.costly
def test_silence_is_broken_while_a_command_takes_long(
    board: BenchmarkBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner gives up after a time without a line, and ignores empty ones."""
    monkeypatch.setattr("covp.firmware.mlperf.serial_link._ALIVE", 0.2)
    client = Client(board.path)
    client.infer(inputs(1)[0])
    os.write(client.file, b"infer 4000000000 0%")
    seen = [client.line() for _ in range(6)]
    assert seen[:3] == ["m-warmup-start-0", "m-warmup-done", "m-infer-start-4000000000"]
    assert seen[3].startswith("m-lap-us-") and seen[4:] == ["", ""]
    while client.ask("name")[-2:] != ["m-name-dut-[covp]", "m-ready"]:
        pass
    client.close()


def test_nothing_is_left_of_a_closed_board() -> None:
    before = len(os.listdir("/proc/self/fd"))
    board = open_board()
    board.close()
    board.close()
    assert not Path(board.path).exists() or len(os.listdir("/proc/self/fd")) == before


def test_a_fault_of_the_firmware_is_an_error() -> None:
    with open_board() as board:

        def broken() -> None:
            raise DeviceFault("illegal instruction", pc=0)

        serial_port(board.device).on_empty = broken
        with pytest.raises(DeviceFault, match="illegal instruction"):
            board.wait()


@pytest.mark.costly
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command(ending: signal.Signals) -> None:
    """One document with the path; signals end it without an error."""
    command = [*COVP, "board", "kws", "-p", "riscv32", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        text = ""
        while not text.rstrip().endswith("}") or text.count("{") != text.count("}"):
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            text += line
        document = json.loads(text)
        assert check("covp.board/1", document) == set(described("covp.board/1"))
        assert document["schema"] == "covp.board/1" and document["benchmark"] == "kws01"
        client = Client(document["path"])
        assert client.ask("profile")[1] == "m-model-[kws01]"
        client.close()
        process.send_signal(ending)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
    finally:
        process.kill()
        process.communicate()
