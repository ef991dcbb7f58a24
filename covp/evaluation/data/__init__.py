"""Accuracy of a model over many samples, which are read, quantized, run and compared."""

from covp.evaluation.data.accuracy import Data, accuracy_of
from covp.evaluation.data.quality import Beside, MeanError, Quality, Scores, Spread

__all__ = ["Beside", "Data", "MeanError", "Quality", "Scores", "Spread", "accuracy_of"]
