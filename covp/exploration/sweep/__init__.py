"""Sweeps: many models, platforms, accelerators and parameters; results that survive a kill."""
