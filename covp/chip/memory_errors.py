"""Explanations of accesses outside a platform's memory, the same on every device."""

from __future__ import annotations

from covp.chip.platform_file import Platform
from covp.errors import DeviceError

_STACK_GUARD = 0x10000
"""Bytes below the stack within which an access, or the sp, comes from a stack that ran over."""


_PUSH = 256
"""Bytes that one instruction pushes at most: 16 registers and 32 of the FPU take 192."""


def is_below_stack(platform: Platform, address: int) -> bool:
    """Return whether an access is so close below the first ram that the stack may have run over."""
    return platform.ram.start - _STACK_GUARD <= address < platform.ram.start


def is_stack_overflow(platform: Platform, address: int, sp: int) -> bool:
    """Return whether an access outside the memory comes from a stack that ran over.

    The stack pointer is below the stack then, or so near its end that one push passes it; a pointer
    that is wrong by itself comes with a stack pointer elsewhere.
    """
    bottom = platform.ram.start
    near = bottom - _STACK_GUARD <= sp < bottom + _PUSH
    return is_below_stack(platform, address) and near


def stack_overflow_detail(platform: Platform, sp: int) -> str:
    """Return the stack's limits and the way to a larger one, for a fault's detail."""
    return (
        f"sp 0x{sp:08x}, the stack is {platform.stack_bytes} bytes from "
        f"0x{platform.ram.start:08x}; a larger one is set by the platform's key stack"
    )


def nearest_region(platform: Platform, address: int) -> str:
    """Return the distance of an address outside the memory from the nearest region, as text."""
    region = min(platform.memory, key=lambda r: max(r.start - address, address - r.end + 1))
    if address < region.start:
        return f"{region.start - address} bytes below {region.name} at 0x{region.start:08x}"
    return f"{address - region.end} bytes past the end of {region.name} at 0x{region.end:08x}"


def outside_memory(address: int, size: int) -> DeviceError:
    """Return the error of ``size`` bytes from ``address`` that are not all in the memory."""
    text = f"{size} bytes at 0x{address:08x} lie outside the memory map"
    return DeviceError(text, address=address, length=size)
