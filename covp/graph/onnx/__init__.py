"""ONNX files."""

from covp.graph.onnx.reader import load_onnx, read_onnx

__all__ = ["load_onnx", "read_onnx"]
