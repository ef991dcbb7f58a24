"""Accelerators: what a backend declares, how it is found, which layers it gets."""

from covp.accelerator.backend import AcceleratorBackend
from covp.accelerator.call import CCall, Constant, Requantize, Words, Workspace
from covp.accelerator.parameters import Parameter

__all__ = [
    "AcceleratorBackend",
    "CCall",
    "Constant",
    "Parameter",
    "Requantize",
    "Words",
    "Workspace",
]
