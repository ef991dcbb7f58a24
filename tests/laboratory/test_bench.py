"""`Bench`: what it goes back to, and modules that give way to others."""

import numpy as np
import pytest

from covp.errors import CapacityError, DeviceFault
from covp.laboratory.bench import Bench
from covp.laboratory.target import Target
from covp.testing import Kernel

COUNT = "int count(void) { static int n; return ++n; }"


def big(name: str, kilobytes: int) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A module with a table of constants."""
    text = f"const char table[{kilobytes}000] = {{1}};\nint {name}(int i) {{ return table[i]; }}"
    return text, (), ()


@pytest.fixture(params=["cortex-m0plus", "riscv32"])
def bench(request):
    found = Bench(Target(request.param))
    yield found
    found.close()


def test_levels_nest(bench):
    count = Kernel(bench.module((COUNT, (), ()))["count"])
    values = [count()]
    bench.mark("file")
    values.append(count())
    bench.mark("test")
    values += [count(), count()]
    bench.back("test")
    values.append(count())
    late = Kernel(
        bench.module(("int late(void) { static int n = 5; return ++n; }", (), ()))["late"]
    )
    values.append(late())
    bench.back("test")
    values += [count(), late()]
    bench.back("test")
    bench.forget("test")
    bench.back("file")
    values += [count(), late()]
    assert values == [1, 2, 3, 4, 3, 6, 3, 6, 2, 6]


def test_memory_modules_and_faults_of_a_test_are_gone(bench):
    count = Kernel(bench.module((COUNT, (), ()))["count"])
    tensor = bench.session.tensor(np.arange(4, dtype=np.int32))
    used = bench.session.memory()
    bench.mark("test")
    bench.session.load_c("int one(void) { return 1; }")
    tensor.write(np.zeros(4, np.int32))
    with pytest.raises(DeviceFault):
        Kernel(bench.session.load_c("int at(int *p) { return *p; }")["at"])(0xF0000000)
    bench.back("test")
    assert bench.session.memory() == used
    assert count() == 1 and np.array_equal(tensor.numpy(), np.arange(4))


def test_the_same_calls_cost_the_same_after_going_back(bench):
    count = Kernel(bench.module((COUNT, (), ()))["count"])
    bench.mark("test")
    costs = []
    for _ in range(3):
        count()
        costs.append(count.latest)
        bench.back("test")
    assert costs == [costs[0]] * 3


def test_modules_of_earlier_files_give_way():
    bench = Bench(Target("cortex-m0plus"))  # 512 K of flash
    first, second, third = (big(name, 200) for name in ("a", "b", "c"))
    a, b = (bench.module(key)[name] for key, name in ((first, "a"), (second, "b")))
    with pytest.raises(CapacityError, match=r"section .rodata"):
        bench.module(third)
    bench.leave({first})
    assert Kernel(bench.module(third)["c"])(0) == 1
    assert not a.module.is_loaded and Kernel(b)(0) == 1
    assert bench.module(second) is b.module
    bench.leave({second})
    assert Kernel(bench.module(first)["a"])(0) == 1
    bench.close()
