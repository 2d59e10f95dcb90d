"""Selects the envelopes of a job run, and builds, writes and checks its manifest (`protocol §10`).

Lines of a manifest are read one by one, so that a large manifest takes the memory of its members and no more.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from asya.heavy.run_sizes import size_of
from asya.protocol import text
from asya.protocol.job_runs import VERSION, Manifest, ManifestHead, Member, pending_prefix, run_id
from asya.protocol.mesh_table import Actor, Batch, SparkJob
from asya.protocol.times import format_time, parse_time


class _FirstLine(ManifestHead, frozen=True, kw_only=True, omit_defaults=True):
    """The head, with the number of lines that follow and the form of the text."""

    count: int
    version: int


_SPACES = bytes.maketrans(b"\r\n", b"  ")
_encoder = msgspec.json.Encoder()
_head_decoder = msgspec.json.Decoder(_FirstLine)
_member_decoder = msgspec.json.Decoder(Member)


def encode_manifest(manifest: Manifest) -> bytes:
    """The text of a manifest."""
    head = _FirstLine(**_settings(manifest), count=len(manifest.members), version=VERSION)
    # In JSON a line break is white space between two values, and payloads keep that of their senders.
    lines = (_encoder.encode(line).translate(_SPACES) for line in (head, *manifest.members))
    return b"".join(line + b"\n" for line in lines)


def decode_manifest(chunks: Iterable[bytes]) -> Manifest:
    """The manifest in these pieces of its text.

    Raises:
        ValueError: if it is malformed, incomplete, or of another version.
    """
    lines = text.lines(chunks)
    head = _head_decoder.decode(next(lines, b""))
    if head.version != VERSION:
        raise ValueError(f"it has version {head.version}, not {VERSION}")
    members = tuple(map(_member_decoder.decode, lines))
    if len(members) != head.count:
        raise ValueError(f"it has {len(members)} members, not {head.count}")
    return Manifest(**_settings(head), members=members)


def _settings(head: ManifestHead) -> dict[str, Any]:
    return {name: getattr(head, name) for name in ManifestHead.__struct_fields__}


def manifest_problem(manifest: Manifest, actor: str, number: int) -> str | None:
    """The first thing in a manifest that does not fit the run; None if all fits.

    Args:
        actor, number: of the run, by which the manifest was found.
    """
    if (manifest.actor, manifest.number) != (actor, number):
        return f"it is that of run {manifest.number} of {manifest.actor!r}"
    folder = pending_prefix(actor)
    for member in manifest.members:
        key = member.envelope_key
        if key is not None and (not key.startswith(folder) or ".." in key.split("/")):
            return f"the envelope {key!r} of member {member.id!r} is outside of {folder}"
    return None


# Seconds on top of the envelopes' timeouts, because no envelope is charged with a slow start: 5 minutes for the driver, and
# the 20 minutes after which EMR Serverless gives up a run without an executor.
START_ALLOWANCE = (5 + 20) * 60.0
# Limits the envelopes of a run, because the manifest must fit into a function's memory.
MANIFEST_BYTES = 64 * 1024 * 1024


# Envelopes of other tenants or sizes, after which the selection ends, so that it does not read all that are pending.
MOST_SKIPPED = 5_000

Isolation = Literal["none", "tenant", "envelope"]

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
    isolation: Isolation = "none",
    size_name: Callable[[Member], str] | None = None,
    is_closed: Callable[[int], bool] = lambda _: True,
) -> Selection:
    """Selects the oldest envelopes: at most `size`, each id once, all of one group, and of one tenant if only these share a run.

    An id can be pending twice, because an override may route it here at two positions. Ids identify the rows of a DataFrame,
    so the second one waits for the next run. Returned members wait until their run is closed, so that all of them are pending.

    Args:
        waiting: pending envelopes, oldest first.
        byte_limit: maximum sum of the inline envelopes; the first envelope is always selected.
        isolation: who shares a run (`protocol §10.isolation`).
        size_name: names the size that an envelope needs; None if all runs of the actor have one size.
        is_closed: whether the run with this number is closed.
    """

    def shares(first: Member, other: Member) -> bool:
        of_one_size = size_name is None or size_name(first) == size_name(other)
        return of_one_size and _share_run(first, other, isolation)

    chosen: list[Member] = []
    ids: set[str] = set()
    total = 0
    skipped = 0
    for member in waiting:
        if member.returned_by and not is_closed(member.returned_by):
            continue
        weight = len(bytes(member.envelope)) if member.envelope else 0
        if chosen and (len(chosen) == _max_size(chosen[0], size) or total + weight > byte_limit):
            return Selection(tuple(chosen), more=True)
        if member.id in ids or (chosen and not shares(chosen[0], member)):
            skipped += 1
            if (isolation != "none" or size_name is not None) and skipped == MOST_SKIPPED:
                break
            continue
        chosen.append(member)
        ids.add(member.id)
        total += weight
    return Selection(tuple(chosen), more=skipped > 0)


def batch_of(actor: str, spec: Actor) -> Batch:
    """How many envelopes a run of the actor takes, and its window; none waits for others that cannot join it."""
    return Batch(size=1) if spark_job(actor, spec).isolation == "envelope" else spec.batch


def driver_tenant(members: Sequence[Member], job: SparkJob) -> str:
    """The only tenant whose batches may follow in the driver of these envelopes; empty if every batch of the actor may."""
    tenants = {member.tenant for member in members}
    return tenants.pop() if job.isolation == "tenant" and len(tenants) == 1 else ""


def _share_run(first: Member, other: Member, isolation: Isolation) -> bool:
    """Whether a run with one envelope may take another one.

    One without a proven tenant shares with none: pending from before the option was set, it may be anybody's.
    """
    if first.group_key != other.group_key or isolation == "envelope":
        return False
    return isolation == "none" or first.tenant == other.tenant != ""


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


def form(
    members: Sequence[Member],
    *,
    namespace: str,
    actor: str,
    spec: Actor,
    number: int,
    now: datetime,
    max_children: int | None = None,
) -> Manifest:
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
        linger=job.linger if may_linger(members, job) else 0.0,
        size=size_of(members[0], job) if members else "",
        max_children=max_children,
    )


def may_linger(members: Sequence[Member], job: SparkJob) -> bool:
    """Whether a run of these envelopes may be a batch of a resident run, or become one (`protocol §10.resident`).

    An envelope that a death made conspicuous, and one half of a run, run in a process of their own. So does one that ran out of
    memory in a smaller size, and one that its actor's `isolation` lets share a driver with none.
    """
    if job.isolation == "envelope" or (job.isolation == "tenant" and not driver_tenant(members, job)):
        return False
    return bool(members) and members[0].group_key == _PLAIN and not any(each.deaths or each.size for each in members)


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
