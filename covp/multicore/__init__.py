"""Firmware of several emulated cores on one platform, run together."""

from covp.multicore.firmware import Firmware
from covp.multicore.report import CoreRun, CoresRun, LayerRun
from covp.multicore.system import System

__all__ = ["CoreRun", "CoresRun", "Firmware", "LayerRun", "System"]
