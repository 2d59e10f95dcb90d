"""Which envelopes form a job run, and how it is started (`protocol §10`)."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from asya.protocol.job_runs import Manifest, Member, run_id
from asya.protocol.mesh_table import Actor, SparkJob
from asya.protocol.times import format_time, parse_time

# What EMR Serverless takes to start a driver, on top of what the envelopes may take; without it a slow start would be
# charged to the envelopes.
START_ALLOWANCE = 5 * 60.0
# Envelopes above this total wait for the next run: the manifest has to fit into a function's memory.
MANIFEST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Selection:
    """The envelopes of the next run, and whether more are left than it takes."""

    members: tuple[Member, ...]
    more: bool


def select(
    waiting: Iterable[Member],
    size: int,
    byte_limit: int = MANIFEST_BYTES,
    *,
    is_closed: Callable[[int], bool] = lambda _: True,
) -> Selection:
    """Take the oldest envelopes, at most `size` of them, no id twice, all of one company.

    An id can be waiting twice (an override may route it here in two places); ids tell the rows of a DataFrame apart, so the
    second one waits for the next run. Those that a run gave back wait until it is closed, so that none of them is missed.

    Args:
        is_closed: whether the run of this number is.
    """
    chosen: list[Member] = []
    ids: set[str] = set()
    total = 0
    skipped = False
    for member in waiting:
        if member.returned_by and not is_closed(member.returned_by):
            continue
        weight = len(bytes(member.envelope)) if member.envelope else 0
        if chosen and (len(chosen) == _most(chosen[0], size) or total + weight > byte_limit):
            return Selection(tuple(chosen), more=True)
        if member.id in ids or (chosen and member.group_key != chosen[0].group_key):
            skipped = True
            continue
        chosen.append(member)
        ids.add(member.id)
        total += weight
    return Selection(tuple(chosen), more=skipped)


def _most(member: Member, size: int) -> int:
    """How many a run with this member may have; beyond its half there is nobody to look for."""
    return min(size, member.half.size) if member.half else size


def form(members: Sequence[Member], *, namespace: str, actor: str, spec: Actor, number: int, now: datetime) -> Manifest:
    """Make run `number` of these envelopes."""
    job = spark_job(actor, spec)
    name = run_id(namespace, actor, number)
    return Manifest(
        run_id=name,
        namespace=namespace,
        actor=actor,
        number=number,
        formed_at=format_time(now),
        job=job.job,
        shape=job.shape,
        timeout=spec.timeout,
        time_limit=time_limit(members, spec, job, now),
        client_token=client_token(name, members),
        members=tuple(members),
        streamed=spec.frames == "streamed",
        payload_schema=job.payload_schema,
    )


def spark_job(actor: str, spec: Actor) -> SparkJob:
    """The job of a heavy actor.

    Raises:
        ValueError: if the actor has none.
    """
    if spec.spark is None:
        raise ValueError(f"actor {actor!r} is of kind {spec.kind!r} and has no Spark job")
    return spec.spark


def client_token(name: str, members: Iterable[Member]) -> str:
    """64 characters that are the same for the same run of the same envelopes at the same attempts, and for nothing else.

    The attempts are in it because the same token would give back the dead run; the members because a mesh that was taken
    down and deployed again counts its runs from the beginning.
    """
    digest = hashlib.sha256(f"{len(name)}:{name}".encode())
    for member in members:
        identity = member.id.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%s,%d,%d,%d;" % (
            len(identity), identity, member.generation, member.position, member.attempt
        ))  # fmt: skip
    return digest.hexdigest()


def time_limit(members: Sequence[Member], spec: Actor, job: SparkJob, now: datetime) -> int:
    """Minutes for the whole run, at least one.

    The envelopes' timeouts add up (a DataFrame job has one for all of them), capped by `max_run` and by the latest deadline
    among the members; one without a deadline lifts that cap.
    """
    parts = 1 if job.shape == "dataframe" else len(members)
    seconds = min(parts * spec.timeout + START_ALLOWANCE, job.max_run)
    deadlines = [parse_time(member.deadline_at) for member in members if member.deadline_at]
    if members and len(deadlines) == len(members):
        seconds = min(seconds, (max(deadlines) - now).total_seconds())
    return max(1, math.ceil(seconds / 60))
