"""``covp debug``: what debuggers attach to."""

from __future__ import annotations

from covp.cli.groups import LazyGroup

debug = LazyGroup(
    "debug",
    help="Serve a virtual board to a debugger, until Ctrl-C.",
    sections={
        "Commands": {
            "gdb": "Serve GDB: a program or a model, with its peripherals.",
            "port": "Serve the debug port, ST-Link or JTAG, for the real OpenOCD.",
        }
    },
    modules={"gdb": "gdbserver", "port": "debugport"},
)
