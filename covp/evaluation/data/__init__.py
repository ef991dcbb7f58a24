"""How right a model is over many samples: read, quantized, run, beside the labels."""

from covp.evaluation.data.accuracy import Data, accuracy_of
from covp.evaluation.data.quality import Beside, MeanError, Quality, Scores, Spread

__all__ = ["Beside", "Data", "MeanError", "Quality", "Scores", "Spread", "accuracy_of"]
