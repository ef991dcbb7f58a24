"""Sessions for the tests: every core family, both toolchains where they are installed."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from covp.platform_file import load_platform
from covp.runtime.session import Session

PLATFORMS = ("cortex-m0plus", "stm32l4r5", "stm32f746", "cortex-m33", "riscv32", "riscv32f")


def has_toolchain(name: str, platform: str) -> bool:
    prefix = load_platform(platform).core.gcc_prefix
    return name == "zig" or shutil.which(f"{prefix}gcc") is not None


@pytest.fixture(params=[(p, t) for p in PLATFORMS for t in ("zig", "gcc")], ids="-".join)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session on each platform with each toolchain."""
    platform, toolchain = request.param
    if not has_toolchain(toolchain, platform):
        pytest.skip(f"no gcc for {platform}")
    with Session(platform, toolchain=toolchain) as opened:
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
