"""Counts of single instructions and branches, against a hook before every instruction."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unicorn import unicorn_const as uc

import covp
from covp.coverage.code_map import read_code
from covp.coverage.counts import count
from tests.coverage.programs import functions
from tests.coverage.test_lines import PLATFORMS, toolchains

Calls = list[tuple[int, ...]]


def hooked(session: covp.Session, text: str, flags: tuple[str, ...], calls: Calls) -> list[int]:
    """Addresses of the instructions that ran, in order."""
    ran: list[int] = []
    f = session.load_c(text, flags=flags)["f"]
    session.device.core.engine.hook_add(
        uc.UC_HOOK_CODE, lambda engine, address, size, user: ran.append(address)
    )
    for call in calls:
        f(*call).result()
    return ran


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
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
        steps, f = read_code(module.image.elf.content).steps, module["f"]
        session.device.trace_edges()
        before = session.device.trace()
        for call in calls:
            f(*call).result()
        found = count(session.device.trace().since(before), steps)
    with covp.Session(platform, toolchain=toolchain) as session:
        ran = hooked(session, text, flags, calls)
    assert found.executed == Counter(at for at in ran if at in steps)
    branches = {at for at in ran if at in steps and steps[at].kind == "branch"}
    went = Counter((at, after != steps[at].end) for at, after in pairwise(ran) if at in branches)
    assert found.branches == {at: (went[at, True], went[at, False]) for at in branches}
