"""Bytes from outside for a serial port with interrupts: a log at its times, or a socket's."""

from __future__ import annotations

import socket
import threading
from functools import partial
from typing import Any

import pytest

from covp.device.debug.program_file import FirmwareRun
from covp.errors import AcceleratorError, DeviceFault
from covp.hardware.clock import Clock
from covp.hardware.replay import replay
from covp.hardware.serial_port import SerialFeed, SerialPort

from .bench import PLATFORMS, Bench

pytestmark = pytest.mark.parametrize("platform", PLATFORMS)

# RM0432 50.8: CR1 UE, RE, TE, RXNEIE; BRR; ISR RXNE; RDR; TDR
PROGRAM = """
#define REG(offset) (*(volatile uint32_t *)(PORT_BASE + offset))
volatile uint32_t count, ended;
uint8_t line[256];
void covp_interrupt(void)
{
    while (REG(0x1c) & 0x20u) {
        uint8_t byte = (uint8_t)REG(0x24);
        ended |= byte == '.';
        line[count++ % sizeof line] = byte;
        REG(0x28) = byte >= 'a' && byte <= 'z' ? byte - 32u : byte;
    }
}
int main(void)
{
    REG(0x0c) = 1000;
    REG(0x00) = 0x2du;
    interrupts_on(1);
    while (!ended)
        covp_sleep();
    return (int)count;
}
"""
PORT: tuple[str, str, dict[str, Any]] = ("port", "stm32_usart", {})
LOG = [(0.001, b"$gpgga,123519\n"), (0.0205, b"$gpgsv\n"), (0.0205, b"two\n"), (0.1, b"end.")]
TEXT = b"".join(data for _, data in LOG)


def _note(clock: Clock, cycles: list[int], byte: int) -> None:
    cycles.append(clock.now)


def port_of(bench: Bench) -> SerialPort:
    port = bench["port"]
    assert isinstance(port, SerialPort)
    return port


def test_a_log_is_replayed_at_its_times(platform: str) -> None:
    runs: list[FirmwareRun] = []
    for _ in range(2):
        with Bench(platform, PROGRAM, PORT) as bench:
            port, clock = port_of(bench), bench.device.clock
            cycles: list[int] = []
            port.on_byte = partial(_note, clock, cycles)
            begin = clock.now
            played = replay(clock, LOG, port.feed)
            runs.append(bench.run())
            assert port.sent == TEXT.upper() and played.done == len(LOG)
            received = bench.device.read(bench.symbols["line"].address, len(TEXT))
            assert received == TEXT and runs[-1].status == len(TEXT)
            due = [begin + seconds * clock.hertz for seconds, data in LOG for _ in data]
            late = [cycle - time for cycle, time in zip(cycles, due, strict=True)]
            assert all(0 <= delay < 4000 for delay in late)
    assert runs[0] == runs[1]


def test_a_cancelled_replay_and_a_wrong_one(platform: str) -> None:
    with Bench(platform, PROGRAM, PORT) as bench:
        port, clock = port_of(bench), bench.device.clock
        first = replay(clock, [(0.001, b"lost"), (0.002, b"lost")], port.feed)
        replay(clock, [(0.0015, b"kept.")], port.feed)
        first.cancel()
        first.cancel()
        bench.run()
        assert port.sent == b"KEPT." and first.done == 0
        with pytest.raises(AcceleratorError, match="event 0 to replay is at -1 s"):
            replay(clock, [(-1, b"x")], port.feed)
        replay(clock, [(0.001, b"a"), (0.0005, b"b")], port.feed)
        with pytest.raises(AcceleratorError, match=r"event 1 to replay is at 0\.0005 s"):
            bench.run()


def test_a_terminal_at_a_socket(platform: str) -> None:
    ours, theirs = socket.socketpair()
    answers: list[bytes] = []

    def talk() -> None:
        with theirs:
            for word in (b"hello ", b"there\n", b"bye."):
                theirs.sendall(word)
                got = b""
                while len(got) < len(word):
                    got += theirs.recv(100)
                answers.append(got)

    terminal = threading.Thread(target=talk)
    with Bench(platform, PROGRAM, PORT) as bench, ours:
        port, clock = port_of(bench), bench.device.clock
        port.on_byte = lambda byte: ours.sendall(bytes([byte]))
        terminal.start()
        with SerialFeed(port, clock, partial(ours.recv, 4096)):
            assert bench.run().status == 16
        terminal.join(20)
    assert answers == [b"HELLO ", b"THERE\n", b"BYE."]


def test_after_the_last_byte_a_sleeping_program_is_at_fault(platform: str) -> None:
    parts = [b"no", b"end", b""]
    with Bench(platform, PROGRAM, PORT) as bench:
        with (
            SerialFeed(port_of(bench), bench.device.clock, lambda: parts.pop(0)),
            pytest.raises(DeviceFault, match="endless sleep"),
        ):
            bench.run()
        assert port_of(bench).sent == b"NOEND"
