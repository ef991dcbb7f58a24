"""covp multicore: the example's firmware by the command is the firmware by Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import covp
from covp.firmware.multicore import System
from covp.peripherals.sampler import Sampler
from tests.plain import plain

from .conftest import Call

FIRMWARE = Path(__file__).parents[2] / "examples" / "two_cores"
FRAMES, PLATFORM = 5, "dual-riscv32"
OPTIONS = {"FRAMES": FRAMES, "HOPS": 1, "HOP_ROWS": 1, "ROW_BYTES": 40, "FEATURES": 0,
           "PERIOD": 3_200_000}  # fmt: skip


@pytest.mark.costly
@pytest.mark.skipif(not FIRMWARE.is_dir(), reason="the examples are not in the wheel")
def test_it_is_what_python_runs(call: Call, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).integers(-128, 128, (FRAMES, 40)).astype(np.int8)
    np.save(tmp_path / "rows.npy", rows)
    defines = [f"{name}={value}" for name, value in OPTIONS.items()]
    sources = {"sensor": FIRMWARE / "sensor.c", "main": FIRMWARE / "wake_word.c"}
    done = call(
        "multicore", "-p", PLATFORM, *(f"{core}={path}" for core, path in sources.items()),
        "--model", "main=sww", "--streaming", "--samples", str(tmp_path / "rows.npy"),
        *(word for define in defines for word in ("-D", define)), "--json",
    )  # fmt: skip
    assert done.status == 0
    with System(PLATFORM) as system:
        own = system.platform.for_core("main")
        program = covp.compile("sww", own, streaming=True)
        for core, path in sources.items():
            model = program if core == "main" else None
            system.load_c(core, [path], model, [f"-D{define}" for define in defines])
        sampler = system.peripherals["sampler"]
        assert isinstance(sampler, Sampler)
        sampler.feed(rows)
        expected = system.run()
        outputs = system.variable("main", "outputs", np.int8)
    assert done.document == plain(expected.document())
    network = program.executor()
    reference = [network.run(row.reshape(program.inputs[0].shape))[0] for row in rows]
    assert np.array_equal(outputs, np.concatenate(reference).ravel())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["main"], "'main' is not of the form CORE=FILE"),
        (["main=a.elf", "--model", "kws"], "'kws' is not of the form CORE=MODEL"),
        (["main=a.elf", "--model", "main=kws"], "one ELF file"),
        (["main=a.c", "main=b.elf"], "one ELF file"),
        (["main=a.elf", "--model", "sensor=kws"], "--model sensor=kws: the core has no C files"),
        (["main=/nothing.elf"], "/nothing.elf: cannot be read"),
        (["main=ok.c", "--samples", "none.npy"], "--samples: none.npy cannot be read"),
        (["main=ok.c"], "core sensor has no firmware"),
        (["main=ok.c", "sensor=ok.c", "--until", "sensr"], "unknown core 'sensr'"),
        (["mian=ok.c"], "no core 'mian'"),
    ],
)
def test_a_wrong_call_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ok.c").write_text("int main(void) { return 0; }")
    assert said in call("multicore", "-p", PLATFORM, *words).refusal


def test_the_exit_status_says_that_a_main_failed(call: Call, tmp_path: Path) -> None:
    for value in (0, -3):
        file = tmp_path / f"{value}.c"
        file.write_text(f"int main(void) {{ return {value}; }}")
        words = [f"{core}={file}" for core in ("main", "sensor")]
        done = call("multicore", "-p", PLATFORM, *words)
        assert done.status == int(value < 0) and "rv32imc" in done.out
