"""ONNX operators into those of a graph."""
