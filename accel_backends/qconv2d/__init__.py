"""The quantized conv2d accelerator of the CODAI23 paper."""
