"""Selects the envelopes of a job run and builds its manifest (`protocol §10`)."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from asya.protocol.job_runs import Manifest, Member, run_id
from asya.protocol.mesh_table import Actor, Batch, SparkJob
from asya.protocol.times import format_time, parse_time

# Seconds on top of the envelopes' timeouts, because no envelope is charged with a slow start: 5 minutes for the driver, and
# the 20 minutes after which EMR Serverless gives up a run without an executor.
START_ALLOWANCE = (5 + 20) * 60.0
# Limits the envelopes of a run, because the manifest must fit into a function's memory.
MANIFEST_BYTES = 64 * 1024 * 1024


# The group of envelopes that no run has failed with.
_PLAIN = (False, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Selection:
    """The envelopes of the next run, and whether more envelopes are pending."""

    members: tuple[Member, ...]
    more: bool


def select(
    waiting: Iterable[Member],
    size: int,
    byte_limit: int = MANIFEST_BYTES,
    *,
    is_closed: Callable[[int], bool] = lambda _: True,
) -> Selection:
    """Selects the oldest envelopes: at most `size`, each id once, all of one group.

    An id can be pending twice, because an override may route it here at two positions. Ids identify the rows of a DataFrame,
    so the second one waits for the next run. Returned members wait until their run is closed, so that all of them are pending.

    Args:
        waiting: pending envelopes, oldest first.
        byte_limit: maximum sum of the inline envelopes; the first envelope is always selected.
        is_closed: whether the run with this number is closed.
    """
    chosen: list[Member] = []
    ids: set[str] = set()
    total = 0
    skipped = False
    for member in waiting:
        if member.returned_by and not is_closed(member.returned_by):
            continue
        weight = len(bytes(member.envelope)) if member.envelope else 0
        if chosen and (len(chosen) == _max_size(chosen[0], size) or total + weight > byte_limit):
            return Selection(tuple(chosen), more=True)
        if member.id in ids or (chosen and member.group_key != chosen[0].group_key):
            skipped = True
            continue
        chosen.append(member)
        ids.add(member.id)
        total += weight
    return Selection(tuple(chosen), more=skipped)


def window_left(selection: Selection, batch: Batch, now: datetime) -> float:
    """The seconds until the next run may be formed of these envelopes (`protocol §10.window`).

    It is 0 for a full batch, and for envelopes that a run has returned. SQS delays messages by whole seconds, so less than a
    second counts as nothing.
    """
    members = selection.members
    if not members or selection.more or len(members) >= batch.size or any(member.returned_by for member in members):
        return 0.0
    oldest = min(parse_time(member.admitted_at) for member in members)
    left = batch.window - (now - oldest).total_seconds()
    return left if left >= 1 else 0.0


def _max_size(member: Member, size: int) -> int:
    """The maximum size of a run with this member; a half has a known size."""
    return min(size, member.half.size) if member.half else size


def form(members: Sequence[Member], *, namespace: str, actor: str, spec: Actor, number: int, now: datetime) -> Manifest:
    """The manifest of run `number` with these envelopes."""
    job = spark_job(actor, spec)
    name = run_id(namespace, actor, number)
    # Suspects run one at a time, so that a death finds the one that causes it.
    parallel = 1 if members and members[0].suspected_in else job.parallel
    return Manifest(
        run_id=name,
        namespace=namespace,
        actor=actor,
        number=number,
        formed_at=format_time(now),
        job=job.job,
        shape=job.shape,
        timeout=spec.timeout,
        time_limit=time_limit(members, spec, job, now, parallel=parallel),
        client_token=client_token(name, members),
        members=tuple(members),
        streamed=spec.frames == "streamed",
        payload_schema=job.payload_schema,
        parallel=parallel,
        linger=job.linger if may_linger(members) else 0.0,
    )


def may_linger(members: Sequence[Member]) -> bool:
    """Whether a run of these envelopes may be a batch of a resident run, or become one (`protocol §10.resident`).

    An envelope that a death made conspicuous, and one half of a run, run in a process of their own.
    """
    return bool(members) and members[0].group_key == _PLAIN and not any(member.deaths for member in members)


def spark_job(actor: str, spec: Actor) -> SparkJob:
    """The job of a heavy actor.

    Raises:
        ValueError: if the actor has no Spark job.
    """
    if spec.spark is None:
        raise ValueError(f"actor {actor!r} is of kind {spec.kind!r} and has no Spark job")
    return spec.spark


def client_token(name: str, members: Iterable[Member]) -> str:
    """The client token of a run with these members at these attempts: 64 hex digits.

    With the attempts, a repeated attempt never gets the failed run back. With the members, a mesh that was deleted and
    deployed again gets new runs, although it numbers them from 1.
    """
    digest = hashlib.sha256(f"{len(name)}:{name}".encode())
    for member in members:
        identity = member.id.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%s,%d,%d,%d;" % (
            len(identity), identity, member.generation, member.position, member.attempt
        ))  # fmt: skip
    return digest.hexdigest()


def time_limit(members: Sequence[Member], spec: Actor, job: SparkJob, now: datetime, *, parallel: int = 1) -> int:
    """The time limit of a run in minutes, at least 1.

    It is the sum of the timeouts of the calls that follow each other (a DataFrame job has one call). `max_run` caps it, and so
    does the latest deadline if every member has one.
    """
    calls = 1 if job.shape == "dataframe" else math.ceil(len(members) / parallel)
    seconds = min(calls * spec.timeout + START_ALLOWANCE, job.max_run)
    deadlines = [parse_time(member.deadline_at) for member in members if member.deadline_at]
    if members and len(deadlines) == len(members):
        seconds = min(seconds, (max(deadlines) - now).total_seconds())
    return max(1, math.ceil(seconds / 60))
