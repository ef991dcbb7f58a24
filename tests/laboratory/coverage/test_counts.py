"""Counts of single instructions and branches, against a hook before every instruction."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unicorn import unicorn_const as uc

import covp
from covp.device.virtual import VirtualDevice
from covp.laboratory.coverage.code_map import read_code
from covp.laboratory.coverage.measure import count
from tests.laboratory.coverage.programs import functions
from tests.laboratory.coverage.test_lines import PLATFORMS, toolchains

Calls = list[tuple[int, ...]]


def hooked(session: covp.Session, text: str, flags: tuple[str, ...], calls: Calls) -> list[int]:
    """Addresses of the instructions that ran, in order."""
    ran: list[int] = []
    f = session.load_c(text, flags=flags)["f"]
    device = session.device
    assert isinstance(device, VirtualDevice)
    device.core.engine.hook_add(
        uc.UC_HOOK_CODE, lambda engine, address, size, user: ran.append(address)
    )
    for call in calls:
        f(*call).result()
    return ran


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=functions(),
    calls=st.lists(st.tuples(*[st.integers(-3, 4)] * 3), min_size=1, max_size=4),
    platform=st.sampled_from(PLATFORMS),
    level=st.sampled_from(["-O0", "-O1", "-O2", "-Os"]),
    data=st.data(),
)
def test_instructions(
    text: str, calls: Calls, platform: str, level: str, data: st.DataObject
) -> None:
    toolchain, flags = data.draw(st.sampled_from(toolchains(platform))), (level, "-w")
    with covp.Session(platform, toolchain=toolchain) as session:
        module = session.load_c(text, flags=flags)
        steps, f, device = read_code(module.image.elf.content).steps, module["f"], session.device
        assert isinstance(device, VirtualDevice)
        device.counts.count_conditional(at for at, step in steps.items() if step.conditional)
        before = device.counts.trace()
        for call in calls:
            f(*call).result()
        found = count(
            device.counts.trace().since(before), steps, device.counts.conditional_counts()
        )
    with covp.Session(platform, toolchain=toolchain) as session:
        ran = hooked(session, text, flags, calls)
    executed = Counter(at for at in ran if at in steps)
    assert +Counter(found.executed) == executed
    for at, outcomes in found.sites.items():
        if steps[at].guards:  # the hook is not called before skipped instructions, but before IT
            assert outcomes == (executed[at], executed[at - 2] - executed[at])
        else:
            went = Counter(b != steps[at].end for a, b in pairwise(ran) if a == at)
            assert outcomes == (went[True], went[False])
    reached = {at for at in executed if steps[at].kind == "branch"}
    reached |= {at for at in steps if steps[at].guards and executed[at - 2]}
    assert found.sites.keys() == reached
