"""`recording`: the timeline of whatever a session executes."""

from __future__ import annotations

from covp.device.abilities import TimelineRecording
from covp.errors import UsageError
from covp.report.timeline.of_run import timeline_of_log
from covp.report.timeline.tracks import Timeline
from covp.runtime.session import Session


class recording:
    """A context in which a session is recorded: calls of kernels, runs of models.

    Args:
        session: on a device that knows when what happens.

    Raises:
        UsageError: the session's device does not.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        abilities = session.device.abilities
        if abilities.timeline is None:
            raise UsageError("the session's device records no timeline: use device virtual")
        self._causes, self._phases = abilities.causes, abilities.phases
        self._recording: TimelineRecording = abilities.timeline.record_timeline()

    def __enter__(self) -> recording:
        self._session.sync()
        if self._causes is not None and self._phases is not None:
            self._causes.count_functions()
            self._phases.set_phases(())
        self._recording.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._session.sync()
        finally:
            self._recording.__exit__(type(error) if error else None, error, None)
            if self._causes is not None:
                self._causes.count_functions(False)

    @property
    def timeline(self) -> Timeline:
        """Return what was executed. Raises UsageError before the end of the context."""
        log = self._recording.log
        if log is None:
            raise UsageError("the timeline is known when its context has ended")
        return timeline_of_log(log, self._session.platform.clock_hz)
