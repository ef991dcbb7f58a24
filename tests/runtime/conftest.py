"""Sessions for the tests: every core family, both toolchains where they are installed."""

import shutil
import sys
from collections.abc import Callable, Iterator
from platform import machine

import pytest

from covp.chip.platform_file import load_platform
from covp.runtime.session import Session

PLATFORMS = ("cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33", "riscv32", "riscv32f")


def has_toolchain(name: str, platform: str) -> bool:
    prefix = load_platform(platform).core.gcc_prefix
    return name == "zig" or shutil.which(f"{prefix}gcc") is not None


VIRTUAL = [(p, t) for p in PLATFORMS for t in ("zig", "gcc")]


def opened_session(platform: str, toolchain: str) -> Session:
    if platform == "host":
        if sys.platform != "linux" or machine() != "x86_64":
            pytest.skip("the host device needs Linux on x86-64")
        return Session(platform, device="host")
    if not has_toolchain(toolchain, platform):
        pytest.skip(f"no gcc for {platform}")
    return Session(platform, toolchain=toolchain)


@pytest.fixture(params=[*VIRTUAL, ("host", "zig")], ids="-".join)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session on each platform with each toolchain, and on this machine."""
    with opened_session(*request.param) as opened:
        yield opened


@pytest.fixture(params=VIRTUAL, ids="-".join)
def virtual_session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session on each platform with each toolchain, on virtual devices."""
    with opened_session(*request.param) as opened:
        yield opened


@pytest.fixture
def open_session() -> Iterator[Callable[..., Session]]:
    """Opens sessions that are closed after the test."""
    opened: list[Session] = []

    def open_one(*arguments: object, **options: object) -> Session:
        if options.get("toolchain") == "gcc" and not has_toolchain("gcc", str(arguments[0])):
            pytest.skip(f"no gcc for {arguments[0]}")
        opened.append(Session(*arguments, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
