"""Accelerators in one class with mistakes: one line that names the accelerator and the layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import covp
from covp.accelerator import (
    Accelerator,
    CCall,
    Job,
    Limit,
    TensorSlice,
    number,
    real,
    result,
    table,
    tensor,
)
from covp.accelerator.partition import partition
from covp.errors import AcceleratorError, DeviceFault, UsageError
from covp.evaluation import build, rejected_layers
from covp.evaluation import run as run_build
from covp.graph.pattern import Pattern, constant, op, optional, wildcard
from covp.graph.reference import run_reference
from covp.hardware.arithmetic import exact_matmul, requantize
from covp.hardware.job import Number, Operand
from covp.hardware.job_timing import JobTiming
from covp.testing.verify import ConvCase, verify

LAYER = ConvCase(kind="FULLY_CONNECTED", batch=2, channels=(5, 3))
PARTS: dict[str, Operand | Number] = {
    part.name: part
    for part in (
        tensor("INPUT", "int8", lambda job: job.ROWS * job.DEPTH),
        table("WEIGHTS", "int8", lambda job: job.OUTPUTS * job.DEPTH),
        table("BIAS", "int32", lambda job: job.OUTPUTS),
        table("MULTIPLIER", "int32", lambda job: job.OUTPUTS),
        table("SHIFT", "int32", lambda job: job.OUTPUTS),
        result("OUTPUT", "int8", lambda job: job.ROWS * job.OUTPUTS),
        number("ROWS", 1, 4096),
        number("DEPTH", 1, 4096),
        number("OUTPUTS", 1, 4096),
        number("INPUT_ZERO_POINT", -128, 127),
        number("OUTPUT_ZERO_POINT", -128, 127),
        number("LOW", -128, 127),
        number("HIGH", -128, 127),
    )
}


def job(*changed: Operand | Number, in_place: bool = False) -> Job:
    """The job with some parts changed or added."""
    return Job(*(PARTS | {part.name: part for part in changed}).values(), in_place=in_place)


class Mac(Accelerator):
    """Fully connected layers; tests change it for the worse."""

    name = "mac"
    operators = ("FULLY_CONNECTED",)
    job = job()
    changed: Mapping[str, Any] = {}

    def registers(self, layer: Any) -> Mapping[str, Any]:
        """The layer's, then what a test changed."""
        sizes = {"ROWS": layer.batch, "DEPTH": layer.in_channels, "OUTPUTS": layer.out_channels}
        return {**super().registers(layer), **sizes, **self.changed}

    def compute(self, job: Any) -> Any:
        """One product."""
        rows = job.INPUT.reshape(job.ROWS, job.DEPTH).astype(np.int16) - job.INPUT_ZERO_POINT
        sums = exact_matmul(rows, job.WEIGHTS.reshape(job.OUTPUTS, -1).T) + job.BIAS
        zero_point = job.OUTPUT_ZERO_POINT
        return requantize(sums, job.MULTIPLIER, job.SHIFT, zero_point, job.LOW, job.HIGH)


def changed(**members: Any) -> Mac:
    """A class with other members, made."""
    made: Mac = type("Changed", (Mac,), members)()
    return made


def run(backend: Accelerator) -> bool:
    """Whether the layer's bits are right."""
    graph, inputs = LAYER.graph(), LAYER.inputs()
    with covp.Session("riscv32") as session:
        output = session.load(covp.compile(graph, "riscv32", [backend], allow_slower=True)).run(
            *inputs
        )
    return np.array_equal(output, run_reference(graph, inputs)[0])


@pytest.mark.parametrize(
    ("register", "value", "said"),
    [
        ("ROWS", 2.5, r"gives 2\.5 for ROWS, which is not an integer"),
        ("ROWS", float("nan"), "gives nan for ROWS, which is not an integer"),
        ("ROWS", None, "gives None for ROWS, which is not an integer"),
        ("ROWS", "2", "gives '2' for ROWS, which is not an integer"),
        ("ROWS", np.array([2, 3]), "for ROWS, which is not an integer"),
        ("BIAS", None, "gives None for BIAS, which is not declared as optional"),
        ("BIAS", np.zeros(3), "gives float64 for BIAS, which is declared as int32"),
        ("BIAS", np.zeros(2, np.int32), "gives 2 elements for BIAS, which is declared as 3"),
        ("BIAS", [[1], [1, 2]], "gives no array for BIAS"),
        ("GAIN", 1, "gives GAIN, which the job does not have"),
    ],
)
def test_registers_that_do_not_fit_the_job(register: str, value: Any, said: str) -> None:
    with pytest.raises(AcceleratorError, match=rf"^accelerator mac, layer layer: .*{said}"):
        run(changed(changed={register: value}))


@pytest.mark.parametrize("name", ["mac_", "_mac", "Mac__1", "_"])
def test_odd_names_have_one_prefix_in_all_of_the_driver(name: str) -> None:
    kind = type("Named", (Mac,), {"name": name})
    assert run(kind({"wait": "sleep"}))


@pytest.mark.parametrize("value", [float("nan"), 1e300, "a"])
def test_a_float_register_that_holds_no_float32(value: Any) -> None:
    with pytest.raises(AcceleratorError, match=r"layer layer: .* for GAIN, which is not a float32"):
        run(changed(job=job(real("GAIN")), changed={"GAIN": value}))


@pytest.mark.parametrize("value", [0.5, np.float64(0.1), float("inf"), np.int64(3)])
def test_a_float_register(value: Any) -> None:
    assert run(changed(job=job(real("GAIN")), changed={"GAIN": value}))


@pytest.mark.parametrize("value", [np.int64(2), np.uint8(2), 2.0])
def test_numbers_of_numpy_s_types(value: Any) -> None:
    assert run(changed(changed={"ROWS": value}))


@pytest.mark.parametrize("value", [None, [], 7])
def test_registers_that_are_no_mapping(value: Any) -> None:
    with pytest.raises(AcceleratorError, match=r"layer layer: registers\(\) gives .* by name"):
        run(changed(registers=lambda self, layer: value))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (tensor("INPUT", "int8", lambda j: j.NOPE), "size of INPUT raised .* has no NOPE"),
        (tensor("INPUT", "int8", lambda j: -4), "size of INPUT is -4"),
        (tensor("INPUT", "int8", lambda j: j.ROWS / 1), r"size of INPUT is 2\.0"),
        (tensor("INPUT", "int8", lambda j: 11), "INPUT is declared as 11 bytes, .* has 10"),
        (result("OUTPUT", "int8", lambda j: 24), "OUTPUT is declared as 24 bytes, .* has 6"),
        (tensor("OTHER", "int8", lambda j: 16), "OTHER is declared as 16 bytes, .* has 15"),
    ],
)
def test_operands_that_do_not_fit_the_layer(part: Operand, said: str) -> None:
    with pytest.raises(AcceleratorError, match=rf"^accelerator mac, layer layer: .*{said}"):
        run(changed(job=job(part)))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (tensor("INPUT", "int16", lambda j: 5), "type of INPUT int8; only int16"),
        (result("OUTPUT", "int32", lambda j: 6), "type of OUTPUT int8; only int32"),
        (tensor("OTHER", "float32", lambda j: 2), "type of OTHER int8; only float32"),
        (result("OUTPUT", "int8", lambda j: 3), "elements of OUTPUT 6; at most 3"),
    ],
)
def test_layers_of_other_types_and_more_than_one_job_are_rejected(
    part: Operand, reason: str
) -> None:
    split = partition(LAYER.graph(), [changed(job=job(part))])
    assert [refusal.reason for refusal in split.refusals] == [reason]
    assert split.refusals[0].limits


def test_a_unit_for_int8_leaves_float_layers_alone() -> None:
    graph = ConvCase(kind="FULLY_CONNECTED", dtype="float32", channels=(5, 3)).graph()
    split = partition(graph, [changed()])
    assert [refusal.reason for refusal in split.refusals] == [
        "FULLY_CONNECTED on float32; only int8"
    ]


def test_an_optional_tensor_that_the_layer_does_not_have() -> None:
    extra = [tensor(f"EXTRA_{i}", "int8", lambda j: 1, optional=True) for i in range(3)]
    backend = changed(job=job(*extra))
    (placement,) = partition(LAYER.graph(), [backend]).placements
    assert placement.match is not None
    assert backend.tensors(placement.match)[3] == 0, "input, weights and bias stand for the others"


def test_a_pattern_of_several_operators_without_a_description_of_them() -> None:
    below = op("FULLY_CONNECTED", wildcard(), constant(), optional())
    twice = Pattern("twice", op("FULLY_CONNECTED", below, constant(), optional()))
    with pytest.raises(AcceleratorError, match=r"mac, layer \w+: pattern twice stands for FULLY_"):
        covp.compile("toycar", "riscv32", [changed(patterns=(twice,))])


def test_a_predicate_that_raises() -> None:
    pattern = Pattern("odd", op("FULLY_CONNECTED", predicate=lambda op: bool(1 // 0)))
    with pytest.raises(AcceleratorError, match="mac, layer layer: a predicate of pattern odd"):
        run(changed(patterns=(pattern,)))


def test_patterns_and_operators_of_the_wrong_type() -> None:
    with pytest.raises(AcceleratorError, match="mac: patterns must hold Patterns, not 'FULLY"):
        run(changed(patterns=("FULLY_CONNECTED",)))
    with pytest.raises(TypeError, match=r"must be a tuple: \('FULLY_CONNECTED',\)"):
        changed(operators="FULLY_CONNECTED")


@pytest.mark.parametrize("name", ["my-mac", "3mac", "my mac", "", "../x", "m\u00e4c", None])
def test_a_name_that_is_no_part_of_a_c_name(name: Any) -> None:
    with pytest.raises(AcceleratorError, match=f"accelerator {name!r}: its name"):
        run(changed(name=name))


@pytest.mark.parametrize("work", [lambda self, job: 2.5, lambda self, job: np.int64(7)])
def test_macs_that_are_no_plain_int(work: Callable[..., Any]) -> None:
    assert run(changed(macs=work))


@pytest.mark.parametrize("platform", ["riscv32", "cortex-m0plus"])
@pytest.mark.parametrize("wait", ["poll", "sleep"])
def test_a_driver_whose_job_is_rejected_stops_with_the_reason(platform: str, wait: str) -> None:
    class Refusing(Mac):
        def check(self, job: Any) -> str | None:
            return "size" if job.ROWS == 2 else None

    with covp.Session(platform) as session:
        program = covp.compile(
            LAYER.graph(), platform, [Refusing({"wait": wait})], allow_slower=True
        )
        with pytest.raises(DeviceFault, match=r"mac\S* rejected its job: size \(by check\(\)\)"):
            session.load(program).run(*LAYER.inputs())


def test_a_rejected_operand_is_named() -> None:
    class Overlapping(Mac):
        def refine(self, match: Any, steps: Any) -> Any:
            image, _, target = steps[0].arguments
            return [CCall(steps[0].function, steps[0].header, (image, target, target))]

    with pytest.raises(DeviceFault, match=r"rejected its job: overlap \(OUTPUT with INPUT\)"):
        run(Overlapping())


@pytest.mark.parametrize("code", ["nope", False])
def test_a_check_that_gives_no_error_code(code: Any) -> None:
    with pytest.raises(AcceleratorError, match=rf"mac: check\(\) gave {code!r}; .*layer layer"):
        run(changed(check=lambda self, job: code))


@pytest.mark.parametrize(
    ("which", "offset", "said"),
    [
        (1, -3, "a TensorSlice at -3 of x, which ends at 10"),
        (2, 6, "a TensorSlice at 6 of y, which ends at 6"),
        (1, 0.0, r"a TensorSlice at 0\.0 of x"),
    ],
)
def test_parts_outside_their_tensors(which: int, offset: Any, said: str) -> None:
    class Cut(Mac):
        def refine(self, match: Any, steps: Any) -> Any:
            arguments = list(steps[0].arguments)
            arguments[which] = TensorSlice(arguments[which], offset)
            return [CCall(steps[0].function, steps[0].header, tuple(arguments))]

    with pytest.raises(AcceleratorError, match=f"accelerator mac, layer layer: {said}"):
        run(Cut())


def test_a_tensor_of_another_layer() -> None:
    foreign = LAYER.graph().inputs[0]

    class Elsewhere(Mac):
        def refine(self, match: Any, steps: Any) -> Any:
            image, _, target = steps[0].arguments
            return [CCall(steps[0].function, steps[0].header, (image, foreign, target))]

    with pytest.raises(AcceleratorError, match="layer layer: tensor x is neither input nor output"):
        run(Elsewhere())


@pytest.mark.costly
@pytest.mark.parametrize(
    "name",
    [
        "INT",
        "STATUS_X",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("IMAGE", "DEFAULT", "ASM", "UINT32_T", "VOLATILE", "NULL", "H")
        ),
    ],
)
def test_tensors_may_be_called_as_c_calls_other_things(name: str) -> None:
    parts = [part for part in PARTS.values() if part.name != "INPUT"]
    source = tensor(name, "int8", lambda j: j.ROWS * j.DEPTH)

    class Named(Mac):
        job = Job(source, *parts)

        def compute(self, job: Any) -> Any:
            job.INPUT = getattr(job, name)
            return super().compute(job)

    assert run(Named())
    verdict = verify(Named(), examples=2)
    assert verdict.failure is None, "with every warning on"


def test_numbers_that_vary_may_be_called_as_c_calls_other_things() -> None:
    assert run(changed(job=job(number("INT", 0, 9, varies=True)), changed={"INT": 3}))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CTRL", "CTRL is used twice"),
        ("DESCRIPTOR", "DESCRIPTOR is used twice"),
        ("BASE", "the unit and register BASE both"),
        ("IRQ", "the unit and register IRQ both"),
        ("INPUT_OFFSET", "INPUT_OFFSET and register INPUT both need the name INPUT_OFFSET"),
        ("STATUS_BUSY_MASK", "STATUS and register STATUS_BUSY_MASK both"),
        ("lower", "'lower': a register"),
    ],
)
def test_registers_whose_names_are_taken(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        job(number(name))


@pytest.mark.parametrize("bounds", [(5, 1), (0, 1 << 40), (-5, 0xFFFFFFFF), (-(1 << 40), 0)])
def test_numbers_that_are_no_range_of_a_register(bounds: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"number BIG: .* is not a range of 32-bit numbers"):
        number("BIG", *bounds)


@pytest.mark.parametrize("wait", ["poll", "sleep"])
@pytest.mark.parametrize("timing", [JobTiming(10**30, 0), JobTiming(-9, -9), JobTiming(0, 0, -1)])
def test_jobs_that_take_no_time_that_there_is(wait: str, timing: JobTiming) -> None:
    odd = type("Odd", (Mac,), {"timing": lambda self, job, nbytes: timing})
    with pytest.raises(AcceleratorError, match=r"mac\S*: a job of .* cycles; .* in layer layer"):
        run(odd({"wait": wait}))


def test_two_classes_of_one_name_in_a_session() -> None:
    graph = LAYER.graph()
    with covp.Session("riscv32") as session:
        first = session.load(covp.compile(graph, "riscv32", [Mac()]))
        session.load(covp.compile(graph, "riscv32", [Mac()]))
        with pytest.raises(UsageError, match=r"mac at 0x7\w+: another class is there already"):
            session.load(covp.compile(graph, "riscv32", [changed()]))
        assert np.array_equal(first.run(*LAYER.inputs()), run_reference(graph, LAYER.inputs())[0])


@pytest.mark.costly
def test_a_rejected_layer_is_worth_something_wherever_it_runs_now() -> None:
    slow, fast = Mac({"macs_per_cycle": 1, "startup_cycles": 5000}), Narrow()
    made = build("toycar", "riscv32", [slow, fast], allow_unused=True, allow_slower=True)
    result = run_build(made, check="output")
    entries = [entry for entry in rejected_layers(result) if entry.refusal.accelerator == "narrow"]
    assert len(entries) == 10
    assert all(layer.target.startswith("mac") for layer in result.program.layers)
    assert all((entry.potential_saving or 0) > 4000 for entry in entries)


class Narrow(Mac):
    """Takes nothing, but would be fast."""

    name = "narrow"

    def accepts(self, layer: Any) -> list[Limit]:
        """Narrower than any layer."""
        return [Limit("channels", layer.in_channels, at_most=1)]
