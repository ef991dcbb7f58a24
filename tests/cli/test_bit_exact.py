"""`--check` of `covp run` and `covp compare`: levels, the first difference, the command again."""

import json
import re
import shlex
from pathlib import Path

import pytest

from .conftest import Call, wrong_outputs
from .documents import run_of

DRIVER = """
from covp.accel_backends.qconv2d.backend import QConv2dBackend

class Hasty(QConv2dBackend):
    '''Its driver does not wait.'''

    def driver(self, base):
        files = dict(super().driver(base))
        lines = files[f"{self.name}.c"].splitlines()
        files[f"{self.name}.c"] = "\\n".join(l for l in lines if "covp_job_wait" not in l)
        return files
"""


@pytest.fixture
def hasty(tmp_path: Path) -> str:
    """An accelerator whose driver never waits."""
    (tmp_path / "hasty.py").write_text(DRIVER)
    return f"{tmp_path}/hasty.py:Hasty"


@pytest.mark.costly
def test_a_difference_names_layer_and_element_and_the_command_again(call: Call, hasty: str) -> None:
    done = call("run", "kws", "-p", "riscv32", "-a", hasty, "--seed", "3")
    assert done.status == 1
    (line,) = re.findall(
        r"^NOT BIT-EXACT: layer conv_2d_0 \(CONV_2D on qconv2d\), .*$", done.out, re.M
    )
    assert re.search(
        r"input 1 \(uniform\): element \[0, \d+, \d+, \d+\] is -?\d+, not -?\d+; ", line
    )
    assert "what it means: docs/accuracy.md\n" in done.out
    (again,) = re.findall(r"^again: (.*)$", done.out, re.M)
    words = shlex.split(again)
    assert words[0] == "covp" and words[words.index("--seed") + 1] == "3"
    second = call(*words[1:])
    assert second.status == 1 and line in second.out


@pytest.mark.costly
def test_a_difference_in_json(call: Call, hasty: str) -> None:
    done = call("run", "kws", "-p", "riscv32", "-a", hasty, "--json")
    run = run_of(done.document)
    assert done.status == 1 and run.matches_reference is False
    mismatch = run.check.mismatch
    assert mismatch is not None and mismatch.layer == "conv_2d_0" and mismatch.target == "qconv2d"
    assert mismatch.got != mismatch.wanted and len(mismatch.element) == 4


@pytest.mark.costly
def test_compare_says_which_model_is_wrong_and_how_much_was_compared(
    call: Call, hasty: str
) -> None:
    done = call("compare", "kws", "-p", "riscv32", "-a", hasty)
    assert done.status == 1
    assert re.search(r"checked: \d+ layers x 4 inputs beside the reference, in \d", done.out)
    assert re.search(r"wrong in kws: NOT BIT-EXACT: layer conv_2d_0 ", done.out)
    (again,) = re.findall(r"again: (.*)$", done.out, re.M)
    assert call(*shlex.split(again)[1:]).status == 1


@pytest.mark.costly
def test_levels(call: Call, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = call("run", small, "-p", "riscv32", "--check", "output")
    assert "bit-exact: outputs x 1 input; TFLite Micro's arithmetic\n" in done.out
    monkeypatch.setattr("covp.evaluation.sample.run_all", wrong_outputs)
    done = call("run", small, "-p", "riscv32", "--check", "none")
    assert done.status == 0 and "not checked" in done.out
    document = call("run", small, "-p", "riscv32", "--check", "none", "--json").document
    assert document["matches_reference"] is None and document["check"]["inputs"] == 0
    assert call("run", small, "-p", "riscv32", "--check", "some").status == 2


@pytest.mark.costly
def test_the_check_is_not_part_of_the_simulation_time(call: Call, small: Path) -> None:
    documents = [
        call("run", small, "-p", "riscv32", "--check", level, "--json").document
        for level in ("layers", "none")
    ]
    counts = [(d["instructions"], d["cycles"], json.dumps(d["layers"])) for d in documents]
    assert counts[0] == counts[1]
    assert documents[0]["check"]["seconds"] > 0


def test_an_lstm_names_whose_arithmetic_it_follows(call: Call) -> None:
    """int8: LiteRT's, beside TFLite Micro's of the other layers."""
    done = call("run", "mnist_lstm", "-p", "riscv32", "--check", "output")
    assert "bit-exact: outputs x 1 input; TFLite Micro's and LiteRT's arithmetic\n" in done.out
