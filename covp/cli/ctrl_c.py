"""Commands that serve until Ctrl-C: that is their end, and no failure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def until_ctrl_c() -> Iterator[None]:
    """Ends the block at Ctrl-C and says so on standard error."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
