"""Selects the size of a run: by the payload of its envelopes, and by what ran out of memory (`protocol §10.size`). Pure."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.contracts import errors as contract
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Member
from asya.protocol.mesh_table import JobSize, SparkJob
from asya.protocol.raw_values import value_at

_number_decoder = msgspec.json.Decoder(float)
_list_decoder = msgspec.json.Decoder(list[Raw])
_KINDS = {b'"': "text", b"{": "an object", b"t": "a boolean", b"f": "a boolean"}


class UnfitSizeError(ValueError):
    """A payload has another value at `size_by` than a number or a list."""

    @property
    def error(self) -> ErrorInfo:
        """The error that the envelope fails with."""
        return ErrorInfo(type=contract.NAME, message=str(self), mro=contract.MRO)


def sizes_of(job: SparkJob) -> tuple[JobSize, ...]:
    """The sizes of a job's runs, in order; none if all runs have the workers of the actor."""
    return () if job.sizes is UNSET else job.sizes


def measure(payload: Raw, actor: str, job: SparkJob) -> float | None:
    """What `size_by` finds in a payload: a number, or the length of a list; None without a value, and without `size_by`.

    Raises:
        UnfitSizeError: the value there is another one.
    """
    if job.size_by is UNSET or (found := value_at(payload, job.size_by)) is None:
        return None
    text = bytes(found).strip()
    if text == b"null":
        return None
    try:
        return float(len(_list_decoder.decode(text))) if text.startswith(b"[") else _number_decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        kind = _KINDS.get(text[:1], "a number out of range")
        raise UnfitSizeError(
            f"payload{job.size_by.replace('/', '.')}: should be a number or a list, because {job.size_by!r} (size_by of {actor}) "
            f"selects the size of its run; got {kind}"
        ) from None


def size_of(member: Member, job: SparkJob) -> str:
    """The name of the size that an envelope needs; empty if the job has no sizes."""
    sizes = sizes_of(job)
    if not sizes:
        return ""
    place = 0
    if member.measure is not None and job.size_by is not UNSET:
        value = member.measure
        fitting = (index for index, size in enumerate(sizes) if size.up_to is None or value <= size.up_to)
        place = next(fitting, len(sizes) - 1)
    larger = (index for index, size in enumerate(sizes) if size.name == member.size)
    return sizes[max(place, next(larger, 0))].name


def next_size(job: SparkJob, name: str) -> str:
    """The name of the size after another one; empty for the last one, and for a size that the job does not have."""
    names = [size.name for size in sizes_of(job)]
    return dict(pairwise(names)).get(name, "")


def sized(job: SparkJob, name: str) -> SparkJob:
    """The job with the workers and settings of a size; with its own if it has no size of this name."""
    size = next((each for each in sizes_of(job) if each.name == name), None)
    if size is None:
        return replace(job, sizes=UNSET, size_by=UNSET) if sizes_of(job) else job
    return replace(
        job,
        driver=size.driver,
        executor=size.executor,
        min_executors=size.min_executors,
        max_executors=size.max_executors,
        conf=size.conf,
        sizes=UNSET,
        size_by=UNSET,
    )


def sized_jobs(job: SparkJob) -> Sequence[tuple[str, SparkJob]]:
    """The job in each of its sizes, by name; alone, with an empty name, if it has none."""
    return [(size.name, sized(job, size.name)) for size in sizes_of(job)] or [("", job)]
