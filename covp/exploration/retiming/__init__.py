"""Run once, retime many: the cycles of a run on other cores, memories and units, without a run.

`record` runs a build once and keeps how often each block of code ran between the places where the
path of the program meets the time of units. `retime` adds that up again for any number of designs.
"""

from covp.exploration.retiming.recording import record
from covp.exploration.retiming.retime import Retimed, retime
from covp.exploration.retiming.run_trace import RunTrace

__all__ = ["Retimed", "RunTrace", "record", "retime"]
