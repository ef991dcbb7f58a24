"""`covp bisect`: from a model that computes something else to a layer, a function and a line."""

from covp.bisect.against import Against
from covp.bisect.bisect import bisect
from covp.bisect.finding import Finding, Verdict
from covp.bisect.origin import Cause, Spot

__all__ = ["Against", "Cause", "Finding", "Spot", "Verdict", "bisect"]
