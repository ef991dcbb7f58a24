"""The library's interface: errors, contexts, hooks, prefix and static arena, called from C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from covp.compilers.elf import ElfImage
from covp.compilers.toolchain import SourceText, split_sources
from covp.device.virtual import VirtualDevice
from covp.evaluation import Sample, build
from covp.firmware import Project
from covp.graph.zoo.builder import GraphBuilder
from covp.runtime.linking import write_image
from covp.runtime.standalone import link_standalone

MAIN = """
#include "toycar.h"
#include "toycar_io.h"
#include <string.h>
static uint8_t first[TOYCAR_ARENA_BYTES] __attribute__((aligned(16)));
static uint8_t second[TOYCAR_ARENA_BYTES + 16] __attribute__((aligned(16)));
static int8_t out[2][TOYCAR_OUTPUT_0_ELEMENTS], other[TOYCAR_INPUT_0_ELEMENTS];
int layers_before, layers_after;
int main(void)
{
    toycar_context a = {0}, b;
    const int8_t *x = toycar_input_0;
    if (toycar_invoke(&a) != TOYCAR_NULL || toycar_run(&a, x, out[0]) != TOYCAR_NULL) return 1;
    if (toycar_input(&a, 0) || toycar_output(&a, 0) || toycar_invoke(0) != TOYCAR_NULL) return 2;
    if (toycar_init(0, first, sizeof first) != TOYCAR_NULL) return 3;
    if (toycar_init(&a, 0, sizeof first) != TOYCAR_NULL) return 4;
    if (toycar_init(&a, first, sizeof first - 1) != TOYCAR_SIZE) return 5;
    if (toycar_init(&b, second + 4, sizeof first) != TOYCAR_ALIGNMENT) return 6;
    if (toycar_invoke(&b) != TOYCAR_NULL) return 7;
    if (toycar_init(&a, first, sizeof first) || toycar_init(&b, second, sizeof second)) return 8;
    if (toycar_run(&a, 0, out[0]) != TOYCAR_NULL || toycar_run(&a, x, 0) != TOYCAR_NULL) return 9;
    if (toycar_input(&a, 1) || toycar_output(&a, 1)) return 10;
    memcpy(toycar_input(&b, 0), other, sizeof other);
    if (toycar_run(&a, x, out[0]) || toycar_invoke(&b) || toycar_run(&a, x, out[1])) return 11;
    if (memcmp(out[0], toycar_expected_0, sizeof out[0])) return 12;
    if (memcmp(out[1], toycar_expected_0, sizeof out[1])) return 13;
    if (!memcmp(toycar_output(&b, 0), toycar_expected_0, sizeof out[0])) return 14;
    return layers_before == 3 * TOYCAR_LAYERS && layers_after == layers_before ? 0 : 15;
}
"""
HOOKS = """
extern int layers_before, layers_after;
#define TOYCAR_BEFORE_LAYER(number) (void)(layers_before += (number) < TOYCAR_LAYERS_OF_MINE)
#define TOYCAR_AFTER_LAYER(number) (void)layers_after++
#define TOYCAR_LAYERS_OF_MINE 10
"""


def executed(project: Project, main: str, *flags: str, **headers: str) -> int:
    """The status of a main that is linked with a library and its sample."""
    platform = project.program.platform
    files = {**project.library.files, **project.sample}
    sources, own = split_sources({Path(name).name: text for name, text in files.items()})
    path = link_standalone(
        project.toolchain,
        platform,
        [*sources, SourceText("main.c", main)],
        (*project.program.flags, *flags),
        {**own, **{f"{name}.h": text for name, text in headers.items()}},
    )
    elf = ElfImage(path.read_bytes())
    with VirtualDevice(platform) as device:
        write_image(device, elf)
        device.execute(elf.symbols["covp_reset"].address, elf.symbols["covp_exit"].address)
        status = device.read(elf.symbols["covp_exit_status"].address, 4)
    return int.from_bytes(status, "little")


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["cortex-m0plus", "riscv32"])
def test_every_function_as_it_is_documented(platform: str) -> None:
    project = Project.of(build("toycar", platform))
    hooked = '-DTOYCAR_HOOKS="my_hooks.h"'
    assert executed(project, MAIN, hooked, my_hooks=HOOKS) == 0


@pytest.mark.costly
def test_names_begin_with_the_prefix(tmp_path: Path) -> None:
    made = build("kws", "riscv32", name="ear")
    project = Project.of(made)
    assert "include/ear.h" in project.library.files
    sources, headers = split_sources(
        {Path(name).name: text for name, text in project.library.files.items()}
    )
    objects = project.toolchain.compile(sources, headers, flags=made.program.flags)
    for path in objects:
        symbols = ElfImage(path.read_bytes()).symbols.values()
        visible = [symbol.name for symbol in symbols if symbol.visible and symbol.name]
        assert all(name.startswith("ear_") for name in visible), visible


def test_float_models_bring_their_mathematics() -> None:
    """Under their own name, since a C library's functions give other bits."""
    builder = GraphBuilder("curve")
    x = builder.input((1, 64), np.float32)
    y = builder.add("TANH", builder.add("EXP", x))
    project = Project.of(build(builder.graph(y), "riscv32f"))
    files = project.library.files
    name = project.library.name
    assert f"src/{name}_math.c" in files
    assert not any("<math.h>" in text for text in files.values())
    main = f"""
#include "{name}_selftest.h"
static uint8_t arena[{name.upper()}_ARENA_BYTES] __attribute__((aligned(16)));
int main(void)
{{
    {name}_context model;
    int status = {name}_init(&model, arena, sizeof arena);
    return status ? status : {name}_selftest(&model);
}}
"""
    assert executed(project, main) == 0


def test_samples_equal_the_reference() -> None:
    made = build("toycar", "riscv32")
    sample = Sample.random(made.graph, seed=5)
    project = Project.of(made, sample)
    (expected,) = sample.outputs
    assert np.array_equal(project.simulated.outputs[0], expected)
    values = ", ".join(str(int(v)) for v in expected.ravel()[:8])
    assert values in project.sample["toycar_io.h"]
