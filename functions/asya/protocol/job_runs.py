"""The files of a job run: manifest, results, journal and commit (`protocol §10`).

The files are under `runs/{actor}/{number}/` in the mesh's bucket. The dispatcher writes the manifest, the job writes all
others, and the completion reads them. `asya_spark` has the standard library only, so it handles the same shapes as `json`.
"""

import re
from typing import Literal

import msgspec
from msgspec import Raw

from asya.protocol.errors import ErrorInfo
from asya.protocol.states import JobEnd
from asya.protocol.status import Status

VERSION = 1
"""Of the text of a manifest."""
NUMBER_DIGITS = 10
BATCH_DIGITS = 6

RUNS_PREFIX = "runs/"
PENDING_PREFIX = "pending/"
SCRATCH_PREFIX = "scratch/"
# Within the folder of a run.
ATTEMPTS_FOLDER = "attempts"
BATCHES_FOLDER = "batches"
COMMIT_FILE = "commit.json"  # within the folder of an attempt
LOGS_FOLDER = "logs"

_COMMIT = re.compile(
    rf"{RUNS_PREFIX}(?P<actor>[^/]+)/(?P<number>[0-9]{{{NUMBER_DIGITS}}})/"
    rf"(?:{BATCHES_FOLDER}/(?P<batch>[0-9]{{{BATCH_DIGITS}}})/)?{ATTEMPTS_FOLDER}/[^/]+/{re.escape(COMMIT_FILE)}"
)

# Why a resident run takes no batch any more. linger: it was idle for so long · limit: too little time is left for an envelope ·
# ended: its driver ends · changed: a deployment changed its job · room: another run needs its workers · canceled: it is canceled
CloseReason = Literal["linger", "limit", "ended", "changed", "room", "canceled"]
Shape = Literal["payload", "dataframe"]


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """One half of a job run that failed without an envelope to charge (`protocol §10`, failures of a run).

    Attributes:
        run: the number of the halved run.
        size: the number of envelopes in the halved run.
        origin: the number of the first run of the chain of halves.
    """

    run: int
    side: Literal[0, 1]
    size: int
    origin: int


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One envelope of a run.

    Attributes:
        admitted_at: the time at which it became pending (RFC 3339).
        was_charged: whether a failed run was charged to it; it runs only with others of its kind.
        returned_by: the number of the run that returned it without a charge, or 0. It waits until that run is closed,
            because only then all returned envelopes are pending.
        half: the half that it belongs to; it runs only with envelopes of the same half.
        suspected_in: the number of the run that died with it at work, without proof that it was the cause, or 0. It runs
            next only with those that were at work beside it, one at a time.
        deaths: the number of failed runs with it, one after the other, in which no envelope finished.
        waiting_since: when its first run was formed, of those that lacked capacity one after the other (RFC 3339).
        without_executor: the number of those runs that were billed for a driver without an executor.
        envelope: the stamped envelope as JSON, if it is small.
        envelope_key: the key of the object that holds a large envelope.
        report_url: base URL for its reports; None for stealth envelopes and without a gateway.
        round: its place among the envelopes of its tenant, for an actor with `fair_by`; from 1 on, 0 without one.
        size: the name of the size after the one in which it ran out of memory, or empty.
        measure: what `size_by` of its actor found in its payload; None without a value (`protocol §10.size`).
        tenant: who started its task, as the mesh has proved, for an actor with `isolation` and `fair_by: owner`; else empty.
        ended: phase and reason with which it came, if that was an end (`protocol §5.10`).
    """

    id: str
    position: int
    attempt: int
    admitted_at: str
    generation: int = 0
    root_id: str | None = None
    deadline_at: str | None = None
    report_url: str | None = None
    envelope: Raw | msgspec.UnsetType = msgspec.UNSET
    envelope_key: str | None = None
    was_charged: bool = False
    returned_by: int = 0
    half: Half | None = None
    suspected_in: int = 0
    deaths: int = 0
    waiting_since: str | None = None
    without_executor: int = 0
    round: int = 0
    tenant: str = ""
    size: str = ""
    measure: float | None = None
    ended: Status | None = None

    @property
    def group_key(self) -> tuple[bool, int, int, int]:
        """One run takes only members with the same group key."""
        half = (self.half.run, self.half.side) if self.half else (0, 0)
        return (self.was_charged, self.suspected_in, *half)


class ManifestHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of a run: the first line of its manifest.

    Attributes:
        job: `module.function` of the job function.
        timeout: seconds for each envelope; for the whole run if the job takes a DataFrame.
        time_limit: minutes after which EMR Serverless ends the run.
        client_token: makes the start of the run idempotent.
        streamed: whether the frames count of an envelope that fails after them (`frames: streamed`).
        parallel: the number of envelopes at work at the same time.
        linger: seconds that its driver waits for a further batch; 0 for a run that ends.
        size: the name of its size; empty if its actor has none.
        max_children: of the mesh; a call ends at the first frame that is one child too many. None for no bound.
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
    streamed: bool = True
    payload_schema: str | None = None
    parallel: int = 1
    linger: float = 0.0
    size: str = ""
    max_children: int | None = None


class Manifest(ManifestHead, frozen=True, kw_only=True, omit_defaults=True):
    """The members and settings of a run. Writing its text forms the run (`asya.heavy.run_formation`)."""

    members: tuple[Member, ...]


class ResultPart(msgspec.Struct, frozen=True, kw_only=True):
    """One file with the complete results of the members `first` to `last`, by their index in the manifest; parts are in any order.

    Attributes:
        file: the file name, in the folder of the commit.
        lines: the number of lines; `size` is in bytes.
    """

    file: str
    first: int
    last: int
    lines: int
    size: int


class StageSkew(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stage whose longest task took ten times the median."""

    stage: int
    name: str = ""
    tasks: int = 0
    median_ms: float = 0.0
    longest_ms: float = 0.0


class CallWork(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Spark has measured of the stages of a call, in bytes (`protocol §10.work`).

    Attributes:
        skew: the stage with the longest task among those that are skewed.
    """

    stages: int = 0
    tasks: int = 0
    shuffle_read: int = 0
    shuffle_written: int = 0
    spilled_memory: int = 0
    spilled_disk: int = 0
    skew: StageSkew | None = None


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The last file of an attempt at a run; it lists the results.

    Attributes:
        error: the error of the whole job, such as a failed import. It applies to every member without a result.
        unreached: the index of the first member that the run had no time for; these members run again.
        work: of a job that has one call for all members.
    """

    run_id: str
    attempt: str
    finished_at: str
    parts: tuple[ResultPart, ...]
    error: ErrorInfo | None = None
    unreached: int | None = None
    work: CallWork | None = None


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an attempt, for the case that its process dies. Of two copies the higher `sequence` counts.

    Attributes:
        at_work: the indexes of the members that user code processes.
        started: the number of members for which user code was called.
        stage: `working` as soon as user code was called for any member.
    """

    run_id: str
    attempt: str
    sequence: int
    updated_at: str
    parts: tuple[ResultPart, ...]
    at_work: tuple[int, ...] = ()
    started: int = 0
    stage: Literal["starting", "working"] = "working"

    @property
    def is_first(self) -> bool:
        """Whether user code was called for one member only."""
        return self.started == 1


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that a run used, in hours of one unit each.

    Attributes:
        storage_gb_hours: storage beyond the free storage of each worker.
        billed: whether the numbers are the billed ones of EMR Serverless, not the used ones.
    """

    vcpu_hours: float = 0.0
    memory_gb_hours: float = 0.0
    storage_gb_hours: float = 0.0
    billed: bool = False


class ResultHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a result: the outcome for one member. `frames` more lines follow.

    Attributes:
        limit: the exceeded time limit in seconds, for `timed_out`.
        by_deadline: whether the envelope's deadline set this limit.
        work: of a job with one payload for each call; None if it is unknown.
    """

    index: int
    end: JobEnd
    frames: int = 0
    duration_ms: float = 0.0
    error: ErrorInfo | None = None
    limit: float = 0.0
    by_deadline: bool = False
    work: CallWork | None = None


class ResultFrame(msgspec.Struct, frozen=True, kw_only=True):
    """One frame: a payload, and the job's changes to route, headers and status; null removes a key.

    A frame without a payload carries the received payload (the origin of a fan-out).
    """

    payload: Raw | msgspec.UnsetType = msgspec.UNSET
    next: tuple[str, ...] | None = None
    headers: dict[str, Raw] = {}
    status: dict[str, Raw] = {}


def run_id(namespace: str, actor: str, number: int) -> str:
    """The id of a run, and its name at EMR Serverless. DNS labels have no dots, so the id can be parsed."""
    return f"asya.{namespace}.{actor}.{number:0{NUMBER_DIGITS}d}"


def parse_run_id(text: str, namespace: str) -> tuple[str, int] | None:
    """The actor and number of a run of this mesh; None for the name of any other job."""
    parts = text.split(".")
    if len(parts) != 4 or parts[0] != "asya" or parts[1] != namespace:
        return None
    if len(parts[3]) != NUMBER_DIGITS or not parts[3].isascii() or not parts[3].isdigit():
        return None
    return parts[2], int(parts[3])


def pending_prefix(actor: str) -> str:
    """The key prefix of the pending envelopes of an actor."""
    return f"{PENDING_PREFIX}{actor}/"


def run_prefix(actor: str, number: int) -> str:
    """The key prefix of all files of a run."""
    return f"{RUNS_PREFIX}{actor}/{number:0{NUMBER_DIGITS}d}/"


def manifest_key(actor: str, number: int) -> str:
    """The key of the manifest."""
    return f"{run_prefix(actor, number)}manifest.json"


class Place(msgspec.Struct, frozen=True):
    """The place of a run in a resident one: batch `batch`, from 1 on, of run `number` (`protocol §10.resident`)."""

    number: int
    batch: int


class RunFolder(msgspec.Struct, frozen=True):
    """Where the files of a run are: in a folder of its own, or in that of the resident run whose batch it is."""

    actor: str
    number: int
    place: Place | None = None

    @property
    def prefix(self) -> str:
        """The key prefix of the run's manifest, as its driver reads it, and of all that the driver writes."""
        if self.place is None:
            return run_prefix(self.actor, self.number)
        return f"{run_prefix(self.actor, self.place.number)}{BATCHES_FOLDER}/{self.place.batch:0{BATCH_DIGITS}d}/"

    @property
    def attempts(self) -> str:
        """The key prefix of the attempts; each attempt has its own folder below."""
        return f"{self.prefix}{ATTEMPTS_FOLDER}/"


class Closed(msgspec.Struct, frozen=True):
    """What stands in place of the manifest of a batch that will never be: the resident run ends (`protocol §10.resident`)."""

    closed: CloseReason


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life of a resident run that is idle.

    Attributes:
        at: when it was written (RFC 3339).
        batch: the batch that it waits for.
        since: when it became idle (RFC 3339).
    """

    at: str
    batch: int
    since: str


def attempts_prefix(actor: str, number: int) -> str:
    """The key prefix of the attempts of a run that has a folder of its own."""
    return RunFolder(actor, number).attempts


def presence_key(actor: str, number: int) -> str:
    """The key of the last sign of life of a resident run."""
    return f"{run_prefix(actor, number)}{BATCHES_FOLDER}/presence.json"


def parse_commit_key(key: str) -> RunFolder | None:
    """Where a commit was written: the number is that of the job run, also if the commit is that of a batch."""
    match = _COMMIT.fullmatch(key)
    if match is None:
        return None
    number = int(match["number"])
    place = Place(number, int(match["batch"])) if match["batch"] else None
    return RunFolder(match["actor"], number, place)


def logs_prefix(actor: str, number: int) -> str:
    """The key prefix of the logs that EMR Serverless writes for driver and executors."""
    return f"{run_prefix(actor, number)}{LOGS_FOLDER}/"


def driver_log_key(actor: str, number: int, application_id: str, job_run_id: str) -> str:
    """The key of the driver's log, in the layout of EMR Serverless."""
    return f"{logs_prefix(actor, number)}applications/{application_id}/jobs/{job_run_id}/SPARK_DRIVER/stderr.gz"


def scratch_prefix(actor: str, number: int) -> str:
    """The prefix of a run's temporary data, relative to the data prefix."""
    return f"{SCRATCH_PREFIX}{actor}/{number:0{NUMBER_DIGITS}d}/"
