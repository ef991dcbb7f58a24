"""The file as it is beside what covp computes: the judge that no fusion of covp's can mislead."""

from covp.evaluation.source.check import SourceCheck, check_model, check_source, extreme_samples

__all__ = ["SourceCheck", "check_model", "check_source", "extreme_samples"]
