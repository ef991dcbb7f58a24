"""True and false detections of a wake word, as the benchmark counts them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covp.errors import UsageError

LIMIT = 8
"""False positives, and false negatives, that the closed division allows."""
_RULE_SECONDS = 1.0
RUNNER_SECONDS = 2.0
"""The runner adds the second after the word twice (streaming_ww_utils.py)."""
_DEBOUNCE = 1.0


@dataclass(frozen=True)
class Truth:
    """Occurrences of the wake word in a wave.

    Attributes:
        wave: name of the file.
        seconds: its length.
        windows: begin and end of each word, in seconds.
    """

    wave: str
    seconds: float
    windows: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Score:
    """Counted detections and misses.

    Attributes:
        true_positives, false_negatives: begins of the words that were detected, or not.
        false_positives: times of detections without a word.
    """

    true_positives: tuple[float, ...]
    false_negatives: tuple[float, ...]
    false_positives: tuple[float, ...]

    @property
    def passes(self) -> bool:
        """True if it is within the closed division's limits."""
        return max(len(self.false_positives), len(self.false_negatives)) <= LIMIT


def read_truth(path: Path) -> list[Truth]:
    """Return the waves of a truth file, such as sww_long_test.json.

    Raises:
        UsageError: it cannot be read, or is of another form.
    """
    try:
        entries: Any = json.loads(path.read_text(encoding="utf-8"))
        return [
            Truth(
                entry["wav_file"],
                float(entry["length_sec"]),
                tuple((float(begin), float(end)) for begin, end in entry["detection_windows"]),
            )
            for entry in entries
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"not a truth file of the streaming wake word: {error}", where=path
        ) from None


def score(
    detections: Sequence[float],
    windows: Sequence[tuple[float, float]],
    grace: float = _RULE_SECONDS,
) -> Score:
    """Count detections.

    A word is detected by any detection from its begin to ``grace`` seconds after its end; what is
    left are false positives, of which one within a second after another does not count.

    Args:
        detections: in seconds, ascending.
        windows: begin and end of each word.
        grace: seconds after the end; the rule's second, or `RUNNER_SECONDS`.
    """
    found: list[float] = []
    missed: list[float] = []
    left = list(detections)
    for begin, end in windows:
        hits = [time for time in left if begin <= time <= end + grace]
        (found if hits else missed).append(begin)
        left = [time for time in left if time not in hits]
    false: list[float] = []
    for time in left:
        if not false or time > false[-1] + _DEBOUNCE:
            false.append(time)
    return Score(tuple(found), tuple(missed), tuple(false))
