"""`COVP_DEBUG`: how much of a build is printed on standard error, by Python's logging.

=====  ====================================================================
value  what is printed, with all above it
=====  ====================================================================
0      nothing, as without the variable
1      ``covp.passes``: each pass that changed the graph, and what it changed
2      ``covp.placement``: where each layer runs, and with which schedule
3      ``covp.memory``: what lies in the arena, where and how long
4      ``covp.code``: the generated C
=====  ====================================================================

Without the variable the loggers are as Python has them: a program of one's own may take what they
say at INFO (the C: at DEBUG) with handlers of its own.
"""

from __future__ import annotations

import logging
import os
import sys

from covp.base.terminal import visible
from covp.errors import UsageError

VARIABLE = "COVP_DEBUG"
LOGGERS = ("covp.passes", "covp.placement", "covp.memory", "covp.code")
"""Loggers in the order of the levels that switch them on, from 1."""


class _OnStandardError(logging.Handler):
    """A handler that writes to `sys.stderr` as it is when a record comes."""

    def emit(self, record: logging.LogRecord) -> None:
        print(visible(record.getMessage()), file=sys.stderr)


_handler = _OnStandardError()


def follow_environment() -> None:
    """Let the loggers print as the variable has it now.

    Raises:
        UsageError: its value is not 0 to 4.
    """
    text = os.environ.get(VARIABLE, "")
    if text not in ("", "0", "1", "2", "3", "4"):
        raise UsageError(
            f"{VARIABLE}={text!r:.40}: write 1 (passes), 2 (placement), 3 (memory), 4 (C) or 0"
        )
    for level, name in enumerate(LOGGERS, 1):
        _switch_output(logging.getLogger(name), level <= int(text or "0"))


def _switch_output(logger: logging.Logger, wanted: bool) -> None:
    if wanted == (_handler in logger.handlers):
        return
    if wanted:
        logger.addHandler(_handler)
    else:
        logger.removeHandler(_handler)
    logger.setLevel(logging.DEBUG if wanted else logging.NOTSET)
    # otherwise the root logger's handler would print it again
    logger.propagate = not wanted
