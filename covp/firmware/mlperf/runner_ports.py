"""Shows serial ports to a program as if they were on USB: ``PATH:VENDOR:PRODUCT ... SCRIPT ARGS``.

It runs in the interpreter of the official runner, which may have no covp, and needs pyserial only.
The script is unmodified: what it gets from ``serial.tools.list_ports`` is the named ports alone.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def shown(name: str) -> SimpleNamespace:
    """Return a port as pyserial lists them, of PATH:VENDOR:PRODUCT, the numbers hexadecimal."""
    path, vendor, product = name.rsplit(":", 2)
    text = f"USB VID:PID={vendor.upper()}:{product.upper()}"
    return SimpleNamespace(
        device=path,
        name=Path(path).name,
        description="virtual board",
        hwid=text,
        vid=int(vendor, 16),
        pid=int(product, 16),
        serial_number=None,
        location=None,
        manufacturer="covp",
        product="virtual board",
        interface=None,
    )


def show_ports(names: list[str]) -> None:
    """Replace the list of serial ports, and that of USB devices, in this process."""
    list_ports = importlib.import_module("serial.tools.list_ports")
    ports = [shown(name) for name in names]

    def comports(include_links: bool = False) -> list[SimpleNamespace]:
        return list(ports)

    list_ports.comports = comports  # type: ignore[attr-defined]
    try:
        usb = importlib.import_module("usb.core")
    except ImportError:
        return

    def find(find_all: bool = False, **criteria: Any) -> Any:
        return iter(()) if find_all else None

    usb.find = find  # type: ignore[attr-defined]


def main(arguments: list[str]) -> None:
    """Show the ports, then run the script as if it had been started."""
    last = next(i for i, word in enumerate(arguments) if word.endswith(".py"))
    show_ports(arguments[:last])
    script = arguments[last]
    sys.argv = arguments[last:]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)  # threads of the runner would keep the process


if __name__ == "__main__":
    main(sys.argv[1:])
