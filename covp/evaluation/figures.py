"""The figures by which runs and designs are compared, each described once.

Structures of documents and rows of sweeps annotate their fields with them, and columns,
objectives, constraints and the thresholds of ``covp check`` are read from there.
"""

from __future__ import annotations

from covp.base.figure import FigureDescription

INSTRUCTIONS = FigureDescription("Instructions", rank=9)
CYCLES = FigureDescription("Cycles", kind="estimated", rank=1)
TIME = FigureDescription(
    "Time", "s", kind="estimated", rank=2, shown_unit="ms", scale=1e3, format="~4"
)
WAITING = FigureDescription("Waiting", "cycles", kind="estimated")
ENERGY = FigureDescription(
    "Energy", "J", kind="estimated", rank=3, shown_unit="µJ", scale=1e6, format="~4"
)
AREA = FigureDescription("Area of units", "µm²", kind="estimated", rank=4, format=",.0f")
FLASH = FigureDescription("Flash", "bytes", rank=5)
RAM = FigureDescription("RAM", "bytes", rank=6)
ARENA = FigureDescription("Arena", "bytes")
OFFLOADED = FigureDescription(
    "MACs on accelerators", better="more", rank=8, shown_unit="%", scale=100, format=".1f"
)
ACCURACY = FigureDescription("Accuracy", better="more", rank=7, format=".4f")
MEAN_ERROR = FigureDescription("Mean error", format="~4")
