"""Sessions: when calls run, where modules go, what is refused."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from covp.errors import CapacityError, DeviceError, DeviceFault, ToolchainError, UsageError
from covp.runtime.session import Session

Open = Callable[..., Session]

COUNTER = """
#include <stdint.h>
static int32_t value;
int32_t add(int32_t n) { return value += n; }
void store(int32_t *to) { *to = value; }
void crash(void)
{
    *(volatile int *)0x60000000 = 1;
}
"""


def device_value(session: Session, address: int) -> int:
    return int.from_bytes(session.device.read(address, 4), "little")


def test_a_call_waits_until_its_result_is_asked_for(session: Session) -> None:
    module = session.load_c(COUNTER)
    value = module.address("value")
    calls = [module["add"](n) for n in range(1, 101)]
    assert device_value(session, value) == 0
    assert calls[49].result() == 50 * 51 // 2
    assert calls[-1].result() == 5050
    module["add"](1)
    assert device_value(session, value) == 5050
    session.sync()
    assert device_value(session, value) == 5051


def test_a_tensor_shows_what_queued_calls_leave_in_it(session: Session) -> None:
    module = session.load_c(COUNTER)
    cell = session.tensor(np.zeros(1, np.int32))
    module["add"](5)
    module["store"](cell)
    assert cell.numpy() == [5]
    module["store"](cell)
    cell.write(np.array([9], np.int32))
    assert cell.numpy() == [9], "the queued store must come before the write"


def test_strict_runs_at_once(open_session: Open) -> None:
    session = open_session("riscv32", strict=True)
    module = session.load_c(COUNTER)
    module["add"](3)
    assert device_value(session, module.address("value")) == 3


def test_queued_calls_run_when_the_session_ends(open_session: Open) -> None:
    session = open_session("cortex-m4")
    with session:
        module = session.load_c(COUNTER)
        call = module["add"](3)
    assert call.result() == 3
    for use in (session.sync, lambda: module["add"](1), lambda: session.tensor([1])):
        with pytest.raises(UsageError, match="session is closed"):
            use()


def test_modules_stand_side_by_side_and_unloading_gives_the_space_back(session: Session) -> None:
    before = session.memory()
    first, second = session.load_c(COUNTER), session.load_c(COUNTER + "\nint32_t more(void);\n")
    assert first["add"](1).result() == 1
    assert second["add"](10).result() == 10
    assert first["add"](1).result() == 2, "the modules share a variable"
    assert session.memory().flash_bytes > before.flash_bytes
    place = first.address("add")
    first.unload()
    with pytest.raises(UsageError, match="was unloaded"):
        first["add"](1)
    third = session.load_c(COUNTER.replace("+= n", "-= n"))
    assert third.address("add") == place, "the freed space is not reused"
    assert third["add"](1).result() == -1, "old machine code ran"
    assert second["add"](1).result() == 11
    second.unload()
    third.unload()
    assert session.memory() == before


def test_a_module_goes_into_a_gap_between_others(session: Session) -> None:
    pad = "int32_t pad(int32_t x) { return x %s; }"
    large = "#include <stdint.h>\nconst int32_t table[500] = {1, 2};\n"
    large += "int32_t get(int32_t i) { return table[i]; }\n"
    modules = [session.load_c(large), session.load_c("#include <stdint.h>\n" + pad % "+ 1")]
    hole = modules[0].address("table")
    modules[0].unload()
    small = session.load_c("#include <stdint.h>\n" + pad % "* 3")
    assert small.address("pad") < hole + 2000
    assert session.load_c(large)["get"](1).result() == 2
    assert modules[1]["pad"](4).result() == 5
    assert small["pad"](4).result() == 12


def test_too_large_is_refused_with_the_sizes_before_anything_is_written(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session("hifive1")
    before = session.memory()
    monkeypatch.setattr(session.device, "write", lambda *_: pytest.fail("the device was written"))
    ram = "static char b[20000]; char *f(int i) { b[i] = 1; return b; }"
    with pytest.raises(
        CapacityError, match=r"module\.c: section \.bss needs 20000 bytes.* ram"
    ) as r:
        session.load_c(ram)
    assert (r.value.needed, r.value.available < 16384) == (20000, True)
    flash = "const char b[5000000] = {1}; char f(int i) { return b[i]; }"
    with pytest.raises(CapacityError, match=r"section \.rodata needs 5000000 bytes.* flash"):
        session.load_c(flash)
    with pytest.raises(CapacityError, match="tensor 30000 int8 needs 30000 bytes"):
        session.tensor(np.zeros(30000, np.int8))
    assert session.memory() == before


def test_tensor_memory_comes_back_when_freed_or_forgotten(open_session: Open) -> None:
    session = open_session("hifive1")
    for _ in range(20):
        session.tensor(np.zeros(8000, np.uint8))  # not held
    held = session.tensor(np.zeros(8000, np.uint8))
    with pytest.raises(CapacityError):
        session.tensor(np.zeros(8000, np.uint8))
    held.free()
    held.free()
    session.tensor(np.zeros(8000, np.uint8))
    with pytest.raises(UsageError, match="was freed"):
        held.numpy()


def test_a_tensor_in_a_queued_call_lives_until_it_has_run(open_session: Open) -> None:
    session = open_session("riscv32")
    module = session.load_c(COUNTER)
    module["add"](7)
    address = (cell := session.tensor(np.zeros(1, np.int32))).address
    module["store"](cell)
    del cell
    other = session.tensor(np.zeros(1, np.int32))
    assert other.address != address
    session.sync()
    assert device_value(session, address) == 7


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "int64", "float32", "float64", "bool"]
)
def test_tensors_keep_shape_dtype_and_content(
    open_session: Open, shape: tuple[int, ...], dtype: str
) -> None:
    session = open_session("cortex-m0plus")
    array = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    tensor = session.tensor(array)
    assert tensor.address % 16 == 0
    result = tensor.numpy()
    assert (result.shape, result.dtype) == (array.shape, array.dtype)
    assert np.array_equal(result, array)
    big_endian = session.tensor(array.astype(array.dtype.newbyteorder(">")))
    assert np.array_equal(big_endian.numpy(), array)


def test_a_tensor_takes_only_its_own_shape(open_session: Open) -> None:
    tensor = open_session("riscv32").tensor(np.zeros((2, 3), np.int8))
    with pytest.raises(UsageError, match=r"shape \(2, 3\) int8 cannot take .* \(3, 2\) int8"):
        tensor.write(np.zeros((3, 2), np.int8))
    with pytest.raises(UsageError, match="int16"):
        tensor.write(np.zeros((2, 3), np.int16))


def test_a_fault_names_symbol_and_line_and_drops_what_is_behind_it(session: Session) -> None:
    module = session.load_c(COUNTER)
    done, crash, behind = module["add"](1), module["crash"](), module["add"](1)
    with pytest.raises(DeviceFault) as fault:
        session.sync()
    assert fault.value.address == 0x60000000
    assert fault.value.symbol is not None and fault.value.symbol.startswith("crash")
    assert fault.value.source == "module.c:8"
    assert done.result() == 1
    for call in (crash, behind):
        with pytest.raises(DeviceError, match="did not run"):
            call.result()
    assert module["add"](1).result() == 2, "the session is of no use after a fault"


def test_stack_overflow_is_a_fault(session: Session) -> None:
    module = session.load_c(
        "int f(int n) { volatile char big[256]; big[n & 255] = 1;"
        " return n ? f(n - 1) + big[0] : 0; }",
        flags=("-fno-optimize-sibling-calls",),
    )
    assert module["f"](3).result() is not None
    with pytest.raises(DeviceFault, match="stack overflow"):
        module["f"](100000).result()


def test_workspace_is_given_in_stack_order_and_ends_with_the_task(session: Session) -> None:
    module = session.load_c("""
#include <covp_runtime.h>
char *kept;
uint32_t distance(uint32_t n)
{
    char *a = covp_workspace_alloc(n), *b = covp_workspace_alloc(n), *c = covp_workspace_alloc(1);
    uint32_t apart = (uint32_t)(b - a);
    if ((uintptr_t)a % 16 || (uintptr_t)b % 16 || (uintptr_t)c % 16) return 1;
    covp_workspace_free(b);
    if ((char *)covp_workspace_alloc(1) <= c) return 2;   /* b lies below c: not yet free */
    covp_workspace_free(NULL);
    return apart;
}
char *leak(uint32_t n) { return covp_workspace_alloc(n); }
""")
    assert module["distance"](100).result() == 112 + 16
    first = module["leak"](5000).result()
    assert first is not None and first > 0
    assert module["leak"](5000).result() == first, "a task's workspace outlives it"
    assert module["leak"](0xFFFFFFF0).result() == 0
    assert module["leak"](session.platform.ram.bytes).result() == 0


def test_workspace_does_not_touch_tensors(session: Session) -> None:
    module = session.load_c("""
#include <covp_runtime.h>
#include <string.h>
uint32_t fill(void)
{
    uint32_t size = 1u << 31;
    void *p;
    while (!(p = covp_workspace_alloc(size))) size -= size > 4096 ? 4096 : 16;
    memset(p, 0xff, size);
    return size;
}
""")
    tensors = [session.tensor(np.full(100, i, np.uint8)) for i in range(5)]
    tensors[1].free()
    tensors[3].free()
    filled = module["fill"]().result()
    assert filled is not None and filled > session.platform.ram.bytes // 4
    assert all((tensors[i].numpy() == i).all() for i in (0, 2, 4))


def test_c_files_see_headers_beside_them_and_included_folders(
    open_session: Open, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "near.h").write_text("#define NEAR 5\n")
    (tmp_path / "other" / "far.h").write_text("#define FAR 6\n")
    source = tmp_path / "sum.c"
    source.write_text(
        '#include "near.h"\n#include <far.h>\nint sum(void) { return NEAR + FAR + N; }'
    )
    session = open_session("riscv32")
    module = session.load_c(source, include=[tmp_path / "other"], flags=["-DN=100"])
    assert module["sum"]().result() == 111
    (tmp_path / "near.h").write_text("#define NEAR 7\n")
    module = session.load_c(str(source), include=[tmp_path / "other"], flags=["-DN=100"])
    assert module["sum"]().result() == 113, "a changed header was not seen"


@pytest.mark.parametrize("toolchain", ["zig", "gcc"])
def test_errors_of_the_compiler_name_file_and_line(open_session: Open, toolchain: str) -> None:
    session = open_session("cortex-m4", toolchain=toolchain)
    with pytest.raises(ToolchainError, match=r"^module\.c:2: .*undeclared"):
        session.load_c("int f(void) {\n return nothing; }\n")
    with pytest.raises(ToolchainError, match=r"^module\.c:3: undefined symbol missing$"):
        session.load_c("int missing(void);\nint f(void)\n{ return missing(); }\n")
    with pytest.raises(UsageError, match=r"no_such\.c: cannot be read"):
        session.load_c("no_such.c")


def test_names_that_do_not_exist_are_refused(open_session: Open) -> None:
    with pytest.raises(UsageError, match="unknown toolchain 'clang'"):
        open_session("riscv32", toolchain="clang")
    with pytest.raises(UsageError, match="unknown device 'virtuel': did you mean virtual"):
        open_session("riscv32", device="virtuel")


def test_an_endless_loop_is_a_fault(session: Session) -> None:
    module = session.load_c("volatile int on = 1;\nvoid spin(void)\n{\n    while (on) { }\n}\n")
    session.timeout = 0.05
    with pytest.raises(DeviceFault, match=r"timeout.* in spin.*module\.c:4"):
        module["spin"]().result()


def test_a_long_queue_runs_in_what_memory_is_left(open_session: Open) -> None:
    session = open_session("hifive1")
    module = session.load_c(COUNTER)
    fill = max(gap.size for gap in session.image_memory.ram.gaps()) - 300
    held = session.tensor(np.zeros(fill, np.int8))
    calls = [module["add"](1) for _ in range(200)]
    assert [call.result() for call in calls] == list(range(1, 201))
    assert not held.numpy().any()
    rest = session.tensor(np.zeros(280, np.int8))
    with pytest.raises(CapacityError, match="queue of 2 calls"):
        session.queue.run(lost := [module["add"](1) for _ in range(2)])
    session.queue.drop_all()
    with pytest.raises(DeviceError, match="did not run"):
        lost[0].result()
    assert module["add"](1).result() == 201  # one by one they need no memory
    rest.free()
    assert module["add"](1).result() == 202


def test_a_warm_session_starts_no_process(
    virtual_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual_session.load_c(COUNTER)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    with Session(virtual_session.platform, toolchain=virtual_session.toolchain.name) as again:
        assert again.load_c(COUNTER)["add"](2).result() == 2


def test_a_fault_at_the_end_of_a_session_is_seen_and_the_session_closed() -> None:
    with pytest.raises(DeviceFault, match="crash"), Session("riscv32") as session:
        session.load_c(COUNTER)["crash"]()
    with pytest.raises(UsageError, match="session is closed"):
        session.sync()
