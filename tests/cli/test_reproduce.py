"""`covp reproduce`: a saved run once more, with what differs."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from covp.graph.models import find_model

from .conftest import Call


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def saved(call: Call, *arguments: object, **changes: object) -> Any:
    """The document of a run, which is written to run.json with some values changed."""
    done = call("run", *arguments, "--json")
    assert done.status == 0, done.err
    document = done.document
    Path("run.json").write_text(json.dumps(document | changes))
    return document


@pytest.mark.costly
def test_a_run_records_what_its_figures_depend_on(call: Call, small: Path) -> None:
    shutil.copy(small, "net.tflite")
    origin = saved(call, "net.tflite", "-p", "pico2", "--seed", "7", "--optimize", "size")["origin"]
    assert origin["model"]["name"] == str(Path("net.tflite").absolute())
    assert origin["model"]["sha256"] == hashlib.sha256(small.read_bytes()).hexdigest()
    assert origin["inputs"]["seed"] == 7 and origin["build"] == {"optimize": "size"}
    assert origin["platform"] == {
        "name": "pico2", "content": None, "content_key": origin["platform"]["content_key"],
    }  # fmt: skip
    assert "-O2" in origin["compiler"]["flags"] and origin["compiler"]["version"][:3] == "zig"
    kws = saved(call, "kws", "-p", "riscv32", "--check", "none")["origin"]
    official = hashlib.sha256(find_model("kws").path.read_bytes()).hexdigest()
    assert (kws["model"]["name"], kws["model"]["sha256"]) == ("kws", official)


@pytest.mark.parametrize(
    "options",
    [
        ("-p", "pico2"),
        ("-p", "riscv32", "-a", "gemm", "--overlap"),
        ("-p", "riscv32", "--untuned", "--check", "none", "--seed", "3"),
    ],
    ids=str,
)
def test_the_same_again(call: Call, small: Path, options: tuple[str, ...]) -> None:
    saved(call, small, *options)
    told = call("reproduce", "run.json")
    assert told.status == 0 and told.out.startswith("reproduced: "), told.out
    assert told.out.count("\n") == 1
    assert call("reproduce", "run.json", "--json").document["equal"]


def test_a_platform_of_ones_own_is_in_the_document(call: Call, small: Path) -> None:
    call("new", "platform", "own", "--core", "ibex", "--flash", "1M", "--ram", "64K")
    saved(call, small, "-p", "own.yaml")
    Path("own.yaml").unlink()
    assert call("reproduce", "run.json").status == 0


def test_it_runs_from_another_folder(
    call: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("new", "accelerator", "mac8").status == 0
    saved(call, small, "-p", "riscv32", "-a", "mac8/mac8.py")
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert call("reproduce", tmp_path / "run.json").status == 0


@pytest.mark.costly
def test_weights_beside_the_model_file_are_part_of_it(call: Call) -> None:
    """As torch.onnx.export stores them: the .onnx file stays the same when they change."""
    helper = onnx.helper
    for value in (1.0, 2.0):
        weights = onnx.numpy_helper.from_array(np.full((64, 64), value, np.float32), "w")
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", 1, (1, 64))],
            [helper.make_tensor_value_info("y", 1, (1, 64))],
            [weights],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        Path("net.data").unlink(missing_ok=True)
        onnx.save(model, "net.onnx", save_as_external_data=True, location="net.data",
                  size_threshold=0)  # fmt: skip
        if value == 1.0:
            saved(call, "net.onnx", "-p", "riscv32", "--check", "none")
    told = call("reproduce", "run.json")
    assert "changed since: model.constants_sha256: " in told.out and told.status == 1


def test_given_inputs_are_given_again(call: Call, small: Path) -> None:
    values = np.arange(72, dtype=np.int8).reshape(1, 6, 6, 2)
    np.save("x.npy", values)
    np.save("other.npy", values - 1)
    saved(call, small, "-p", "riscv32", "--input", "x.npy")
    assert "name them with --input" in call("reproduce", "run.json").refusal
    assert call("reproduce", "run.json", "--input", "x.npy").status == 0
    other = call("reproduce", "run.json", "--input", "other.npy")
    assert "changed since: inputs.sha256: " in other.out


def test_what_differs_is_named_with_what_has_changed(call: Call, small: Path) -> None:
    document = saved(call, small, "-p", "riscv32", toolchain="zig 0.1")
    told = call("reproduce", "run.json")
    assert told.status == 0 and "changed since: toolchain: zig 0.1, now zig" in told.out
    document["layers"][1]["cycles"] += 1
    document["memory"]["ram_bytes"] -= 4
    document["outputs"][0]["data"][0] ^= 1
    Path("run.json").write_text(json.dumps(document))
    told = call("reproduce", "run.json")
    assert told.status == 1 and told.out.startswith("DIFFERS: 3 of ")
    for key in ("layers[1].cycles: ", "memory.ram_bytes: ", "outputs[0].data[0]: "):
        assert f"differs: {key}" in told.out
    layers = document["layers"]
    layers.append(layers[0])
    Path("run.json").write_text(json.dumps(document))
    assert "now None" in call("reproduce", "run.json").out


@pytest.mark.costly
def test_another_model_file_is_named(call: Call, small: Path) -> None:
    from .conftest import small_model

    shutil.copy(small, "net.tflite")
    saved(call, "net.tflite", "-p", "riscv32")
    Path("net.tflite").write_bytes(small_model(features=5))
    told = call("reproduce", "run.json")
    assert told.status == 1 and "changed since: model.sha256: " in told.out
    Path("net.tflite").unlink()
    assert "no such file" in call("reproduce", "run.json").refusal


@pytest.mark.costly
def test_a_run_on_this_machine_has_another_time(call: Call, small: Path) -> None:
    saved(call, small, "-p", "host", "--device", "host")
    told = call("reproduce", "run.json")
    assert told.status == 0, told.out


def test_what_is_edited_is_refused_with_the_name_of_the_file(call: Call, small: Path) -> None:
    document = saved(call, small, "-p", "riscv32")
    for part, value in (("platform", {"name": "x", "content": {"a": 1}}),
                        ("accelerators", [{"request": "gone.py:Unit"}])):  # fmt: skip
        edited = document | {"origin": document["origin"] | {part: value}}
        Path("run.json").write_text(json.dumps(edited))
        assert call("reproduce", "run.json").refusal.startswith("covp: run.json: ")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "not the JSON of one `covp run`"),
        ("[]", "not the JSON of one `covp run`"),
        ("[" * 5000, "not the JSON of one `covp run`"),
        ('{"schema": "covp.compare/1"}', "not the JSON of one `covp run`"),
        ('{"schema": "covp.run/1"}', "written before runs recorded their origin"),
        ('{"schema": "covp.run/1", "origin": {"model": 3}}', "not the JSON of one `covp run`"),
    ],
)
def test_what_is_no_run_is_refused(call: Call, content: str, told: str) -> None:
    Path("run.json").write_text(content)
    assert told in call("reproduce", "run.json").refusal
    assert "run2.json" in call("reproduce", "run2.json").refusal
