"""The records of job runs and their items in the table (`protocol §10`).

Keys in the table `asya-{namespace}-pending`; stored items use them, so they never change:

- run: `RUN#{actor}` / `{number:010d}`; `RUN#{actor}` / `latest` holds the highest number and never expires.
- open: `OPEN#{actor}` / `{number:010d}` exists until the run is closed.
- resident run: `HOST#{actor}` / `{number:010d}` exists until its job run has ended.
- failures: `DEATHS#{actor}` / `{number:010d}` counts the failed runs of one origin, the origin included.
"""

from dataclasses import dataclass, field
from typing import Literal, cast

import msgspec

from asya.function.aws.table_items import Item, Key
from asya.heavy.aws.run_files import ResultSource
from asya.heavy.part_results import RunOutcomes
from asya.heavy.run_failures import CHARGED, FailureDecision, Fate
from asya.protocol.job_runs import NUMBER_DIGITS, Host, RunFolder, Usage

# formed: the manifest exists · started: EMR Serverless has the run, its members are no longer pending · closed: all is routed
RunState = Literal["formed", "started", "closed"]
NO_MEMBER = -1
# The states of EMR Serverless in order. A run never goes back, but events may arrive late.
_RANKS = {
    "SUBMITTED": 0,
    "QUEUED": 1,
    "PENDING": 2,
    "SCHEDULED": 3,
    "RUNNING": 4,
    "CANCELLING": 5,
    "SUCCESS": 6,
    "FAILED": 6,
    "CANCELLED": 6,
}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The results of a run that count, and the fate of its other members; recorded once, so routing is repeatable.

    Attributes:
        source: an attempt's commit, the first `parts` parts of a failed attempt's journal, or none.
        started: whether user code was called.
    """

    source: ResultSource
    attempt: str = ""
    parts: int = 0
    decision: FailureDecision = CHARGED
    started: bool = True


@dataclass(frozen=True, slots=True, order=True)
class RoutingCursor:
    """The progress of the routing of a run.

    Attributes:
        part: number of routed parts.
        line: in the next part, the line where the next result begins.
        frame: number of sent frames of that result.
        missing: number of handled members without a result, after all parts; stored as `cursor_lost`.
        outcomes: the members before this place by outcome.
    """

    part: int = 0
    line: int = 0
    frame: int = 0
    missing: int = 0
    outcomes: RunOutcomes = field(default=RunOutcomes(), compare=False)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of one run.

    Attributes:
        formed_at, running_at: RFC 3339.
        job_run_id: the id at EMR Serverless, once started.
        members: number of envelopes in the manifest.
        job_state, details: the last state at EMR Serverless, with its reason.
        usage: the resources used, once the run has ended.
        application_id: the Spark application, once an event has named it.
        waiting_since: when a member's first run was formed, if it lacked capacity (RFC 3339); the earliest of all members.
        manifest_digest: the SHA-256 of the manifest.
        host: the place in the resident run that has, or had, the run as a batch; None if it has a job run of its own.
        is_placed: whether it is decided which job run takes it. Only actors whose runs linger have the choice.
        lingers: whether it may be resident, or a batch of a resident run.
    """

    actor: str
    number: int
    state: RunState
    formed_at: str
    job_run_id: str | None = None
    resolution: Resolution | None = None
    cursor: RoutingCursor = RoutingCursor()
    members: int = 0
    running_at: str | None = None
    job_state: str = ""
    details: str = ""
    usage: Usage | None = None
    application_id: str = ""
    waiting_since: str = ""
    manifest_digest: str = ""
    host: Host | None = None
    is_placed: bool = False
    lingers: bool = False

    @property
    def outcomes(self) -> RunOutcomes | None:
        """Its members by outcome, as far as they are routed; None without any, and if a version that did not count closed it."""
        counted = self.cursor.outcomes
        is_complete = counted.total == self.members
        return counted if counted.total and (is_complete or self.state != "closed") else None

    @property
    def is_resident(self) -> bool:
        """Whether it has a job run of its own, which lingers."""
        return self.lingers and self.host is None

    @property
    def folder(self) -> RunFolder:
        """Where the files of the run are."""
        return RunFolder(self.actor, self.number, self.host)


def job_run_number(record: RunRecord) -> int:
    """The number of the run whose job run does the work: its own, or that of the resident run that hosts it."""
    return record.number if record.host is None else record.host.number


def state_rank(state: str) -> int:
    """The rank of a state in the order of EMR Serverless; -1 for an unknown state."""
    return _RANKS.get(state, -1)


def digits(number: int) -> str:
    """A run's number as a sort key."""
    return f"{number:0{NUMBER_DIGITS}d}"


def run_key(actor: str, sort: str) -> Key:
    """The key of a run, or of `latest`."""
    return Key(f"RUN#{actor}", sort)


def failures_key(actor: str, origin: int) -> Key:
    """The key of the failure count of an origin."""
    return Key(f"DEATHS#{actor}", digits(origin))


def host_key(actor: str, number: int) -> Key:
    """The key of the item that exists while a resident run may have a batch."""
    return Key(f"HOST#{actor}", digits(number))


def open_key(actor: str, number: int) -> Key:
    """The key of the item that exists while the run is open."""
    return Key(f"OPEN#{actor}", digits(number))


def decode_record(actor: str, number: int, item: Item) -> RunRecord:
    """Decodes the item of a run."""
    resolution = None
    if "source" in item:
        source = cast("ResultSource", item.text("source"))
        convicted = item.integer("at_work")
        decision = FailureDecision(
            cast("Fate", item.text("fate")),
            None if convicted == NO_MEMBER else convicted,
            tuple(item.list_of(int, "suspects")),
        )
        resolution = Resolution(source, item.text("attempt"), item.integer("parts"), decision, item.flag("started"))
    outcomes = msgspec.json.decode(item.text("outcomes", "{}"), type=RunOutcomes)
    part, line, frame, lost = (item.integer(f"cursor_{name}", 0) for name in ("part", "line", "frame", "lost"))
    host = item.integer("host", 0)
    return RunRecord(
        actor,
        number,
        cast("RunState", item.text("state")),
        item.text("formed_at"),
        item.text("job_run_id", None),
        resolution,
        RoutingCursor(part, line, frame, lost, outcomes),
        item.integer("members"),
        item.text("running_at", None),
        item.text("job_state", ""),
        item.text("details", ""),
        msgspec.json.decode(item.text("usage"), type=Usage) if "usage" in item else None,
        item.text("application_id", ""),
        item.text("waiting_since", ""),
        item.text("manifest_digest"),
        Host(host, item.integer("host_batch")) if host else None,
        "host" in item,
        "lingers" in item,
    )
