"""Semihosting: a program's requests to the machine that debugs or simulates it.

Arm, "Semihosting for AArch32 and AArch64", release 2024Q3; RISC-V International, "RISC-V
Semihosting", version 1.0, which takes numbers and parameters from Arm's.
"""

from covp.device.semihosting.console import Collected, Console, Streams
from covp.device.semihosting.host import Semihosting

__all__ = ["Collected", "Console", "Semihosting", "Streams"]
