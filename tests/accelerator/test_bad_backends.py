"""Backends with mistakes: one clear error that names the backend and the layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

import covp
from covp.accelerator import AcceleratorBackend, CCall
from covp.accelerator.call import Step
from covp.errors import AcceleratorError, DeviceFault, ToolchainError, UsageError
from covp.evaluation import evaluate
from covp.graph.graph import Graph
from covp.graph.pattern import Match, Pattern, op, wildcard
from covp.hardware.job import PROTOCOL
from covp.hardware.job_unit import AcceptedJob, JobError, JobUnit
from covp.hardware.registers import RegisterMap
from covp.testing import ConvCase

LAYER = ConvCase(kind="FULLY_CONNECTED", batch=2, channels=(5, 3))


class Unit(JobUnit):
    """Refuses every job."""

    registers = RegisterMap(*PROTOCOL)

    def accept(self) -> AcceptedJob:
        """Never."""
        raise JobError("size")


class Odd(AcceleratorBackend):
    """A backend that tests change for the worse."""

    name = "odd"
    patterns: ClassVar[tuple[Pattern, ...]] = (Pattern("fc", op("FULLY_CONNECTED")),)
    peripheral = Unit
    body = "*(volatile uint32_t *)0x70000000 = 1;"

    def supports(self, match: Match) -> bool:
        """Everything."""
        return True

    def lower(self, match: Match) -> Step:
        """One call."""
        return CCall("odd_run", "odd.h", (match.op.input(0), match.op.output))

    def driver(self, base: int) -> Mapping[str, str]:
        """One function."""
        return {
            "odd.h": "#include <stdint.h>\nvoid odd_run(const void *x, void *y);\n",
            "odd.c": '#include "odd.h"\nvoid odd_run(const void *x, void *y)\n'
            f"{{ (void)x; (void)y; {self.body} }}\n",
        }


def run(backend: AcceleratorBackend) -> Any:
    graph = LAYER.graph()
    with covp.Session("riscv32") as session:
        return session.load(covp.compile(graph, "riscv32", [backend])).run(*LAYER.inputs())


@pytest.mark.costly
@pytest.mark.parametrize("wrong", [7, [], [7], None, "call"])
def test_a_lowering_of_the_wrong_type(wrong: Any) -> None:
    class Wrong(Odd):
        def lower(self, match: Match) -> Any:
            return wrong

    with pytest.raises(AcceleratorError, match=r"accelerator odd, layer layer: lower\(\)"):
        run(Wrong())


def test_a_pass_on_calls_of_the_wrong_type() -> None:
    class Wrong(Odd):
        def refine(self, match: Match, steps: Any) -> Any:
            return None

    with pytest.raises(AcceleratorError, match=r"accelerator odd, layer layer: refine\(\)"):
        run(Wrong())


@pytest.mark.parametrize("hook", ["before_partitioning", "after_partitioning"])
def test_graph_passes_that_raise_or_give_no_graph(hook: str) -> None:
    raises = type("Raises", (Odd,), {hook: lambda self, graph, *own, **more: 1 // 0})
    with pytest.raises(AcceleratorError, match=rf"odd: {hook}\(\) raised ZeroDivisionError"):
        run(raises())
    nothing = type("Nothing", (Odd,), {hook: lambda self, graph, *own, **more: None})
    with pytest.raises(AcceleratorError, match=rf"odd: {hook}\(\) must return a Graph"):
        run(nothing())


def test_a_driver_that_does_not_compile() -> None:
    class Wrong(Odd):
        body = "\nnonsense;"

    with pytest.raises(ToolchainError, match=r"driver of accelerator odd: odd\.c:4: .*nonsense"):
        run(Wrong())


def test_a_driver_that_is_no_text() -> None:
    class Wrong(Odd):
        def driver(self, base: int) -> Any:
            return "odd.c"

    with pytest.raises(AcceleratorError, match=r"odd: driver\(\) must return"):
        run(Wrong())


@pytest.mark.parametrize(
    "file", ["sub/odd.c", "/tmp/odd.c", "../odd.h", "odd_place.h", "odd.txt", 7]
)
def test_a_driver_file_that_is_no_plain_source(file: Any) -> None:
    class Wrong(Odd):
        def driver(self, base: int) -> Any:
            return {file: "int odd;"}

    with pytest.raises(AcceleratorError, match=r"odd: driver\(\) named a file .*is needed"):
        run(Wrong())


@pytest.mark.parametrize("file", ["layer.c", "layer.h"])
def test_a_driver_file_that_the_program_has_already(file: str) -> None:
    class Wrong(Odd):
        def driver(self, base: int) -> Mapping[str, str]:
            return {**Odd.driver(self, base), file: "int odd;"}

    with pytest.raises(AcceleratorError, match=rf"odd: the program has a file {file} already"):
        run(Wrong())


def test_two_drivers_with_a_file_of_one_name() -> None:
    class One(Odd):
        def driver(self, base: int) -> Mapping[str, str]:
            return {**Odd.driver(self, base), "driver.c": "int one;"}

    class Two(Odd):
        name = "two"

        def driver(self, base: int) -> Mapping[str, str]:
            return {"driver.c": "int two;"}

    with pytest.raises(AcceleratorError, match=r"two: the program has a file driver\.c already"):
        covp.compile(LAYER.graph(), "riscv32", [One(), Two()], allow_unused=True)


def test_a_driver_without_the_function() -> None:
    class Wrong(Odd):
        def lower(self, match: Match) -> Step:
            return CCall("odd_walk", "odd.h", (match.op.input(0), match.op.output))

    with pytest.raises(ToolchainError, match="odd_walk"):
        run(Wrong())


@pytest.mark.costly
def test_a_driver_that_never_starts_the_job_is_told_what_it_polls() -> None:
    class Wrong(Odd):
        body = "while (!(*(volatile uint32_t *)0x70000004 & 2));"

    with pytest.raises(DeviceFault, match=r"odd\.STATUS was read .*in layer layer \(odd\)"):
        run(Wrong())


def test_a_time_limit_names_the_register_as_well() -> None:
    class Wrong(Odd):
        body = "while (!(*(volatile uint32_t *)0x70000004 & 2)) *(volatile uint32_t *)0x70000008=0;"

    class Slow(Odd):
        body = (
            "for (volatile int i = 0;; i++) for (int j = 0; j < 100; j++)"
            " (void)*(volatile uint32_t *)0x70000004;"
        )

    graph = LAYER.graph()
    for backend, polls in ((Wrong(), False), (Slow(), True)):
        with covp.Session("riscv32", timeout=0.3) as session:
            module = session.load(covp.compile(graph, "riscv32", [backend]))
            with pytest.raises(DeviceFault, match=r"timeout.*in layer layer") as fault:
                module.run(*LAYER.inputs())
            assert ("polling odd.STATUS" in str(fault.value)) == polls


def test_a_model_that_raises() -> None:
    class Broken(Unit):
        def accept(self) -> AcceptedJob:
            raise RuntimeError("out of ideas")

    class Wrong(Odd):
        peripheral = Broken

    with pytest.raises(AcceleratorError, match=r"odd: .*out of ideas.*in layer layer \(odd\)"):
        run(Wrong())


def test_layers_on_an_accelerator_that_receives_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(Odd):
        body = "for (int i = 0; i < 6; i++) ((int8_t *)y)[i] = ((const int8_t *)x)[i];"

    with pytest.raises(AcceleratorError, match=r"odd received no job for its 10 layers"):
        evaluate("toycar", "riscv32", [Idle()])


def test_a_pattern_that_never_matches_is_warned_about() -> None:
    class Narrow(Odd):
        patterns = (
            Pattern("fc", op("FULLY_CONNECTED")),
            Pattern("twice", op("FULLY_CONNECTED", op("FULLY_CONNECTED"), wildcard(), wildcard())),
        )

    program = covp.compile(LAYER.graph(), "riscv32", [Narrow()])
    assert program.warnings == (
        "accelerator odd: pattern twice matches nothing, though the model has 1 FULLY_CONNECTED",
    )

    class Never(Odd):
        patterns = Narrow.patterns[1:]

    with pytest.raises(UsageError, match="gets no layer of this model"):
        covp.compile(LAYER.graph(), "riscv32", [Never()])


class Prepared(Odd):
    """Each layer counts up from what the start-up call left, and gives that number."""

    def startup(self) -> list[CCall]:
        """A call with constants."""
        return [CCall("odd_prepare", "odd.h", (42, 1.5))]

    def driver(self, base: int) -> Mapping[str, str]:
        """Two functions."""
        return {
            "odd.h": "#include <stdint.h>\nvoid odd_prepare(int32_t n, float f);\n"
            "void odd_run(const void *x, void *y);\n",
            "odd.c": '#include "odd.h"\nstatic int32_t seen;\n'
            "void odd_prepare(int32_t n, float f) { seen = n + (f > 1.0f); }\n"
            "void odd_run(const void *x, void *y)\n"
            "{ (void)x; seen++; for (int i = 0; i < 6; i++) ((int8_t *)y)[i] = (int8_t)seen; }\n",
        }


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("hosted", [False, True])
def test_start_up_calls_run_in_front_of_every_inference(
    platform: str, strict: bool, hosted: bool
) -> None:
    program = covp.compile(LAYER.graph(), platform, [Prepared()])
    with covp.Session(platform, strict=strict) as session:
        module = session.load(program, hosted=hosted)
        for _ in range(2):
            assert (module.run(*LAYER.inputs()) == 44).all()
        assert module.profile().between.instructions


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: [7], r"odd: startup\(\) gave 7"),
        (lambda: None, r"odd: startup\(\) must return several CCalls, not None"),
        (lambda: 1 // 0, r"odd: startup\(\) raised ZeroDivisionError"),
    ],
)
def test_start_up_calls_that_are_none(wrong: Any, said: str) -> None:
    class Wrong(Odd):
        def startup(self) -> Any:
            return wrong()

    with pytest.raises(AcceleratorError, match=said):
        run(Wrong())


def test_graph_hooks_are_told_their_matches() -> None:
    seen: list[Any] = []

    class Watching(Odd):
        def before_partitioning(self, graph: Graph) -> Graph:
            seen.append(len(graph.ops))
            return graph

        def after_partitioning(self, graph: Graph, own: Any) -> Graph:
            seen.append([match.op.name for match in own])
            return graph

    covp.compile(LAYER.graph(), "riscv32", [Watching()])
    assert seen == [1, ["layer"]]
