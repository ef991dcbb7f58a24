"""The Python interface, end to end: a model, an accelerator, and C of your own on the device.

python examples/quickstart.py
"""

from pathlib import Path

import numpy as np

import covp

# 1. A network on a virtual microcontroller. A path to a .tflite file works in place of the name.
model = covp.load_model("kws")
platform = covp.load_platform("stm32f746")
program = covp.compile(model, platform)
x = np.random.default_rng(0).integers(-128, 128, (1, 49, 10, 1), dtype=np.int8)

with covp.Session(platform) as session:
    graph = session.load(program)
    y = graph.run(x)
    assert np.array_equal(y, program.reference([x])[0])  # bit-exact
    print(session.profile())
    print(session.memory())

# 2. The same with the conv2d accelerator on the bus of a RISC-V system.
accelerated = covp.compile(model, "riscv32", accelerators=["qconv2d"])
with covp.Session("riscv32") as session:
    graph = session.load(accelerated)
    assert np.array_equal(graph.run(x), y)
    print(f"\nwith qconv2d: {session.profile().instructions:,} instructions")

# 3. Any C in destination-passing style. Calls are queued and run when a result is requested.
with covp.Session("riscv32") as session:
    kernels = session.load_c(Path(__file__).with_name("conv.c"))
    image = session.tensor(np.arange(64, dtype=np.int8).reshape(8, 8))
    kernel = session.tensor(np.ones((3, 3), np.int8))
    result = session.tensor(np.zeros((6, 6), np.int32))
    kernels["conv"](image, kernel, result, 8, 8)
    print("\nconv.c:", result.numpy()[0])
