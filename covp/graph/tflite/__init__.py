"""TFLite files."""

from covp.graph.tflite.reader import load_tflite, read_tflite

__all__ = ["load_tflite", "read_tflite"]
