"""The ways to reach a core, by the name that ``Session(device=...)`` takes."""

from __future__ import annotations

from collections.abc import Callable

from covp.base.arguments import shown
from covp.chip.platform_file import Platform
from covp.device.base import LowLevelDevice, is_device
from covp.errors import UsageError, near_misses


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


DEVICES: dict[str, Callable[[Platform, str], LowLevelDevice]] = {
    "virtual": _virtual,
    "host": _host,
    "rtl": _rtl,
    "gdb": _gdb,
    "openocd": _openocd,
}
"""Scheme to opener; an opener gets the text after "scheme:", e.g. "HOST:PORT"."""


def open_device(name: str | LowLevelDevice, platform: Platform) -> LowLevelDevice:
    """The device of that name, or a device as it is.

    Raises:
        UsageError: no such device, or it cannot run the platform's code; no device at all.
    """
    if not isinstance(name, str):
        if not is_device(name):
            raise UsageError(f"device must be a name or a device, not {shown(name)}")
        return name
    scheme, _, address = name.partition(":")
    if scheme not in DEVICES:
        raise UsageError(f"unknown device {name!r}: {near_misses(scheme, DEVICES)}")
    if platform.core.architecture == "x86" and scheme != "host":
        raise UsageError(
            f"device {name!r} cannot run {platform.name}, which is this machine: use device host"
        )
    return DEVICES[scheme](platform, address)
