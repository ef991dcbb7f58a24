"""Timing models fitted to what a core's RTL or a board's cycle counter says."""
