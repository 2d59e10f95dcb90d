"""The items of job runs: what is kept of each, and how it lies in the table (`protocol §10`).

Keys (they can never change), in the table `asya-{namespace}-pending`:

- run: `RUN#{actor}` / `{number:010d}`; `RUN#{actor}` / `latest` holds the highest number ever, and never expires.
- open: `OPEN#{actor}` / `{number:010d}`, there as long as the run is not closed.
- deaths: `DEATHS#{actor}` / `{number:010d}`: how many of the runs died that this one was divided into, itself included.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from asya.protocol.job_runs import NUMBER_DIGITS, Usage
from asya.spark.aws.run_results import ResultSource
from asya.spark.run_failures import CHARGED, FailureDecision, Fate

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    Item = dict[str, AttributeValueTypeDef]

# formed: its manifest is there · started: its envelopes are pending no more and EMR Serverless has it · closed: all is routed
RunState = Literal["formed", "started", "closed"]
NO_MEMBER = -1
# The states of EMR Serverless, by how far a run is. The service never goes back, but what it tells may come late.
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
    """Whose results count, and what becomes of members without any; decided once, so that routing it twice is the same.

    Attributes:
        source: an attempt's commit, the first `parts` parts of a dead one's journal, or none.
        started: whether the run came as far as user code.
    """

    source: ResultSource
    attempt: str = ""
    parts: int = 0
    decision: FailureDecision = CHARGED
    started: bool = True


@dataclass(frozen=True, slots=True, order=True)
class RoutingCursor:
    """How far the routing of a run has come.

    Attributes:
        part: parts done.
        line: in the part after those, the number of the line at which the next envelope begins.
        frame: frames of that envelope that have left.
        lost: members without a result that have been dealt with, after all parts.
    """

    part: int = 0
    line: int = 0
    frame: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run.

    Attributes:
        formed_at, running_at: RFC 3339.
        job_run_id: EMR Serverless's id of it, once known.
        members: how many envelopes it was formed of.
        job_state: what EMR Serverless called its state last, with its words on it.
        usage: what it took, once it is over.
        application_id: the Spark application that it is on, once it has been heard of.
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


def state_rank(state: str) -> int:
    """How far a job run is in this state; a state that nobody knows is nowhere."""
    return _RANKS.get(state, -1)


def digits(number: int) -> str:
    """A run's number as it sorts."""
    return f"{number:0{NUMBER_DIGITS}d}"


def run_key(actor: str, sort: str) -> "Item":
    """The key of a run, or of `latest`."""
    return {"pk": {"S": f"RUN#{actor}"}, "sk": {"S": sort}}


def failures_key(actor: str, origin: int) -> "Item":
    """The key of the deaths that came of a run."""
    return {"pk": {"S": f"DEATHS#{actor}"}, "sk": {"S": digits(origin)}}


def open_key(actor: str, number: int) -> "Item":
    """The key that is there as long as the run is open."""
    return {"pk": {"S": f"OPEN#{actor}"}, "sk": {"S": digits(number)}}


def decode_record(actor: str, number: int, item: "Item") -> RunRecord:
    """A run's item, read."""
    resolution = None
    if "source" in item:
        source = cast("ResultSource", item["source"]["S"])
        at_work = int(item["at_work"]["N"])
        decision = FailureDecision(cast("Fate", item["fate"]["S"]), None if at_work == NO_MEMBER else at_work)
        resolution = Resolution(
            source, item["attempt"]["S"], int(item["parts"]["N"]), decision, bool(item["started"]["BOOL"])
        )
    counts = (int(item.get(f"cursor_{name}", {"N": "0"})["N"]) for name in ("part", "line", "frame", "lost"))
    return RunRecord(
        actor,
        number,
        cast("RunState", item["state"]["S"]),
        item["formed_at"]["S"],
        item["job_run_id"]["S"] if "job_run_id" in item else None,
        resolution,
        RoutingCursor(*counts),
        int(item["members"]["N"]),
        item["running_at"]["S"] if "running_at" in item else None,
        item["job_state"]["S"] if "job_state" in item else "",
        item["details"]["S"] if "details" in item else "",
        msgspec.json.decode(item["usage"]["S"], type=Usage) if "usage" in item else None,
        item["application_id"]["S"] if "application_id" in item else "",
    )
