"""`drawn_cases`: the layers that Hypothesis draws from a strategy, without running them."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from covp.testing import Case


def drawn_cases(strategy: st.SearchStrategy[Any], count: int, seed: int) -> list[Case]:
    """Up to ``count`` cases, the same ones for the same ``seed``; fewer where few fit together.

    To run them here would leave it to Hypothesis how long a search takes.
    """
    found: list[Case] = []
    how = settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )

    def keep(case: Case) -> None:
        found.append(case)

    with contextlib.suppress(Unsatisfiable):
        with_seed(seed)(how(given(strategy)(keep)))()
    return found
