"""What can be named, what is installed, help and version."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from covp.chip.cores import core_names
from covp.chip.platform_file import platform_names
from covp.cli.main import COMMANDS, SECTIONS
from covp.graph import zoo

from .conftest import Call


def test_platforms(call: Call) -> None:
    done = call("platforms", "--json")
    assert (done.status, done.err) == (0, "")
    assert [entry["name"] for entry in done.document] == platform_names()
    found = {entry["name"]: entry for entry in done.document}
    board = found["stm32f746"]
    assert board["alias_of"] == "disco-f746ng" and found["disco-f746ng"]["alias_of"] is None
    assert board == found["disco-f746ng"] | {"name": "stm32f746", "alias_of": "disco-f746ng"} | {
        "description": board["description"]
    }
    assert board["clock_hz"] == 216_000_000
    assert found["host"]["clock_hz"] is None, "it is not known"
    assert (board["flash_bytes"], board["ram_bytes"]) == (1024 * 1024, 320 * 1024)
    text = call("platforms").out
    assert all(name in text for name in platform_names() if not found[name]["alias_of"])
    assert "disco-f746ng: stm32f746;" in text


def test_cores(call: Call) -> None:
    done = call("cores", "--json")
    assert (done.status, done.err) == (0, "")
    found = {entry["name"]: entry for entry in done.document}
    assert list(found) == core_names()
    m4, ibex = found["cortex-m4f"], found["ibex"]
    assert (m4["isa"], m4["timing"]["model"]) == ("armv7e-m+dsp+fpu", "m4")
    assert m4["timing"]["error"]["zero wait states"] == 0.053 and not m4["rtl"]
    assert ibex["rtl"] and ibex["area"]["kge"] == 36.8 and ibex["like"] == ["rv32imc"]
    assert found["x86-64"]["timing"] is None
    text = call("cores").out
    assert all(name in text for name in core_names())


def test_accelerators(call: Call) -> None:
    done = call("accelerators", "--json")
    assert (done.status, done.err) == (0, "")
    found = {entry["name"]: entry for entry in done.document}
    assert "requantize" in [parameter["name"] for parameter in found["qconv2d"]["parameters"]]
    text = call("accelerators").out
    assert "qconv2d" in text and "requantize=true" in text


@pytest.mark.parametrize("form", ["markdown", "header", "svd"])
def test_registers_are_text_and_never_beside_json(form: str, call: Call) -> None:
    assert call("accelerators", "gemm", "--registers", form).out
    refused = call("accelerators", "gemm", "--registers", form, "--json")
    assert refused.status == 2 and refused.document["error"]["kind"] == "UsageError"


def test_models(call: Call) -> None:
    done = call("models", "--json")
    assert (done.status, done.err) == (0, "")
    found = {entry["name"]: entry for entry in done.document}
    assert set(found) == set(zoo.names(more=True)) >= {"resnet", "kws", "vww", "toycar", "sww"}
    for entry in found.values():
        assert entry["source"] in ("official", "custom", "synthetic")
        assert Path(entry["path"]).is_file()
        assert entry["macs"] > 0
    assert all(name in call("models").out for name in found)


@pytest.mark.costly
def test_stand_ins_are_called_so(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("COVP_MODEL_DIR", raising=False)
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))
    run = call("run", "toycar", "-p", "riscv32", "--json").document
    assert run["model_source"] == "synthetic"
    assert "SYNTHETIC" in call("run", "toycar", "-p", "riscv32").out
    text = call("compare", "toycar", "-p", "riscv32", "-a", "qconv2d").out
    assert "toycar (synthetic)" in text and "covp models fetch" in text


def test_fetching_an_unknown_model(call: Call) -> None:
    assert "did you mean resnet" in call("models", "fetch", "resnett").refusal


@pytest.mark.costly
def test_doctor(call: Call) -> None:
    done = call("doctor", "--json")
    assert (done.status, done.err) == (0, "")
    found = {entry["tool"]: entry for entry in done.document}
    assert found["unicorn"]["version"] and found["ziglang"]["version"]
    assert {"openocd", "verilator", "qemu-system-arm", "arm-none-eabi-gcc"} <= set(found)
    assert all(entry["enables"] and entry["get"] for entry in found.values())
    assert all(tool in call("doctor").out for tool in found)


def test_doctor_without_tools(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("doctor")
    assert done.status == 0
    assert "missing" in done.out and "apt install gcc-riscv64-unknown-elf" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help(call: Call, command: str) -> None:
    done = call(command, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"Usage: covp {command}")


def test_commands_are_listed_in_sections(call: Call) -> None:
    text = call("--help").out
    assert re.findall(r"^(\w[\w ]*):", text, re.M) == ["Usage", "Options", *SECTIONS]
    listed = text.split("\n\nRun:\n")[1]
    assert re.findall(r"^  (\w+)  ", listed, re.M) == list(COMMANDS)
    assert all(len(line) <= 80 and not line.endswith("...") for line in text.splitlines()[1:])


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys; from covp.cli.main import covp; covp(['--help'], standalone_mode=False); "
        "assert not [m for m in sys.modules if m.startswith(('covp.evaluation', 'numpy'))]"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(("old", "new"), [("gdbserver", "gdb"), ("debugport", "port")])
def test_servers_for_debuggers_are_subcommands(call: Call, old: str, new: str) -> None:
    assert old not in call("--help").out
    options = call("debug", new, "--help").out.partition("\n")[2]
    assert options == call(old, "--help").out.partition("\n")[2]


@pytest.mark.parametrize(
    ("words", "path"),
    [(("run",), "covp run"), (("debug", "gdb"), "covp debug gdb"), (("--no",), "covp")],
)
def test_a_wrong_call_names_the_help_of_its_command(
    call: Call, words: tuple[str, ...], path: str
) -> None:
    assert call(*words).refusal.endswith(f"; see `{path} --help`")


def test_the_help_of_run_fits_two_screens(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert len(call("run", "--help").out.splitlines()) <= 100


def test_version(call: Call) -> None:
    assert call("--version").out.startswith("covp, version ")
