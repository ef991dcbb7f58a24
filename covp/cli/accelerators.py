"""``covp accelerators``: what can be named with --accel, and the register maps."""

from __future__ import annotations

import click

from covp.accelerator.registry import find_backend, list_backends
from covp.cli import options
from covp.cli.lists import ListedAccelerator, ListedParameter
from covp.cli.output import echo, print_json


@click.command()
@click.argument("accelerator", required=False, metavar="[ACCEL]")
@click.option(
    "--registers",
    type=click.Choice(["markdown", "header", "svd"]),
    help="Print ACCEL's register map: a table, the driver's C header, or CMSIS-SVD.",
)
@click.option(
    "--area", is_flag=True, help="Print the gates of ACCEL's Verilog after synthesis by Yosys."
)
@click.option(
    "-p",
    "--platform",
    default="riscv32",
    show_default=True,
    help="Platform whose addresses are shown.",
)
@options.as_json
def accelerators(
    accelerator: str | None, registers: str | None, area: bool, platform: str, as_json: bool
) -> None:
    """List the accelerators that can be named with --accel, with their parameters."""
    if area:
        if accelerator is None:
            raise click.UsageError("--area needs the name of an accelerator")
        if as_json:
            raise click.UsageError("--area prints text, not JSON: leave --json out")
        _print_area(accelerator)
        return
    if registers is not None:
        if accelerator is None:
            raise click.UsageError("--registers needs the name of an accelerator")
        if as_json:
            raise click.UsageError(f"--registers prints {registers}, not JSON: leave --json out")
        echo(_register_map(accelerator, registers, platform).removesuffix("\n"))
        return
    name = type(find_backend(accelerator)).name if accelerator is not None else None
    known = [info for info in list_backends() if name in (None, info.name)]
    if as_json:
        print_json(
            [
                ListedAccelerator(
                    name=info.name,
                    description=info.description,
                    origin=info.origin,
                    parameters=[
                        ListedParameter(name=p.name, default=p.default, description=p.description)
                        for p in info.parameters
                    ],
                )
                for info in known
            ]
        )
        return
    for info in known:
        echo(f"{info.name} ({info.origin}): {info.description}")
        for p in info.parameters:
            echo(f"    {p.name}={p.text(p.default)}  {p.description}")


def _print_area(spec: str) -> None:
    """Print the size of an accelerator's Verilog."""
    from covp.accelerator.rtl.area import unit_gates

    backend = find_backend(spec)
    gates = unit_gates(backend)
    memory = f", {gates.memory_bits:,} bits of memory" if gates.memory_bits else ""
    echo(
        f"{backend.name}: {gates.kge:g} kGE ({gates.cells:,} cells, {gates.flip_flops:,} of them "
        f"flip-flops, {gates.transistors:,} transistors){memory}, by {gates.tool} for no foundry"
    )


def _register_map(spec: str, form: str, platform_name: str) -> str:
    """Return the registers of an accelerator in its first place on a platform."""
    from covp.base.c_names import c_prefix
    from covp.chip.platform_file import load_platform
    from covp.codegen.offload import accelerator_places
    from covp.hardware.peripheral import Peripheral
    from covp.hardware.svd import svd

    backend = find_backend(spec)
    model = backend.make_peripheral()
    if not isinstance(model, Peripheral):
        raise click.UsageError(f"{backend.name} has no registers: it is not on the bus")
    platform = load_platform(platform_name)
    ((base, _),) = accelerator_places(platform, 1)
    if form == "svd":
        return svd(platform, {backend.name: (base, model)})
    if form == "header":
        return model.registers.c_header(c_prefix(backend.name), base)
    return model.registers.markdown()
