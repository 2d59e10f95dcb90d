"""What a task's hop tells of the job run it is in: how far the run is, and what it took in the end (`protocol §10`)."""

import msgspec

from asya.protocol.job_runs import Usage

REPORTED_STAGES = 5
_NAME_LIMIT = 80


class StageNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Spark stage at work: tasks done of all, rows so far."""

    stage: int
    name: str = ""
    tasks: int = 0
    done: int = 0
    rows_read: int = 0
    rows_written: int = 0


class RunNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job run as seen from one of its envelopes.

    Attributes:
        at: when the run said so (RFC 3339).
        envelopes, done: how many it has, and how many of those it is done with.
        stages: those at work, a few of them.
        usage: of the whole run, once it is over; its envelopes share it.
    """

    run_id: str
    job_run_id: str
    state: str
    at: str
    envelopes: int
    done: int | None = None
    stages: tuple[StageNote, ...] = ()
    usage: Usage | None = None


class HeartbeatRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A heartbeat, as `asya_spark` writes it; of two slots the one with the higher number counts."""

    at: str
    beat: int
    at_work: int | None = None
    done: int = 0
    stages: tuple[StageNote, ...] = ()

    def reported_stages(self) -> tuple[StageNote, ...]:
        """As much of the stages as a report may hold."""
        some = self.stages[:REPORTED_STAGES]
        return tuple(msgspec.structs.replace(stage, name=stage.name[:_NAME_LIMIT]) for stage in some)


class JobPartial(msgspec.Struct, frozen=True, kw_only=True):
    """An ephemeral message of a job; without an index it is for every member of its run."""

    index: int | None
    sequence: int
    at: str
    data: msgspec.Raw
