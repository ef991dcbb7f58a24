"""The JSON documents ``covp.export/1``, ``covp.board/1`` and ``covp.station/1``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from covp.building.schedules import ScheduleSource


class Exported(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.export/1"):
    """The output of ``covp export --json``.

    Attributes:
        model_source: as in `covp.run/1`
        schedules: as in `covp.run/1`
        warnings: of the compiler
        layout: as given to `--layout`
        files: relative to the folder
    """

    model_source: str
    schedules: ScheduleSource
    warnings: Sequence[str]
    layout: str
    folder: str
    files: Sequence[str]


class UsbNumbers(msgspec.Struct, frozen=True):
    """The numbers of a USB device.

    Attributes:
        vendor: 1155, 0x0483
        product: 14155, 0x374B
    """

    vendor: int
    product: int


class BoardServed(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.board/1"
):
    """The output of ``covp board --json``.

    Attributes:
        path: the pseudo terminal
        model: zoo name, or the file's stem
        model_source: as in `covp.run/1`
        benchmark: what the board answers to `profile`, such as `kws01`
        platform: the platform's name
        accelerators: as given to `-a`
        usb: the numbers that the official runner sees
        firmware: the ELF file that runs
    """

    path: str
    model: str
    model_source: str
    benchmark: str
    platform: str
    accelerators: Sequence[str]
    usb: UsbNumbers
    firmware: str


class StationServed(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="covp.station/1"
):
    """The output of ``covp board --card DIR --json``.

    Attributes:
        ports: terminals with the USB numbers that the official runner sees: interface board,
            energy monitor
        model: zoo name, or the file's stem
        model_source: as in `covp.run/1`
        benchmark: `sww01`
        platform: the platform's name
        accelerators: as given to `-a`
        firmware: the ELF file that runs
    """

    ports: Sequence[str]
    model: str
    model_source: str
    benchmark: str
    platform: str
    accelerators: Sequence[str]
    firmware: str
