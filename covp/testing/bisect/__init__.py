"""`covp bisect`: from a model that computes something else to a layer, a function and a line."""

from covp.testing.bisect.bisect import Against, bisect
from covp.testing.bisect.finding import Finding, Verdict
from covp.testing.bisect.origin import Cause, Spot

__all__ = ["Against", "Cause", "Finding", "Spot", "Verdict", "bisect"]
