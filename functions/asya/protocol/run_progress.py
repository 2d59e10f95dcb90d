"""The progress and resource use of a job run, for the tasks of its envelopes (`protocol §10`)."""

import msgspec

from asya.protocol.job_runs import Usage
from asya.protocol.times import parse_time

REPORTED_STAGES = 5
_NAME_LIMIT = 80


class StageNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A running Spark stage: its tasks, the tasks done, the rows so far, and when Spark submitted it (RFC 3339).

    Attributes:
        name: the line of the user's code that waits for it, such as `totals at shop_jobs.py:15`; else the name of Spark.
        progress_at: when a task of it ended last, or when the run looked first (RFC 3339).
    """

    stage: int
    name: str = ""
    tasks: int = 0
    done: int = 0
    rows_read: int = 0
    rows_written: int = 0
    began_at: str | None = None
    progress_at: str | None = None

    def idle_seconds(self, at: str) -> float:
        """Return for how long no task has ended at a time of the run (RFC 3339); 0 if that is unknown."""
        if self.progress_at is None:
            return 0.0
        return max(0.0, (parse_time(at) - parse_time(self.progress_at)).total_seconds())


class RunNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of a job run, in the report of one of its envelopes.

    Attributes:
        at: the time at the run (RFC 3339).
        envelopes, done: the number of envelopes of the run, and the number of finished ones.
        stages: the running stages, five at most.
        usage: the resources of the whole run, after its end; the envelopes share it.
        size: the name of its size; empty if its actor has none.
    """

    run_id: str
    job_run_id: str
    state: str
    at: str
    envelopes: int
    done: int | None = None
    stages: tuple[StageNote, ...] = ()
    usage: Usage | None = None
    size: str = ""


class HeartbeatRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A heartbeat, as `asya_spark` writes it. Of two copies the higher `beat` counts.

    Attributes:
        at_work: the indexes of the members at work.
        executors: the number of executors that the run has had; None if the driver needs none, or did not say.
    """

    at: str
    beat: int
    at_work: tuple[int, ...] = ()
    done: int = 0
    stages: tuple[StageNote, ...] = ()
    executors: int | None = None

    def reported_stages(self) -> tuple[StageNote, ...]:
        """The stages within the limits of a report: five stages, names of 80 characters."""
        stages = self.stages[:REPORTED_STAGES]
        return tuple(msgspec.structs.replace(stage, name=stage.name[:_NAME_LIMIT]) for stage in stages)


class JobPartial(msgspec.Struct, frozen=True, kw_only=True):
    """A partial of a job function; without an index it belongs to every member of the run."""

    index: int | None
    sequence: int
    at: str
    data: msgspec.Raw
