"""Timing models of cores: the cycles that the instructions of a run would take."""
