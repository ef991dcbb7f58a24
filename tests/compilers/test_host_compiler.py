"""C and C++ for this machine, by the compiler that comes with covp."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from covp.compilers import host_compiler
from covp.compilers.host_compiler import (
    HostBinary,
    build_for_host,
    compile_for_host,
    host_key,
    own_gcc,
)
from covp.compilers.toolchain import SourceText
from covp.errors import ToolchainError, UsageError

CPP = """
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>
#include "scale.h"

template <typename T> struct Counter {
    std::vector<T> seen;
    explicit Counter(T limit) { for (T i = 0; i < limit; i++) seen.push_back(i); }
};

extern "C" int scaled_sum(int limit)
{
    auto counter = std::make_unique<Counter<int>>(limit);
    std::optional<int> total;
    try {
        if (limit < 0) throw std::invalid_argument("negative");
        for (int value : counter->seen) total = total.value_or(0) + scale(value);
    } catch (const std::exception &) {
        return -1;
    }
    return total.value_or(0);
}
"""
C = """
#include "scale.h"

int scaled_sum(int limit)
{
    int total = 0;
    if (limit < 0)
        return -1;
    for (int i = 0; i < limit; i++)
        total += scale(i);
    return total;
}
"""
HEADER = '#ifdef __cplusplus\nextern "C"\n#endif\nint scale(int value);\n'


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zig's own cache stays: its C++ library takes minutes to build."""
    from covp.base.cache import cache_dir

    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        monkeypatch.setenv(name, str(cache_dir("zig")))
    monkeypatch.setenv("COVP_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def forget_gcc() -> Iterator[None]:
    own_gcc.cache_clear()
    yield
    own_gcc.cache_clear()


def no_gcc() -> None:
    return None


OBJECT = HostBinary(".o", ("-O2", "-fPIC"), ("-r",))


@pytest.mark.costly
@pytest.mark.parametrize(
    ("program", "gcc"),
    [
        ("sum.c", True),
        pytest.param("sum.cpp", True, marks=pytest.mark.skipif(not which("g++"), reason="no g++")),
        # zig builds its C++ library on first use, a minute and a half of processor time
        pytest.param("sum.cpp", False, marks=pytest.mark.slow),
    ],
)
def test_a_folder_of_headers(
    tmp_path: Path, program: str, gcc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not gcc:
        monkeypatch.setattr(host_compiler, "own_gcc", no_gcc)
    include = tmp_path / "include"
    include.mkdir()
    (include / "scale.h").write_text(HEADER)
    source = tmp_path / program
    source.write_text(CPP if program.endswith(".cpp") else C)

    def build(factor: int) -> Path:
        c = SourceText(
            "scale.c", '#include "scale.h"\nint scale(int value) { return FACTOR * value; }\n'
        )
        flags = [f"-DFACTOR={factor}"]
        return compile_for_host("sum", "a sum", [source, c], include=[include], flags=flags)

    library = ctypes.CDLL(str(build(3)))
    assert library.scaled_sum(5) == 3 * (0 + 1 + 2 + 3 + 4)
    assert library.scaled_sum(-1) == -1
    assert build(3) == Path(library._name) != build(4)
    (include / "scale.h").write_text(HEADER + "/* changed */\n")
    assert build(3) != Path(library._name)


@pytest.mark.skipif(sys.platform != "linux", reason="GCC is looked for on Linux alone")
@pytest.mark.parametrize(
    "script",
    ["exit 1", "echo g++ 1.0; test $# = 1 # cannot compile", "echo g++ 2.0; touch $7; exit 1"],
)
def test_a_gcc_that_cannot_is_not_taken(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "g++"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert which("g++") == str(program)
    assert own_gcc() is None
    assert host_key() == host_key(is_cpp=False)
    own_gcc.cache_clear()
    assert own_gcc() is None, "what was tried is remembered"


@pytest.mark.skipif(not which("g++"), reason="no g++")
def test_a_library_is_of_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_gcc() is not None
    own = host_key()
    monkeypatch.setattr(host_compiler, "own_gcc", no_gcc)
    assert host_key() == own[:2] != own


def test_a_program(tmp_path: Path) -> None:
    kind = HostBinary("", ("-O2",), ())
    source = SourceText("main.c", "int main(void) { return 7; }\n")
    assert subprocess.run([compile_for_host("seven", "it", [source], kind)]).returncode == 7


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.c",
            "int f(void) { return nothing; }",
            r"^it cannot be compiled: .*a\.c:1:",
        ),
        (
            "a.cpp",
            "auto f() { return nothing; }",
            r"^it cannot be compiled: .*a\.cpp:1:",
        ),
        ("a.c", "int main(void) { return missing(); } int missing(void);", r"missing"),
    ],
)
def test_errors_are_one_line(name: str, text: str, message: str) -> None:
    with pytest.raises(ToolchainError, match=message) as caught:
        compile_for_host("broken", "it", [SourceText(name, text)], HostBinary("", (), ()))
    assert "\n" not in str(caught.value) and "covp-host-" not in str(caught.value)


@pytest.mark.costly
def test_many_files_are_announced_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One line, before they are compiled: that takes a minute where zig builds its library."""
    sources = [SourceText("one.cpp", "int one() { return 1; }"), SourceText("two.cpp", "int two;")]
    build_for_host("two files", sources, OBJECT)
    assert capfd.readouterr().err == "covp: compiling two files, once: 2 files ...\n"
    build_for_host("a file", sources[:1], OBJECT)
    build_for_host("files of C", [SourceText("one.c", "int one;"), SourceText("two.c", "int two;")])
    assert capfd.readouterr().err == ""


@pytest.mark.costly
def test_the_bundled_compiler_takes_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as it goes without its library, which only programs and shared libraries need."""
    monkeypatch.setattr(host_compiler, "own_gcc", no_gcc)
    (tmp_path / "scale.h").write_text(HEADER)
    made = build_for_host("it", [SourceText("sum.cpp", CPP)], OBJECT, include=[tmp_path])
    assert b"scaled_sum" in made and b"__1" in made, "names of zig's library, not of GCC's"


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.c: cannot be read"):
        compile_for_host("none", "it", [tmp_path / "none.c"])
