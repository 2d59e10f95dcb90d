"""What becomes of the envelopes that a run left without a result (`protocol §10`).

A run that died with an envelope at work died of that one: it is charged an attempt, the others run again. With nobody at
work the run is halved, and its halves again, until one envelope stands alone. A single culprit among n is found in about
2·log2(n) runs; where not one envelope but everything is to blame (settings, memory, an outage), halving would go on for 2·n
runs, so deaths of one origin are counted and there is an end to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Half, Manifest, Member

SPARK_JOB_FAILED = "SparkJobFailed"

# So many runs of one origin may die before user code was called: an envelope can hardly be the reason.
START_FAILURE_LIMIT = 4
# So many may die in user code: two culprits among 10,000 are found within that.
FAILURE_LIMIT = 32

# charged: whoever has no result · again: whoever has none but the one at work · halved: in two runs · waiting: as they were
Fate = Literal["charged", "again", "halved", "waiting"]
RunStage = Literal["absent", "starting", "working"]


@dataclass(frozen=True, slots=True)
class FailureDecision:
    """What becomes of the members without a result.

    Attributes:
        at_work: the member that is charged where the others run again.
    """

    fate: Fate
    at_work: int | None = None


CHARGED = FailureDecision("charged")
# There was no room for the run: nobody's fault, and no death.
WAITING = FailureDecision("waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """What a run that died left.

    Attributes:
        lost: the members without a result, in the order of the manifest.
        stage: how far its last attempt had come; absent: the driver wrote nothing at all.
        at_work: the member that user code was busy with, if the journal names one.
        deaths: of runs of the same origin, this one included.
    """

    lost: Sequence[int]
    stage: RunStage
    at_work: int | None
    failures: int


def decide(manifest: Manifest, failed_run: FailedRun) -> FailureDecision:
    """Who is charged with a death."""
    if failed_run.at_work is not None and failed_run.at_work in failed_run.lost:
        return FailureDecision("again", failed_run.at_work)
    if len(failed_run.lost) <= 1:
        return CHARGED
    if len(failed_run.lost) < len(manifest.members) and manifest.shape == "payload":
        return FailureDecision("again")  # it died between two envelopes, and every such run gets further
    return CHARGED if failed_run.failures >= _limit(failed_run.stage) else FailureDecision("halved")


def origin(manifest: Manifest) -> int:
    """The number of the run whose halving led to this one; its own if none did."""
    half = manifest.members[0].half if manifest.members else None
    return half.origin if half else manifest.number


def returned_members(manifest: Manifest, decision: FailureDecision, lost: Sequence[int]) -> dict[int, Member]:
    """The members that run again, as they are to wait, by their places in the manifest."""
    if decision.fate == "charged":
        return {}
    if decision.fate == "waiting":
        return {index: replace(manifest.members[index], returned_by=manifest.number) for index in lost}
    back = [index for index in lost if index != decision.at_work]
    if decision.fate == "again":
        return {index: _returned(manifest, index, None) for index in back}
    middle = (len(back) + 1) // 2
    first, second = (
        Half(run=manifest.number, side=0, size=middle, origin=origin(manifest)),
        Half(run=manifest.number, side=1, size=len(back) - middle, origin=origin(manifest)),
    )
    return {index: _returned(manifest, index, first if place < middle else second) for place, index in enumerate(back)}


def charge_error(
    died: str, decision: FailureDecision, *, lost: int, started: bool, python_error: ErrorInfo | None, hint: str
) -> ErrorInfo:
    """The error that an envelope is charged with.

    Args:
        died: which run ended how, and the service's words on it.
        lost: how many members had no result.
        started: whether user code was reached.
        python_error: what the driver's Python ended with, if it could still say so.
        hint: where to look further.
    """
    sentences = [f"{died}{_circumstances(decision, lost, started=started)}"]
    if python_error is not None:
        sentences.append(f"The driver's Python ended with {python_error.type}: {python_error.message}")
    sentences.append(hint)
    return ErrorInfo(
        type=SPARK_JOB_FAILED,
        message=". ".join(sentence.rstrip(". ") for sentence in sentences if sentence),
        traceback=python_error.traceback if python_error else "",
    )


def _circumstances(decision: FailureDecision, lost: int, *, started: bool) -> str:
    if decision.at_work is not None:
        return ", while this envelope was at work"
    if lost <= 1:
        return ", with this envelope alone in it"
    when = "" if started else " before the job was called"
    return (
        f"; runs with these envelopes went on dying{when}, however they were divided, so it is hardly one of the {lost} "
        "that is to blame: look at the job's settings and sizes, its files and its permissions"
    )


def _returned(manifest: Manifest, index: int, half: Half | None) -> Member:
    return replace(manifest.members[index], returned_by=manifest.number, half=half)


def _limit(stage: RunStage) -> int:
    return FAILURE_LIMIT if stage == "working" else START_FAILURE_LIMIT
