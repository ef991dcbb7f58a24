"""Networks with a memory."""

from covp.codegen.kernels.recurrent import (  # noqa: F401  (each registers its emitters)
    circular_buffer,
    float_lstm,
    quantized_lstm,
    recurrent,
    svdf,
)
