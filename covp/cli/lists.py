"""The JSON of ``covp cache`` and of the commands that list what can be named."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from covp.accelerator.parameters import Value
from covp.base.document import Amount, Bytes, Count, Macs, Ratio, unit
from covp.chip.energy.core_costs import CoreArea


class CacheState(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.cache/1"):
    """The output of ``covp cache --json``.

    Attributes:
        path: the folder
        bytes: all files in it
        entries: files with a checksum
        repaired: damaged entries found, each made anew
        limit_bytes: null: no limit
        kinds: by folder
    """

    path: str
    bytes: Bytes
    entries: Count
    repaired: Count
    limit_bytes: Bytes | None
    kinds: dict[str, Bytes]


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model of ``covp models``.

    Attributes:
        path: the file
        source: `official` or `synthetic`
        macs: of one inference
        dtype: `int8` or `float32`
    """

    name: str
    path: str | None
    source: Literal["official", "synthetic"]
    description: str
    macs: Macs
    dtype: Literal["int8", "float32"]


class ListedEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """The energy of a platform's cycle.

    Attributes:
        pj_per_cycle: of the whole chip while the core runs
        pj_per_sleep_cycle: while it sleeps
        model: as in `covp.run/1`
        assumes: under which conditions the figure holds
    """

    pj_per_cycle: Annotated[Amount, unit("pJ")]
    pj_per_sleep_cycle: Annotated[Amount, unit("pJ")] | None
    model: str
    assumes: str
    source: str


class ListedPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """A platform of ``covp platforms``.

    Attributes:
        alias_of: the platform that this is another name of
        clock_hz: null where time is measured
        accelerator_slot: accelerators on the bus are possible
        energy: what a cycle costs; null where the platform file says nothing
        core_area: the core after generic synthesis by Yosys; null where its RTL is not public
    """

    name: str
    alias_of: str | None
    description: str
    core: str
    clock_hz: Annotated[Count, unit("Hz")] | None
    flash_bytes: Bytes
    ram_bytes: Bytes
    accelerator_slot: bool
    energy: ListedEnergy | None
    core_area: CoreArea | None


class ListedTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The timing model of a core.

    Attributes:
        error: largest known errors by memory
    """

    model: str
    source: str
    assumes: str
    error: dict[str, Ratio]


class ListedCore(msgspec.Struct, frozen=True, kw_only=True):
    """A core of ``covp cores``.

    Attributes:
        isa: instruction set, as core.yaml (`own-core.md#coreyaml`) names it
        like: cores whose tuned schedules are a good guess, nearest first
        timing: how its cycles are estimated (`timing.md`); null: they are measured
        rtl: `--device rtl` is possible
        area: as `platforms[].core_area`
    """

    name: str
    description: str
    isa: str
    like: list[str]
    timing: ListedTiming | None
    rtl: bool
    area: CoreArea | None


class ListedParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of an accelerator."""

    name: str
    default: Value
    description: str


class ListedAccelerator(msgspec.Struct, frozen=True, kw_only=True):
    """An accelerator of ``covp accelerators``.

    Attributes:
        origin: `built in`, or the package
    """

    name: str
    description: str
    origin: str
    parameters: list[ListedParameter]


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of ``covp doctor``.

    Attributes:
        version: null: not installed
        get: how to install it
    """

    tool: str
    version: str | None
    enables: str
    get: str


class Lists(msgspec.Struct, frozen=True, kw_only=True):
    """The lists, by command."""

    models: list[ListedModel]
    platforms: list[ListedPlatform]
    cores: list[ListedCore]
    accelerators: list[ListedAccelerator]
    doctor: list[ListedTool]
