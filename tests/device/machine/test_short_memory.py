"""Where a machine cannot hold an emulated core, one line says so and the process goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from covp.device.machine.native_counter import counter_library

MB = 1 << 20
OPEN = """
import resource, sys
import covp
from covp.device.virtual import VirtualDevice
from covp.chip.platform_file import load_platform
platform = load_platform(sys.argv[1])
limit = int(sys.argv[2])
devices = []
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    for _ in range(int(sys.argv[3])):
        devices.append(VirtualDevice(platform))
        devices[-1].write(platform.ram.start, b"here")
except covp.CovpError as error:
    print(type(error).__name__, error, sep=": ")
assert all(device.read(platform.ram.start, 4) == b"here" for device in devices)
print(len(devices), "devices")
"""

LONG = """
import resource, sys
import covp
from covp.device.virtual import VirtualDevice
from covp.chip.platform_file import load_platform
platform, blocks, more = load_platform(sys.argv[1]), 60000, int(sys.argv[2])
start = platform.flash.start + 0x1000
arm = platform.core.architecture == "arm"
code = blocks * (
    bytes.fromhex("013001e000000000") if arm  # adds r0, #1; b to the next
    else bytes.fromhex("130515006f00800000000000")
)
device = VirtualDevice(platform)
device.write(start, code)
_, unlimited = resource.getrlimit(resource.RLIMIT_AS)
used = 4096 * int(open("/proc/self/statm").read().split()[0])
for limit in (used + more, unlimited):
    before = device.instructions
    device.reset()
    resource.setrlimit(resource.RLIMIT_AS, (limit, unlimited))
    try:
        device.execute(start, start + len(code))
    except covp.CovpError as error:
        print(type(error).__name__, error, sep=": ")
    else:
        sum = device.core.read_register("r0" if arm else "a0")
        print(sum == blocks and device.instructions - before == 2 * blocks)
"""


@pytest.fixture(autouse=True)
def compiled() -> None:
    """What is short is the memory for devices, not that for compiling the counter."""
    counter_library()


def opened(platform: str, limit: int, count: int) -> list[str]:
    """What a process with so much address space says that opens devices."""
    command = [sys.executable, "-c", OPEN, platform, str(limit), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


@pytest.mark.parametrize("platform", ["riscv32", "stm32l4r5"])
@pytest.mark.parametrize("limit", [400, 650, 900, 1100, 1200, 1300, 1400, 1500, 2000, 2600, 4000])
def test_short_address_space_is_one_line(platform: str, limit: int) -> None:
    *said, last = opened(platform, limit * MB, 4)
    assert len(said) == 1 and said[0].startswith("DeviceError: the emulator needs 1152 MB")
    assert "ulimit -v" in said[0]
    assert int(last.split()[0]) < 4


@pytest.mark.costly
@pytest.mark.parametrize("platform", ["riscv32", "stm32l4r5"])
@pytest.mark.parametrize("more", [0, 1, 8, 30, 60])
def test_a_run_that_gets_no_memory_is_one_line_and_the_device_goes_on(
    platform: str, more: int
) -> None:
    command = [sys.executable, "-c", LONG, platform, str(more * MB)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == [
        "DeviceError: not enough host memory for the emulator to go on: raise the limit "
        "(ulimit -v), or close sessions that are not needed",
        "True",
    ]


@pytest.mark.costly
@pytest.mark.parametrize(
    "platform, way",
    [
        ("riscv32", "plain"),
        ("stm32f746", "plain"),
        ("stm32l4r5", "traced"),
        ("stm32f746", "segments"),
    ],
)
def test_a_device_that_has_lost_counts_refuses_by_name(platform: str, way: str) -> None:
    """Where not even the reserve has room, whichever allocation that is."""
    script = Path(__file__).with_name("failing_memory.py")
    command = [sys.executable, str(script), platform, way, "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_a_check_of_memory_that_does_not_fit_is_one_line() -> None:
    code = """
import resource, covp
from covp.device.virtual import VirtualDevice
from covp.chip.platform_file import load_platform
device = VirtualDevice(load_platform("riscv32"))
used = 4096 * int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used, used))
try:
    device.core.check_memory(lambda finding: None)
except covp.CovpError as error:
    print(error)
device.write(device.platform.ram.start, b"here")
print(device.read(device.platform.ram.start, 4).decode())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["not enough host memory for the check of memory", "here"]


def test_an_older_unicorn_is_refused_by_name(tmp_path: Path) -> None:
    installed = tmp_path / "unicorn-2.1.3.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: unicorn\nVersion: 2.1.3\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import covp\n"
        "try: covp.Session('riscv32')\n"
        "except covp.CovpError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    assert said == (
        "unicorn 2.1.3 is too old, covp's results with it may be wrong: "
        "pip install 'unicorn>=2.1.4'\n"
    )
