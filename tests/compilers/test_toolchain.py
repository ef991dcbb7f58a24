"""The compilers: what is cached, what is refused and in which words."""

import shutil
import subprocess
from pathlib import Path

import pytest

from covp.chip.cores import Core, all_cores, find_core
from covp.compilers.elf import ElfImage
from covp.compilers.toolchain import SourceText, Toolchain, get_toolchain, runtime_dir
from covp.errors import ToolchainError, UsageError

CASES = [
    (core, name)
    for core in all_cores()
    for name in ("zig", "gcc")
    if name == "zig" or core.gcc_prefix
]


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))


def toolchain_of(name: str, core: Core) -> Toolchain:
    if name == "gcc" and shutil.which(f"{core.gcc_prefix}gcc") is None:
        pytest.skip(f"no {core.gcc_prefix}gcc")
    return get_toolchain(name, core)


@pytest.fixture(params=["zig", "gcc"])
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    return toolchain_of(request.param, find_core("cortex-m4f"))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The compiler processes that were started."""
    started: list[str] = []
    run = subprocess.run

    def spy(command: list[str], **options: object) -> object:
        started.append(" ".join(command))
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", spy)
    return started


SCRIPT = 'ENTRY("f") SECTIONS { .text 0x1000 : { *(.text*) } .data 0x20000000 : { *(.data*) } }'


@pytest.mark.parametrize("core, name", CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_runtime_compiles_without_a_warning_on_every_core(core: Core, name: str) -> None:
    toolchain = toolchain_of(name, core)
    suffixes = {"arm": "_arm_m", "riscv": "_riscv", "x86": "_x86"}
    others = tuple(suffix for name, suffix in suffixes.items() if name != core.architecture)
    # printf is firmware's, on a board: tests/firmware/export compiles it
    paths = [path for path in sorted(runtime_dir().glob("*.[cS]")) if path.name != "printf.c"]
    sources = [SourceText.read(path) for path in paths if not path.stem.endswith(others)]
    assert len(sources) >= 5
    for path in toolchain.compile(sources, flags=("-Werror",)):
        assert ElfImage(path.read_bytes()).symbols


@pytest.mark.parametrize("core, name", CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_compiler_is_told_what_the_core_has(core: Core, name: str) -> None:
    """Floats, 64-bit products and SIMD are instructions where the core has them, else calls."""
    toolchain = toolchain_of(name, core)
    text = "float f(float a, float b) { return a * b; }\n"
    text += "long long g(int a, int b) { return (long long)a * b; }\n"
    if core.has("dsp"):
        text += "#include <arm_acle.h>\nint h(int a, int b) { return __smlad(a, b, 1); }\n"
    (path,) = toolchain.compile([SourceText("x.c", text)])
    content = path.read_bytes()
    multiplies = b"__aeabi_fmul" in content or b"__mulsf3" in content
    assert multiplies != core.has("fpu")
    long_multiplies = b"__aeabi_lmul" in content or b"__muldi3" in content
    assert long_multiplies != core.has("mull")


def test_a_second_build_starts_no_process(toolchain: Toolchain, calls: list[str]) -> None:
    sources = [
        SourceText("a.c", "int g(void); int f(void) { return g(); }"),
        SourceText("b.c", "int g(void) { return 1; }"),
    ]

    def build() -> bytes:
        again = get_toolchain(toolchain.name, toolchain.core)
        objects = again.compile(sources)
        return again.link([*objects, again.archive(objects)], SCRIPT).read_bytes()

    first = build()
    assert calls
    calls.clear()
    assert build() == first
    assert calls == []


def test_whatever_goes_into_a_build_is_seen(
    toolchain: Toolchain, calls: list[str], tmp_path: Path
) -> None:
    header = tmp_path / "deep.h"
    header.write_text("#define DEEP 1\n")
    (tmp_path / "top.h").write_text('#include "deep.h"\n')
    path = tmp_path / "a.c"
    path.write_text('#include "top.h"\n#include "made.h"\nint f(void) { return DEEP + MADE; }\n')

    def build(made: str = "#define MADE 1\n", flags: tuple[str, ...] = ()) -> Path:
        calls.clear()
        (built,) = toolchain.compile([SourceText.read(path)], {"made.h": made}, flags=flags)
        return built

    first = build()
    assert build() == first and not calls
    assert build("#define MADE 2\n") != first and calls
    assert build(flags=("-DX=1",)) != first and calls
    header.write_text("#define DEEP 2\n")
    changed = build()
    assert changed != first and calls, "a header behind a header"
    path.write_text(path.read_text().replace("+ MADE", "- MADE"))
    assert build() not in (first, changed) and calls
    header.write_text("#define DEEP 1\n")


def test_the_order_of_results_is_that_of_the_sources(toolchain: Toolchain) -> None:
    sources = [SourceText(f"s{i}.c", f"int f{i}(void) {{ return {i}; }}") for i in range(6)]
    toolchain.compile(sources[::2])
    for i, path in enumerate(toolchain.compile(sources)):
        assert f"f{i}" in ElfImage(path.read_bytes()).symbols


@pytest.mark.parametrize(
    "text, message",
    [
        ("int f(void)\n{\n    return x;\n}\n", r"^bad\.c:3: .*undeclared"),
        ('#include "none.h"\n', r"^bad\.c:1: .*none\.h"),
        ("int f(void) { return 1 }\n", r"^bad\.c:1: expected"),
        ("#error stop here\n", r"^bad\.c:1: .*stop here"),
    ],
)
def test_an_error_is_one_line_with_file_and_line(
    toolchain: Toolchain, text: str, message: str
) -> None:
    with pytest.raises(ToolchainError, match=message) as error:
        toolchain.compile([SourceText("good.c", "int g;"), SourceText("bad.c", text)])
    assert "\n" not in str(error.value)


def test_an_undefined_symbol_is_named_with_its_place(toolchain: Toolchain) -> None:
    text = "int missing(void);\nint f(void)\n{\n    return missing();\n}\n"
    objects = toolchain.compile([SourceText("a.c", text)], flags=("-g",))
    with pytest.raises(ToolchainError, match=r"^a\.c:4: undefined symbol missing$"):
        toolchain.link(objects, SCRIPT)


def test_a_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolchainError, match=r"apt install gcc-arm-none-eabi, or use .* zig"):
        get_toolchain("gcc", find_core("cortex-m4f"))
    with pytest.raises(ToolchainError, match="apt install gcc-riscv64-unknown-elf"):
        get_toolchain("gcc", find_core("rv32imc"))
    with pytest.raises(ToolchainError, match="no GCC for the core x86-64: use the toolchain zig"):
        get_toolchain("gcc", find_core("x86-64"))
    with pytest.raises(UsageError, match="unknown toolchain 'gc': did you mean gcc"):
        get_toolchain("gc", find_core("rv32imc"))


def test_the_version_is_a_name_and_a_number(toolchain: Toolchain) -> None:
    name, number = toolchain.version.split()
    assert name == toolchain.name
    assert number.count(".") == 2
