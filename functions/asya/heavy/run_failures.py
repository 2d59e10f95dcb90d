"""Decides the fate of envelopes that a failed run left, and explains its exit code (`protocol §10`).

A payload job names the envelopes at work. An envelope is convicted, that is charged an attempt, only if it was the first and
only one at work in its run: then nothing that ran before it or beside it can be the cause. Otherwise those at work are
suspects. They run again one at a time, uncharged, until one of them is the first of a run that dies.

A DataFrame job names no envelope, nor does a run that fails before the job was called. Such a run is halved, and its halves
again, until one envelope stands alone. This isolates one bad envelope among n in about 2·log2(n) runs.

If every run fails (settings, memory, an outage), this would take a run for each envelope. Two limits end it: one on the
failures per origin of halves, and one on the runs in a row that died with an envelope before any envelope finished.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Half, Manifest, Member
from asya.protocol.mesh_table import SparkJob

# What ran out of memory while its run went on: the JVM of the driver or of a task, or a Python.
_MEMORY_ERRORS = ("OutOfMemoryError", "MemoryError")
_KILLED = re.compile(r"exit(?:ed with)? ?code:? ?137\b|OutOfMemoryError", re.IGNORECASE)
_MARK = "out of memory"


def ran_out_of_memory(details: str) -> bool:
    """Whether the details of a failed job run say that it died of memory."""
    return _KILLED.search(details) is not None


def failed_for_memory(error: ErrorInfo) -> bool:
    """Whether the error of a call says that the driver, a task or an executor ran out of memory."""
    types = {name.rpartition(".")[2] for name in (error.type, *error.mro)}
    return not types.isdisjoint(_MEMORY_ERRORS) or _KILLED.search(error.message) is not None


def explained(details: str, actor: str, job: SparkJob | None, size: str = "") -> str:
    """Return the details of a failed job run, with what 137 means and which keys of the mesh file raise the memory.

    Args:
        details: the `stateDetails` of EMR Serverless.
        actor: the heavy actor.
        job: its job in the size of the run; None if the mesh does not have the actor any more.
        size: the name of this size; empty if the actor has none.
    """
    if job is None or _MARK in details or not ran_out_of_memory(details):
        return details
    meaning = f"137 is {_MARK} as a rule" if "137" in details else _MARK
    sizes = f"the driver had {_size(job.driver.memory_mb)}, each executor {_size(job.executor.memory_mb)}"
    place = f"spark.sizes.{size}" if size else "spark"
    keys = (
        f"raise `{place}.driver.memory` of {actor} in the mesh file, or `{place}.executors.memory` if an executor died"
    )
    return f"{details.rstrip('. ')} ({meaning}: {sizes}; {keys})"


def _size(megabytes: int) -> str:
    return f"{megabytes // 1024} GB" if megabytes % 1024 == 0 else f"{megabytes} MB"


SPARK_JOB_FAILED = "SparkJobFailed"

# Failures per origin before user code was called; an envelope is hardly their cause.
START_FAILURE_LIMIT = 4
# Failures per origin in user code; enough to isolate two bad envelopes among 10,000.
FAILURE_LIMIT = 32
# Runs in a row that died with an envelope before any envelope finished; so many bad envelopes in a row are hardly the cause.
DEATH_LIMIT = 32
# Runs in a row without an executor. Each is billed for a driver of 20 minutes, and more of them hardly help.
NO_EXECUTOR_LIMIT = 3

# For members without a result. charged: all fail · again: all but the convicted one run again · halved: they run again in two
# runs · waiting: they run again unchanged · no_executor: the same, until their limit of such runs · larger: all run again, those at
# work (without any, all) in the next size.
Fate = Literal["charged", "again", "halved", "waiting", "no_executor", "larger"]
RunStage = Literal["absent", "starting", "working"]


@dataclass(frozen=True, slots=True)
class FailureDecision:
    """The fate of the members without a result.

    Attributes:
        convicted: the index of the member that is charged while the others run again.
        suspects: the indexes of the members that run again one at a time, or in the next size.
        larger: the name of the next size, for members that ran out of memory; empty without one.
    """

    fate: Fate
    convicted: int | None = None
    suspects: tuple[int, ...] = ()
    larger: str = ""


CHARGED = FailureDecision("charged")
# EMR Serverless lacked capacity; this counts as no failure.
WAITING = FailureDecision("waiting")
# The driver got no executor; this counts as no failure either, but a few times only.
NO_EXECUTOR = FailureDecision("no_executor")
LACKS_CAPACITY: frozenset[Fate] = frozenset({"waiting", "no_executor"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """The output of a failed run.

    Attributes:
        missing: indexes of the members without a result, ascending.
        stage: the progress of the last attempt; `absent`: the driver wrote nothing.
        at_work: the indexes of the members in user code, as the journal names them.
        is_first: whether user code was called for no other member before.
        failures: failed runs of the same origin, this one included.
        larger: the name of the next size, if the run died of memory; else empty.
    """

    missing: Sequence[int]
    stage: RunStage
    at_work: Sequence[int] = ()
    is_first: bool = True
    failures: int
    larger: str = ""


def decide(manifest: Manifest, failed_run: FailedRun) -> FailureDecision:
    """Decides which members are charged with a failed run and which run again."""
    missing = set(failed_run.missing)
    if at_work := tuple(index for index in failed_run.at_work if index in missing):
        return _decide_at_work(failed_run, at_work)
    if missing and len(missing) < len(manifest.members) and manifest.shape == "payload":
        return FailureDecision("again")  # it failed between two envelopes, so the next run gets further
    if missing and failed_run.larger:
        return FailureDecision("larger")
    if len(missing) <= 1:
        return CHARGED
    return CHARGED if failed_run.failures >= _limit(failed_run.stage) else FailureDecision("halved")


def _decide_at_work(failed_run: FailedRun, at_work: tuple[int, ...]) -> FailureDecision:
    if failed_run.larger:
        return FailureDecision("larger", suspects=at_work)
    if len(failed_run.at_work) == 1 and failed_run.is_first:
        return FailureDecision("again", convicted=at_work[0])
    return FailureDecision("again", suspects=at_work)


def origin(manifest: Manifest) -> int:
    """The number of the run that was halved first on the way to this run, or its own number."""
    half = manifest.members[0].half if manifest.members else None
    return half.origin if half else manifest.number


def returned_members(manifest: Manifest, decision: FailureDecision, missing: Sequence[int]) -> dict[int, Member]:
    """The members that run again, in their new form, by their index in the manifest."""
    if decision.fate == "charged":
        return {}
    if decision.fate in LACKS_CAPACITY:
        waiting = {index: _waiting(manifest, index, decision) for index in missing}
        return {index: member for index, member in waiting.items() if member.without_executor < NO_EXECUTOR_LIMIT}
    back = [index for index in missing if index != decision.convicted]
    if decision.fate in ("again", "larger"):
        # A run that stopped in time, or that finished an envelope, ends the row of deaths.
        is_death = decision.fate == "larger" or bool(decision.suspects or decision.convicted is not None)
        died = len(missing) == len(manifest.members) and is_death
        again = {index: _again(manifest, index, decision, died=died) for index in back}
        return {index: member for index, member in again.items() if member.deaths < DEATH_LIMIT}
    middle = (len(back) + 1) // 2
    first, second = (
        Half(run=manifest.number, side=0, size=middle, origin=origin(manifest)),
        Half(run=manifest.number, side=1, size=len(back) - middle, origin=origin(manifest)),
    )
    return {
        index: _returned(manifest, index, first if position < middle else second) for position, index in enumerate(back)
    }


def in_next_size(manifest: Manifest, index: int, decision: FailureDecision) -> Member:
    """A member whose call ran out of memory, as it runs again."""
    return replace(_returned(manifest, index, None), size=decision.larger, deaths=0)


def charge_error(
    ending: str,
    decision: FailureDecision,
    *,
    missing: int,
    charged: int,
    started: bool,
    python_error: ErrorInfo | None,
    hint: str,
) -> ErrorInfo:
    """The error of an envelope that is charged with a failed run.

    Args:
        ending: names the run, its final state and the details of EMR Serverless.
        missing: number of members without a result.
        charged: number of those that are charged.
        started: whether user code was called.
        python_error: the exception that ended the driver's Python, if it was written.
        hint: where to find more information.
    """
    sentences = [f"{ending}{_circumstances(decision, missing, charged, started=started)}"]
    if python_error is not None:
        sentences.append(f"The driver's Python ended with {python_error.type}: {python_error.message}")
    message = ". ".join(sentence.rstrip(". ") for sentence in sentences if sentence)
    return ErrorInfo(
        type=SPARK_JOB_FAILED,
        message=f"{message}\n{hint}",  # on a line of its own: groups of failures have the first line
        traceback=python_error.traceback if python_error else "",
    )


def _circumstances(decision: FailureDecision, missing: int, charged: int, *, started: bool) -> str:
    if decision.fate == "no_executor":
        return (
            f"; this envelope was in {NO_EXECUTOR_LIMIT} runs in a row without an executor: give the application more "
            "capacity, or the job fewer or smaller workers"
        )
    if decision.fate in ("again", "larger"):
        if charged == 1 and decision.convicted is not None:
            return ", while this envelope was at work"
        return (
            f"; {DEATH_LIMIT} runs in a row died before any of their envelopes finished, so the cause is probably not one of "
            f"the {charged} envelopes: check the job's memory, its settings and its files"
        )
    if missing <= 1:
        return ", with this envelope alone in it"
    when = "" if started else " before the job was called"
    return (
        f"; runs with these envelopes failed repeatedly{when}, even after halving, so the cause is probably not one of the "
        f"{missing} envelopes: check the job's settings and sizes, its files and its permissions"
    )


def _again(manifest: Manifest, index: int, decision: FailureDecision, *, died: bool) -> Member:
    member = _returned(manifest, index, None)
    deaths = member.deaths + 1 if died else 0
    if decision.fate == "larger":
        is_larger = not decision.suspects or index in decision.suspects
        return replace(member, size=decision.larger if is_larger else member.size, deaths=deaths)
    suspected_in = manifest.number if index in decision.suspects else member.suspected_in
    return replace(member, suspected_in=suspected_in, deaths=deaths)


def _returned(manifest: Manifest, index: int, half: Half | None) -> Member:
    return replace(
        manifest.members[index], returned_by=manifest.number, half=half, waiting_since=None, without_executor=0
    )


def _waiting(manifest: Manifest, index: int, decision: FailureDecision) -> Member:
    member = manifest.members[index]
    return replace(
        member,
        returned_by=manifest.number,
        waiting_since=member.waiting_since or manifest.formed_at,
        without_executor=member.without_executor + (decision.fate == "no_executor"),
    )


def _limit(stage: RunStage) -> int:
    return FAILURE_LIMIT if stage == "working" else START_FAILURE_LIMIT
