"""Coverage of code on a device, without instrumentation.

The virtual device counts how often each block of code ran and where it went on. Together with the
line tables of the ELF file that gives the lines, functions, branches and conditions that ran, of
the very binary that ships.
"""

from covp.laboratory.coverage.conditions import ConditionCoverage
from covp.laboratory.coverage.data import CoverageData
from covp.laboratory.coverage.files import Branch, FileCoverage, Routine
from covp.laboratory.coverage.session import Coverage, collect

__all__ = [
    "Branch",
    "ConditionCoverage",
    "Coverage",
    "CoverageData",
    "FileCoverage",
    "Routine",
    "collect",
]
