"""Failures: exit status, one line, a JSON document; output that cannot be written."""

import json
import os
import pickle
import struct
import subprocess
from pathlib import Path

import pytest

import covp
from covp.device.virtual import VirtualDevice
from covp.errors import DeviceError, DeviceFault
from covp.graph import zoo

from .conftest import Call
from .test_process import COVP

MODEL = ("-p", "riscv32")


STATUS = [
    # 2: the call is wrong
    (2, "UsageError", ("rum",)),
    (2, "UsageError", ("run",)),
    (2, "UsageError", ("compare", "kws")),
    (2, "UsageError", ("run", "kws", *MODEL, "--jsn")),
    (2, "UsageError", ("run", "kwss", *MODEL)),
    (2, "UnknownPlatform", ("run", "kws", "-p", "riscv31")),
    (2, "UsageError", ("run", "kws", *MODEL, "-a", "gem")),
    (2, "UsageError", ("run", "kws", *MODEL, "--device", "virtua")),
    (2, "UsageError", ("run", "kws", *MODEL, "--toolchain", "icc")),
    (2, "UsageError", ("run", "kws", *MODEL, "--seed", "-1")),
    (2, "UsageError", ("run", "kws", *MODEL, "--input", "none.npy")),
    (2, "UsageError", ("tune", "kws", *MODEL, "--seconds", "nan")),
    (2, "UsageError", ("tune", "kws", *MODEL, "--seconds", "inf")),
    (2, "UsageError", ("tune", "kws", *MODEL, "--seconds", "-1")),
    (2, "UsageError", ("export", "kws", *MODEL, "-o", "/proc/covp")),
    (2, "UsageError", ("export", "kws", *MODEL, "-o", "/dev/null/covp")),
    (2, "UsageError", ("cache", "limit", "many")),
    # 1: the work failed
    (1, "ModelError", ("run", "none.tflite", *MODEL)),
    (1, "PlatformError", ("run", "kws", "-p", "none.yaml")),
    (1, "DeviceError", ("run", "kws", *MODEL, "--device", "gdb:127.0.0.1:1")),
    (1, "CapacityError", ("run", "vww", "-p", "hifive1")),
]


@pytest.mark.costly
@pytest.mark.parametrize(("status", "kind", "arguments"), STATUS)
def test_status_line_and_document(
    call: Call,
    status: int,
    kind: str,
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = call(*arguments)
    assert plain.status == status and plain.refusal
    if arguments[0] in ("rum", "cache"):
        return
    done = call(*arguments, "--json")
    assert (done.status, done.err) == (status, plain.err)
    assert set(done.document) == {"schema", "error"}
    assert done.document["schema"] == "covp.error/1"
    error = done.document["error"]
    assert {"kind", "message", "where", "hint"} < set(error)
    assert error["kind"] == kind and f"covp: {error['message']}\n" == done.err


def test_where_and_hint(call: Call) -> None:
    error = call("run", "none.tflite", *MODEL, "--json").document["error"]
    assert error["where"] == "none.tflite"
    error = call("run", "kws", "-p", "riscv31", "--json").document["error"]
    assert "did you mean riscv32" in error["hint"]


@pytest.mark.parametrize(
    ("arguments", "where", "hint"),
    [
        (("run", "none.tflite", *MODEL), "none.tflite", "check the path"),
        (("run", "kwss", *MODEL), None, "did you mean kws?"),
        (("run", "kws", *MODEL, "--device", "virtua"), None, "did you mean virtual?"),
        (("run", "kws", *MODEL, "--input", "no such.npy"), "no such.npy", None),
        (("run", "kws", "-p", "none.yaml"), "none.yaml", None),
        (("check", "results.json", "--max-ms", "1"), "results.json", None),
        (("fits", "kws", "--budget", "sm=1"), "budget", "did you mean ms or mj?"),
    ],
)
def test_the_fields_of_the_document(
    call: Call, arguments: tuple[str, ...], where: str | None, hint: str | None
) -> None:
    """They are parts of the line, which begins and ends with them."""
    error = call(*arguments, "--json").document["error"]
    assert (error["where"], error["hint"]) == (where, hint)
    assert error["message"].startswith(f"{where}: " if where else "")
    assert error["message"].endswith(hint or "")


PLATFORM = """\
name: mine
core: {core}
clock_hz: 1000000
memory:
  - {{name: flash, kind: flash, start: 0, size: {size}}}
  - {{name: ram, kind: ram, start: 0x20000000, size: 64K}}
stack: 2K
"""


@pytest.mark.parametrize(
    ("core", "size", "key"),
    [("cortex-m4", "64K", "core"), ("cortex-m3", "64X", "memory[0].size")],
)
def test_the_key_of_a_wrong_file(
    call: Call, tmp_path: Path, core: str, size: str, key: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(PLATFORM.format(core=core, size=size))
    error = call("run", "kws", "-p", str(file), "--json").document["error"]
    assert error["key"] == key and f"{file}: {key}: " in error["message"]


def test_the_tensor_of_a_wrong_model(call: Call, tmp_path: Path) -> None:
    content = bytearray(zoo.find("kws").path.read_bytes())
    for start in range(len(content) - 4):  # the first input's shape, (1, 49, 10, 1)
        if content[start : start + 16] == struct.pack("<4i", 1, 49, 10, 1):
            content[start + 4 : start + 8] = struct.pack("<i", -1)
    (tmp_path / "wrong.tflite").write_bytes(content)
    error = call("run", str(tmp_path / "wrong.tflite"), *MODEL, "--json").document["error"]
    assert error["tensor"] and f"tensor {error['tensor']} has a dynamic shape" in error["message"]


@pytest.mark.slow
def test_the_bytes_of_what_does_not_fit(call: Call) -> None:
    error = call("run", "vww", "-p", "hifive1", "--json").document["error"]
    assert error["needed"] > error["available"] > 0
    assert f"{error['needed']}" in error["message"].replace(",", "")


def test_the_address_of_a_fault() -> None:
    fault = DeviceFault("unmapped read", pc=0x100, address=0x7000_0000, size=4)
    copied = pickle.loads(pickle.dumps(fault))
    assert copied.subject == fault.subject == {"address": 0x7000_0000, "length": 4}
    device = VirtualDevice(covp.load_platform("riscv32"))
    with device, pytest.raises(DeviceError, match="lie outside the memory map") as wrong:
        device.read(0x7000_0000, 8)
    assert wrong.value.subject == {"address": 0x7000_0000, "length": 8}


def test_json_by_environment(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVP_RUN_JSON", "1")
    assert call("run", "kwss", *MODEL).document["schema"] == "covp.error/1"


def test_json_behind_a_double_dash_is_an_argument(call: Call) -> None:
    assert call("run", "kwss", *MODEL, "--", "--json").out == ""


LONG = "a" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", LONG, *MODEL),
        ("run", f"{LONG}.tflite", *MODEL),
        ("run", "kws", "-p", LONG),
        ("run", "kws", "-p", f"{LONG}.yaml"),
        ("run", "kws", *MODEL, "-a", LONG),
        ("run", "kws", *MODEL, "-a", f"{LONG}.py:Unit"),
        ("run", "kws", *MODEL, "-a", f"gemm:{LONG}=1"),
        ("run", "kws", *MODEL, "--input", f"{LONG}.npy"),
        ("run", "kws", *MODEL, "--operators", f"{LONG}.py"),
        ("run", "kws", *MODEL, "--device", LONG),
        ("export", "toycar", *MODEL, "-o", f"/tmp/{LONG}"),
        ("new", "accelerator", LONG),
        ("gdbserver", *MODEL, "--elf", LONG),
        ("verify", f"{LONG}.py:Unit"),
    ],
    ids=lambda arguments: " ".join(word[:12] for word in arguments),
)
def test_names_that_are_too_long(call: Call, arguments: tuple[str, ...]) -> None:
    assert len(call(*arguments).refusal) < 1000


@pytest.mark.parametrize("shape", ["10000000000000000,", "2, 5000000000000000", "-1,", "'a',"])
def test_an_array_of_petabytes(call: Call, small: Path, tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape})}}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    assert str(path) in call("run", small, *MODEL, "--input", path).refusal


@pytest.mark.parametrize(
    "text",
    [
        *("\0\1", "def f(:", "import sys; sys.exit(3)", "raise KeyboardInterrupt", "1/0", "exit()"),
        *("raise SystemExit", "from covp import nothing", "(" * 300 + ")" * 300, "import no_such"),
    ],
)
def test_operators_that_are_junk(call: Call, small: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "ops.py"
    path.write_text(text)
    done = call("run", small, *MODEL, "--operators", path)
    if "KeyboardInterrupt" in text:
        assert (done.status, done.err) == (130, "covp: interrupted\n")
    else:
        assert str(path) in done.refusal


@pytest.mark.parametrize("path", [b"\xff\xfe\x00", "/", "/dev/null", "/proc/self/mem"])
def test_operators_that_are_no_file(
    call: Call, small: Path, tmp_path: Path, path: "str | bytes"
) -> None:
    if isinstance(path, bytes):
        (tmp_path / "ops.py").write_bytes(path)
        path = str(tmp_path / "ops.py")
    assert call("run", small, *MODEL, "--operators", path).refusal


@pytest.mark.costly
def test_a_full_disk_behind_standard_output() -> None:
    for arguments in (
        ["platforms"],
        ["platforms", "--json"],
        ["--help"],
        ["run", "kwss", "--json"],
    ):
        with open("/dev/full", "w") as full:
            done = subprocess.run([*COVP, *arguments], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode in (1, 2), arguments
        assert done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"covp: "), done.stderr


@pytest.mark.costly
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams(closed: str, small: Path, tmp_path: Path) -> None:
    """The work is done; what cannot be printed is said, and lands in no file."""
    target = tmp_path / "project"
    line = f'"$0" "$@" {closed}'
    command = [*COVP, "export", str(small), *MODEL, "-o", str(target)]
    done = subprocess.run(["sh", "-c", line, *command], capture_output=True, text=True)
    assert (target / "Makefile").is_file()
    assert done.returncode == (1 if "1>&-" in closed else 0)
    if closed == "1>&-":
        assert done.stderr == "covp: standard output: Bad file descriptor\n"
    assert "Traceback" not in done.stderr
    assert not any(b"files in" in path.read_bytes() for path in target.rglob("*.h"))


@pytest.mark.costly
def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\xfe.tflite"
    command = [os.fsencode(word) for word in COVP]
    done = subprocess.run(
        [*command, b"run", name, b"-p", b"riscv32", b"--json"], capture_output=True
    )
    assert done.returncode == 1 and done.stderr.count(b"\n") == 1
    assert json.loads(done.stdout)["error"]["kind"] == "ModelError"
