"""Timelines of a run: for ui.perfetto.dev, and register accesses as a value change dump."""
