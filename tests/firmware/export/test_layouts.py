"""Every layout: complete, described by its manifest, and built as far as there are tools."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from covp.errors import UsageError
from covp.evaluation import build
from covp.firmware import Project, export_project
from covp.firmware.layouts import layout_names

from .firmware import run_firmware

PACKAGES = ["zephyr", "arduino", "platformio", "esp-idf", "cmsis-pack", "cmake"]


def project(platform: str, toolchain: str = "zig", *accelerators: str) -> Project:
    return Project.of(build("toycar", platform, accelerators, toolchain=toolchain))


def run(folder: Path, *command: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    # libgcc's own objects lack notes on the stack that clang's have: the linker says so
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "GNU-stack" not in line]
    assert not [line for line in lines if "warning:" in line]
    return done.stdout


@pytest.mark.parametrize("layout", layout_names())
def test_the_manifest_names_every_file(tmp_path: Path, layout: str) -> None:
    made = project("riscv32")
    written = export_project(made, tmp_path / "out", layout)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert sorted([*manifest["files"], "manifest.json"]) == [path.as_posix() for path in written]
    for name, digest in manifest["files"].items():
        content = (tmp_path / "out" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest, name
    assert manifest["memory"]["arena_bytes"] == made.program.arena_bytes
    assert manifest["inference"]["instructions"] == made.simulated.profile.instructions
    bill = json.loads((tmp_path / "out/toycar.spdx.json").read_text())
    assert {f"./{name}" for name in manifest["files"]} == {
        *(file["fileName"] for file in bill["files"]),
        "./toycar.spdx.json",
    }
    again = tmp_path / "again"
    export_project(made, again, layout)
    for path in written:
        assert (again / path).read_bytes() == (tmp_path / "out" / path).read_bytes(), path


@pytest.mark.costly
@pytest.mark.parametrize(
    ("platform", "toolchain"),
    [
        ("cortex-m0plus", "zig"),
        ("riscv32", "gcc"),
        pytest.param("cortex-m0plus", "gcc", marks=pytest.mark.slow),
        pytest.param("riscv32", "zig", marks=pytest.mark.slow),
    ],
)
def test_cmake_builds_what_was_simulated(tmp_path: Path, platform: str, toolchain: str) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed (apt install cmake)")
    made = project(platform, toolchain)
    export_project(made, tmp_path / "out", "cmake")
    run(tmp_path / "out", "cmake", "-B", "build")
    run(tmp_path / "out", "cmake", "--build", "build")
    ran = run_firmware(made.program, (tmp_path / "out/build/firmware.elf").read_bytes())
    assert ran.status == 0 and ran.text.splitlines()[-1] == "pass"
    assert ran.instructions == made.simulated.profile.instructions


def test_make_takes_clang(tmp_path: Path) -> None:
    """Compiled by clang, linked by GCC; the instructions are another compiler's."""
    if shutil.which("clang") is None or shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("clang or GCC for Arm is not installed")
    made = project("cortex-m0plus", "gcc")
    export_project(made, tmp_path / "out")
    run(tmp_path / "out", "make", "-j2", "CC=clang --target=arm-none-eabi -fshort-enums")
    ran = run_firmware(made.program, (tmp_path / "out/firmware.elf").read_bytes())
    assert ran.status == 0 and ran.text.splitlines()[-1] == "pass"
    assert ran.instructions != made.simulated.profile.instructions


@pytest.mark.costly
@pytest.mark.parametrize(
    ("platform", "compiler"),
    [("cortex-m4", "arm-none-eabi-gcc"), ("riscv32", "riscv64-unknown-elf-gcc")],
)
def test_make_takes_gcc_where_zig_was_used(tmp_path: Path, platform: str, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    made = project(platform, "zig")
    export_project(made, tmp_path / "out")
    run(tmp_path / "out", "make", "-j2", f"CC={compiler}")
    ran = run_firmware(made.program, (tmp_path / "out/firmware.elf").read_bytes())
    assert ran.status == 0 and ran.text.splitlines()[-1] == "pass"


@pytest.mark.costly
def test_make_runs_no_python_of_the_folder(tmp_path: Path) -> None:
    made = project("cortex-m0plus", "zig")
    export_project(made, tmp_path / "out")
    (tmp_path / "out" / "ziglang.py").write_text("raise SystemExit('run by make')\n")
    run(tmp_path / "out", "make", "-j2")
    assert (tmp_path / "out" / "firmware.elf").is_file()


@pytest.mark.costly
def test_cmake_makes_the_library_for_this_machine_where_no_toolchain_is_wanted(
    tmp_path: Path,
) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed (apt install cmake)")
    export_project(project("cortex-m0plus", "zig"), tmp_path / "out", "cmake")
    run(tmp_path / "out", "cmake", "-B", "build", "-DCMAKE_TOOLCHAIN_FILE=")
    run(tmp_path / "out", "cmake", "--build", "build")
    assert list((tmp_path / "out" / "build").glob("lib*.a"))
    assert not (tmp_path / "out" / "build" / "firmware.elf").exists()


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["mps2-an386", "mps3-an547", "hifive1", "qemu-riscv32"])
def test_the_readme_s_command_ends_on_qemu(tmp_path: Path, platform: str) -> None:
    made = project(platform, "zig")
    export_project(made, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    (command,) = re.findall(r"^    (qemu-system-.*)$", text, re.M)
    if shutil.which(command.split()[0]) is None:
        pytest.skip("QEMU is not installed")
    run(tmp_path / "out", "make", "-j2", "DEFINES=-DBOARD_OUTPUT_SEMIHOSTING")
    done = subprocess.run(
        shlex.split(command), cwd=tmp_path / "out", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "pass"


@pytest.mark.costly
@pytest.mark.parametrize("layout", layout_names())
def test_nothing_stands_alone_on_this_machine(tmp_path: Path, layout: str) -> None:
    """Layouts with firmware say so; the others are libraries that this machine compiles."""
    made = project("host")
    if layout in ("make", "cmake"):
        with pytest.raises(UsageError, match="no programs for it that stand alone"):
            export_project(made, tmp_path / "out", layout)
        assert not (tmp_path / "out").exists()
    else:
        export_project(made, tmp_path / "out", layout)


@pytest.mark.costly
@pytest.mark.parametrize("layout", PACKAGES)
def test_the_library_compiles_with_its_own_folders_alone(tmp_path: Path, layout: str) -> None:
    """With the C library of GCC, as these build systems have one."""
    compiler = shutil.which("arm-none-eabi-gcc")
    if compiler is None:
        pytest.skip("no GCC for Arm")
    made = project("cortex-m4", "gcc", "gemm")
    folder = tmp_path / "out"
    export_project(made, folder, layout)
    include = [f for f in ("include", "src") if (folder / f).is_dir()]
    flags = ["-mcpu=cortex-m4", "-mthumb", "-O2", "-Wall", "-Wextra", "-Werror"]
    for source in sorted(folder.glob("src/*.c")):
        run(folder, compiler, *flags, *(f"-I{f}" for f in include), "-c", str(source), "-o",
            str(tmp_path / f"{source.stem}.o"))  # fmt: skip
    assert (tmp_path / "toycar.o").is_file() and (tmp_path / "gemm.o").is_file()


def test_cpp_takes_the_header(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler (apt install g++)")
    made = project("riscv32")
    export_project(made, tmp_path / "out", "arduino")
    (tmp_path / "Arduino.h").write_text(
        "#include <stdint.h>\nstruct Port { void begin(long); void println(const char *);\n"
        "explicit operator bool(); };\nextern Port Serial;\n"
    )
    sketch = tmp_path / "out/examples/selftest/selftest.ino"
    run(tmp_path, compiler, "-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I.",
        "-Iout/src", str(sketch))  # fmt: skip


def test_zephyr_names_what_is_there(tmp_path: Path) -> None:
    """The keys of scripts/zephyr_module.py, and files where they say."""
    made = project("riscv32")
    folder = tmp_path / "out"
    export_project(made, folder, "zephyr")
    module = yaml.safe_load((folder / "zephyr/module.yml").read_text())
    assert set(module) <= {"name", "build", "samples"} and module["name"] == "toycar"
    assert (folder / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (folder / module["build"]["kconfig"]).read_text().startswith("config TOYCAR\n\tbool")
    lists = (folder / "zephyr/CMakeLists.txt").read_text()
    named = [line.strip() for line in lists.splitlines() if line.strip().startswith("../src/")]
    assert sorted(named) == sorted(f"../src/{p.name}" for p in folder.glob("src/*.c"))
    for sample in module["samples"]:
        assert list((folder / sample).rglob("sample.yaml"))


def test_the_pack_holds_what_its_description_names(tmp_path: Path) -> None:
    made = project("cortex-m4")
    folder = tmp_path / "out"
    export_project(made, folder, "cmsis-pack")
    (description,) = folder.glob("*.pdsc")
    root = ElementTree.parse(description).getroot()
    named = {file.attrib["name"] for file in root.iter("file")}
    (pack,) = folder.glob("*.pack")
    vendor, name = root.findtext("vendor"), root.findtext("name")
    release = root.find("releases/release")
    assert release is not None
    assert pack.name == f"{vendor}.{name}.{release.attrib['version']}.pack"
    held = set(zipfile.ZipFile(pack).namelist())
    assert {n for n in named if not n.endswith("/")} <= held
    assert description.name in held and root.findtext("license") in held


def test_the_model_library_format_is_one_archive(tmp_path: Path) -> None:
    made = project("riscv32")
    export_project(made, tmp_path / "out", "mlf")
    with tarfile.open(tmp_path / "out/toycar.mlf.tar") as archive:
        names = archive.getnames()
        member = archive.extractfile("./metadata.json")
        assert member is not None
        metadata = json.load(member)
    module = metadata["modules"]["toycar"]
    (main,) = module["memory"]["functions"]["main"]
    assert metadata["version"] == 7 and module["executors"] == ["aot"]
    assert main["workspace_size_bytes"] == made.program.arena_bytes
    assert main["io_size_bytes"] == 1280
    assert "./codegen/host/include/toycar.h" in names and "./codegen/host/src/toycar.c" in names


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    made = project("riscv32")
    with pytest.raises(UsageError, match=r"no layout 'cmak'.*cmake"):
        export_project(made, tmp_path / "out", "cmak")
