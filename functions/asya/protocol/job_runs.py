"""What a job run is told and what it tells: manifest, results, journal and commit (`protocol §10`).

These are files under `runs/{actor}/{number}/` in the mesh's bucket. The dispatcher writes the manifest, `asya_spark` (which
has the standard library only, and so reads and writes the same shapes by `json`) everything else, the completion reads it.
"""

from typing import Literal

import msgspec
from msgspec import Raw

from asya.protocol.errors import ErrorInfo

VERSION = 1
NUMBER_DIGITS = 10

RUNS_PREFIX = "runs/"
PENDING_PREFIX = "pending/"
SCRATCH_PREFIX = "scratch/"

Shape = Literal["payload", "dataframe"]
End = Literal["done", "failed", "timed_out", "crashed"]


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs that are made of one that died with nobody to blame.

    Attributes:
        run: the number of the run that was halved.
        size: how many envelopes it was made of.
        origin: the number of the run that was halved first.
    """

    run: int
    side: Literal[0, 1]
    size: int
    origin: int


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One envelope of a run.

    Attributes:
        admitted_at: when it became pending (RFC 3339).
        is_suspect: a run has died of it before; it runs with its like only.
        returned_by: the number of the run that gave it back without charging it, 0 if none did. It may run again once that
            run is closed: only then everything that comes back is there.
        half: it runs with those of the same half only.
        envelope: the stamped envelope as JSON, if it is small.
        envelope_key: else the key of the object that holds it.
        callback: where its reports go; None for stealth envelopes and where there is no gateway.
    """

    id: str
    position: int
    attempt: int
    admitted_at: str
    generation: int = 0
    root_id: str | None = None
    deadline_at: str | None = None
    callback: str | None = None
    envelope: Raw | msgspec.UnsetType = msgspec.UNSET
    envelope_key: str | None = None
    is_suspect: bool = False
    returned_by: int = 0
    half: Half | None = None

    @property
    def group_key(self) -> tuple[bool, int, int]:
        """Only members of the same group_key may be in one run."""
        return (self.is_suspect, self.half.run, self.half.side) if self.half else (self.is_suspect, 0, 0)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run as it was formed. That this object exists is what makes it so.

    Attributes:
        job: `module.function` of the user's jobs.
        timeout: seconds per envelope; of the whole run where the job takes a DataFrame.
        time_limit: minutes after which EMR Serverless ends the run.
        client_token: makes starting it idempotent.
        streamed: frames of an envelope that fails later count all the same (`frames: streamed`).
    """

    run_id: str
    namespace: str
    actor: str
    number: int
    formed_at: str
    job: str
    shape: Shape
    timeout: float
    time_limit: int
    client_token: str
    members: tuple[Member, ...]
    streamed: bool = True
    payload_schema: str | None = None
    version: int = VERSION


class ResultPart(msgspec.Struct, frozen=True, kw_only=True):
    """One file of results: those of the members `first` to `last` (their places in the manifest), whole envelopes only.

    Attributes:
        file: its name beside the commit.
        lines: lines in the file; `size` is in bytes.
    """

    file: str
    first: int
    last: int
    lines: int
    size: int


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The last file of an attempt at a run: which results there are.

    Attributes:
        error: what keeps the job as a whole from working (it cannot be loaded), told for every member without a result.
        unreached: the first of the members that the run had no time for; they run again.
    """

    run_id: str
    attempt: str
    finished_at: str
    parts: tuple[ResultPart, ...]
    error: ErrorInfo | None = None
    unreached: int | None = None


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """Where an attempt stands, for the case that it dies; of two slots the one with the higher `sequence` counts.

    Attributes:
        at_work: the member that user code is busy with, if any.
        stage: whether user code was called already, for one member or for all.
    """

    run_id: str
    attempt: str
    sequence: int
    updated_at: str
    parts: tuple[ResultPart, ...]
    at_work: int | None = None
    stage: Literal["starting", "working"] = "working"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a run took, in hours of one unit each; `billed` as EMR Serverless bills it, else as it was used.

    Attributes:
        storage_gb_hours: beyond what comes free with a worker.
    """

    vcpu_hours: float = 0.0
    memory_gb_hours: float = 0.0
    storage_gb_hours: float = 0.0
    billed: bool = False


class ResultHead(msgspec.Struct, frozen=True, kw_only=True):
    """A result's first line: how it went for one member. `frames` lines follow.

    Attributes:
        limit: seconds that were too few, for `timed_out`.
        by_deadline: it was the envelope's deadline that set them.
    """

    index: int
    end: End
    frames: int = 0
    duration_ms: float = 0.0
    error: ErrorInfo | None = None
    limit: float = 0.0
    by_deadline: bool = False


class ResultFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One frame: a payload, and what the job changed of route, headers and status (null removes).

    Without a payload it has the one that was received (the origin of a fan-out).
    """

    payload: Raw | msgspec.UnsetType = msgspec.UNSET
    next: tuple[str, ...] | None = None
    headers: dict[str, Raw] = {}
    status: dict[str, Raw] = {}


def run_id(namespace: str, actor: str, number: int) -> str:
    """The run's id, which is also its name at EMR Serverless. Labels hold no dots, so that it can be read back."""
    return f"asya.{namespace}.{actor}.{number:0{NUMBER_DIGITS}d}"


def parse_run_id(text: str, namespace: str) -> tuple[str, int] | None:
    """Actor and number of a run of this mesh; None for anything else (other applications name their jobs too)."""
    parts = text.split(".")
    if len(parts) != 4 or parts[0] != "asya" or parts[1] != namespace:
        return None
    if len(parts[3]) != NUMBER_DIGITS or not parts[3].isascii() or not parts[3].isdigit():
        return None
    return parts[2], int(parts[3])


def run_prefix(actor: str, number: int) -> str:
    """The key prefix of everything that belongs to one run."""
    return f"{RUNS_PREFIX}{actor}/{number:0{NUMBER_DIGITS}d}/"


def manifest_key(actor: str, number: int) -> str:
    """Where the manifest lies."""
    return f"{run_prefix(actor, number)}manifest.json"


def attempts_prefix(actor: str, number: int) -> str:
    """Every start of the driver writes into a folder of its own below this."""
    return f"{run_prefix(actor, number)}attempts/"


def logs_prefix(actor: str, number: int) -> str:
    """Where EMR Serverless puts the logs of a run's driver and executors."""
    return f"{run_prefix(actor, number)}logs/"


def driver_log_key(actor: str, number: int, application_id: str, job_run_id: str) -> str:
    """The driver's log, in the layout of EMR Serverless."""
    place = f"applications/{application_id}/jobs/{job_run_id}/SPARK_DRIVER/stderr.gz"
    return logs_prefix(actor, number) + place


def scratch_prefix(actor: str, number: int) -> str:
    """Temporary data of one run, relative to the data prefix."""
    return f"{SCRATCH_PREFIX}{actor}/{number:0{NUMBER_DIGITS}d}/"
