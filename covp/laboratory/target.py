"""`Target`: a platform and the device it runs on, as ``NAME[:DEVICE]``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from covp.base.arguments import demand
from covp.errors import UsageError
from covp.runtime.devices import DEFAULT


@dataclass(frozen=True)
class Target:
    """A platform and a device on which kernels run.

    Attributes:
        platform: a name, or the path of a YAML file.
        device: as for `covp.Session`.
    """

    platform: str
    device: str = DEFAULT

    @staticmethod
    def parse(text: str) -> Target:
        """Parse the target that a text names: "riscv32", "cv32e40p:rtl", "riscv32:gdb:qemu".

        A path that exists is a platform, whatever is in its name.

        Raises:
            UsageError: the platform or the device is empty.
        """
        demand("platform", text, str, "text of the form NAME[:DEVICE]")
        if Path(text).is_file():
            return Target(text)
        platform, colon, device = text.partition(":")
        if not platform or (colon and not device):
            raise UsageError(
                f"platform {text!r} is not of the form NAME[:DEVICE]; examples are riscv32, "
                "cv32e40p:rtl and riscv32:gdb:qemu"
            )
        return Target(platform, device or DEFAULT)

    def __str__(self) -> str:
        return self.platform if self.device == DEFAULT else f"{self.platform}:{self.device}"
