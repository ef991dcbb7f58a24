"""Firmware of several emulated cores on one platform, run together."""

from covp.firmware.multicore.firmware import Firmware
from covp.firmware.multicore.report import CoreRun, CoresRun, LayerRun
from covp.firmware.multicore.system import System

__all__ = ["CoreRun", "CoresRun", "Firmware", "LayerRun", "System"]
