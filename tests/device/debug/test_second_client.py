"""A second debugger hears why it waits, and is served when the first has gone."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable

import pytest

from covp.device.debug import server as module
from covp.device.debug.gdb_stub import BUSY
from covp.device.debug.server import DebugServer
from covp.device.rsp_link import Decoder, Packet


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def echo(client: socket.socket) -> None:
    while data := client.recv(100):
        client.sendall(data)


def test_the_server_says_who_waits_for_whom() -> None:
    lines: list[str] = []
    with DebugServer(echo, on_event=lines.append) as server:
        at = server.host, server.port
        with socket.create_connection(at) as first, socket.create_connection(at) as second:
            until(lambda: lines)
            assert f":{second.getsockname()[1]} waits" in lines[0]
            assert f":{first.getsockname()[1]} is connected" in lines[0]
            first.close()
            second.sendall(b"now")
            second.settimeout(20)
            assert second.recv(3) == b"now"
    assert len(lines) == 1


def test_a_client_that_waits_for_long_is_told_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    with DebugServer(echo, busy=BUSY) as server:
        at = server.host, server.port
        with socket.create_connection(at) as first, socket.create_connection(at) as second:
            second.sendall(b"+$qSupported#37")
            second.settimeout(20)
            answer = b""
            while data := second.recv(1000):
                answer += data
            (packet,) = [item for item in Decoder().feed(answer) if isinstance(item, Packet)]
            assert packet.data.startswith(b"E.another GDB is connected")
            first.sendall(b"still here")
            first.settimeout(20)
            assert first.recv(10) == b"still here"


def test_closing_with_clients_that_wait() -> None:
    threads = set(threading.enumerate())
    server = DebugServer(echo)
    clients = [socket.create_connection((server.host, server.port)) for _ in range(3)]
    server.close()
    for client in clients:
        client.settimeout(20)
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
        client.close()
    assert set(threading.enumerate()) <= threads
