"""The ways to reach a core, by the name that ``Session(device=...)`` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from covp.base.arguments import shown
from covp.device.base import LowLevelDevice, is_device
from covp.errors import UsageError, near_misses

if TYPE_CHECKING:
    from covp.chip.platform_file import Platform


def _virtual(platform: Platform, address: str) -> LowLevelDevice:
    from covp.device.virtual import VirtualDevice

    if address:
        raise UsageError(f"device 'virtual' takes no address, not {address!r}")
    return VirtualDevice(platform)


def _gdb(platform: Platform, address: str) -> LowLevelDevice:
    if address == "qemu":
        from covp.device.qemu import QemuDevice

        return QemuDevice(platform)
    from covp.device.gdb_remote import GdbDevice

    return GdbDevice.at(platform, address)


def _openocd(platform: Platform, address: str) -> LowLevelDevice:
    from covp.device.openocd import OpenOcdDevice

    return OpenOcdDevice(platform, address)


def _host(platform: Platform, address: str) -> LowLevelDevice:
    from covp.device.host import HostDevice

    if address:
        raise UsageError(f"device 'host' takes no address, not {address!r}")
    return HostDevice(platform)


def _rtl(platform: Platform, address: str) -> LowLevelDevice:
    from covp.device.rtl.device import RtlDevice

    if address:
        raise UsageError(f"device 'rtl' takes no address, not {address!r}")
    return RtlDevice(platform)


@dataclass(frozen=True)
class DeviceKind:
    """A way to reach a core.

    Attributes:
        open: makes the device from a platform and the text after "scheme:", e.g. "HOST:PORT".
        is_fast: it is opened in no time, as often as one likes, and runs at millions of
            instructions a second.
        traces: it has the ability `TracesCode`.
    """

    open: Callable[[Platform, str], LowLevelDevice]
    is_fast: bool = False
    traces: bool = False


DEVICES = {
    "virtual": DeviceKind(_virtual, is_fast=True, traces=True),
    "host": DeviceKind(_host, is_fast=True),
    "rtl": DeviceKind(_rtl),
    "gdb": DeviceKind(_gdb),
    "openocd": DeviceKind(_openocd),
}
"""By the name before the first colon, the scheme."""
DEFAULT = "virtual"
"""The device where none is named."""


def scheme_of(device: str) -> str:
    """Return the kind of a ``device``: what is before the first colon."""
    return device.partition(":")[0]


def is_fast(device: str) -> bool:
    """Return whether a ``device`` of that name is a fast one; see `DeviceKind`."""
    kind = DEVICES.get(device)
    return kind is not None and kind.is_fast


def device_note(device: str) -> str:
    """Format a ``device`` as headings add it to a platform: " (host)"; "" for the default one."""
    return "" if device == DEFAULT else f" ({device})"


def open_device(name: str | LowLevelDevice, platform: Platform) -> LowLevelDevice:
    """Open the device of that name; a device is returned as it is.

    Raises:
        UsageError: no such device, or it cannot run the platform's code; no device at all.
    """
    if not isinstance(name, str):
        if not is_device(name):
            raise UsageError(f"device must be a name or a device, not {shown(name)}")
        return name
    scheme, _, address = name.partition(":")
    if scheme not in DEVICES:
        raise UsageError(f"unknown device {name!r}:", hint=near_misses(scheme, DEVICES))
    if platform.core.architecture == "x86" and scheme != "host":
        raise UsageError(
            f"device {name!r} cannot run {platform.name}, which is this machine: use device host"
        )
    return DEVICES[scheme].open(platform, address)
