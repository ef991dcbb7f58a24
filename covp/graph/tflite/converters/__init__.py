"""TFLite's builtin options into attribute objects: one converter a kind of operator.

A function under ``@register("KIND")`` in one of these files teaches the reader a new operator.
"""

# each of these registers its converters; the registry imports the others when a kind is missing
import covp.graph.tflite.converters.convolution
import covp.graph.tflite.converters.elementwise
import covp.graph.tflite.converters.layout  # noqa: F401
from covp.graph.tflite.converters.common import CONVERTERS, Converter

__all__ = ["CONVERTERS", "Converter"]
