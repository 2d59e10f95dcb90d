"""Reads the manifest of a run, which the dispatcher writes, and the envelopes of its members.

The bodies of envelopes are read ahead of the calls.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from asya.protocol import text
from asya.protocol.numbers import Digits, read_number
from asya_spark.files import Files

VERSION = 1
# The end of the folder of a batch.
_BATCH = re.compile(r"/(?P<job_run>[0-9]{10})/(?P<batch>batches/[0-9]{6}/)$")


@dataclass(frozen=True)
class Envelope:
    """An envelope as stamped by its actor's sidecar.

    Attributes:
        digits: those of the numbers of the payload, if the payload has plain floats.
    """

    id: str
    parent_id: str
    prev: tuple[str, ...]
    curr: str
    next: tuple[str, ...]
    headers: dict[str, Any]
    status: dict[str, Any]
    payload: Any
    digits: Digits | None = None


@dataclass(frozen=True)
class Member:
    """A member of the run, with its envelope inline or in an object of its own.

    Attributes:
        inline: its line of the manifest, as text: parsed envelopes would take many times the memory of the text.
        is_at_risk: whether a run died with it and has not been followed by one that finished an envelope.
    """

    index: int
    id: str
    position: int
    attempt: int
    generation: int
    deadline_at: str | None
    inline: bytes | None
    key: str | None
    is_at_risk: bool


@dataclass(frozen=True)
class Manifest:
    """The manifest of a run.

    Attributes:
        root: URI of the bucket; ends with `/`.
        folder: URI of the folder with the manifest; ends with `/`.
        job_run: the number of the run whose job run does the work: that of a resident run for one of its batches.
        timeout: seconds for each envelope, or for all envelopes of a DataFrame job.
        time_limit: minutes after which EMR Serverless ends the run.
        parallel: envelopes at work at the same time.
        max_children: the most children that the mesh allows; None for no bound.
    """

    root: str
    folder: str
    run_id: str
    actor: str
    number: int
    job_run: int
    job: str
    shape: str
    timeout: float
    time_limit: float
    streamed: bool
    payload_schema: str | None
    parallel: int
    max_children: int | None
    members: tuple[Member, ...]


class ManifestError(RuntimeError):
    """The manifest is missing or malformed, or another version of asya wrote it."""


def read_manifest(files: Files, uri: str) -> Manifest:
    """Reads the manifest of a run.

    Raises:
        ManifestError: if the manifest is missing or malformed.
    """
    try:
        lines = text.lines(files.chunks(uri))
        head = json.loads(next(lines, b""))
        if head["version"] != VERSION:
            raise ManifestError(
                f"{uri} has version {head['version']}, but this asya_spark reads {VERSION}: deploy the mesh again"
            )
        return _manifest(head, lines, head["count"], uri)
    except FileNotFoundError as error:
        raise ManifestError(str(error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"{uri} is not a manifest: {type(error).__name__}: {error}") from error


def load_envelope(files: Files, manifest: Manifest, member: Member, *, exact: bool = False) -> Envelope:
    """Reads the envelope of a member.

    Args:
        exact: whether a number that a float would not give back is an `ExactNumber`, else a plain float.
    """
    digits = None if exact else Digits()
    read = read_number if digits is None else digits.read
    if member.inline is not None:
        content = json.loads(member.inline, parse_float=read)["envelope"]
    else:
        content = json.loads(files.read(f"{manifest.root}{member.key}"), parse_float=read)
    route = content["route"]
    return Envelope(
        id=content["id"],
        parent_id=content.get("parent_id") or "",
        prev=tuple(route["prev"]),
        curr=route["curr"],
        next=tuple(route["next"]),
        headers=content.get("headers") or {},
        status=content.get("status") or {},
        payload=content["payload"],
        digits=digits,
    )


def _manifest(content: dict[str, Any], texts: Iterable[bytes], count: int, uri: str) -> Manifest:
    folder = uri.rpartition("/")[0] + "/"
    place = _BATCH.search(folder)
    job_run = int(place["job_run"]) if place is not None else content["number"]
    run_prefix = f"runs/{content['actor']}/{job_run:010d}/" + (place["batch"] if place is not None else "")
    if not folder.endswith(run_prefix):
        raise ManifestError(f"{uri} holds the manifest of run {content['run_id']}, which belongs under {run_prefix}")
    members = tuple(_member(index, text) for index, text in enumerate(texts))
    if len(members) != count:
        raise ManifestError(f"{uri} is incomplete: it has {len(members)} of {count} members")
    return Manifest(
        root=folder.removesuffix(run_prefix),
        folder=folder,
        run_id=content["run_id"],
        actor=content["actor"],
        number=content["number"],
        job_run=job_run,
        job=content["job"],
        shape=content["shape"],
        timeout=float(content["timeout"]),
        time_limit=float(content["time_limit"]),
        streamed=content.get("streamed", True),
        payload_schema=content.get("payload_schema"),
        parallel=content.get("parallel", 1),
        max_children=content.get("max_children"),
        members=members,
    )


def _member(index: int, text: bytes) -> Member:
    content = json.loads(text)
    return Member(
        index=index,
        id=content["id"],
        position=content["position"],
        attempt=content["attempt"],
        generation=content.get("generation", 0),
        deadline_at=content.get("deadline_at"),
        inline=text if "envelope" in content else None,
        key=content.get("envelope_key"),
        is_at_risk=bool(content.get("deaths") or content.get("suspected_in")),
    )


THREADS = 32


def envelopes(
    files: Files, manifest: Manifest, members: Sequence[Member], *, exact: bool = False
) -> Iterator[Envelope]:
    """The envelopes of members, in their order.

    Large envelopes are objects of their own. A read takes S3 some 20 ms, so 32 threads read as many ahead; an envelope in the
    manifest needs no thread. `exact` says how numbers are read (`load_envelope`).

    Raises:
        FileNotFoundError: if an object is missing, when its member is due.
    """
    if all(member.inline is not None for member in members):
        yield from (load_envelope(files, manifest, member, exact=exact) for member in members)
        return
    with ThreadPoolExecutor(THREADS, thread_name_prefix="bodies") as threads:
        ahead: deque[Future[Envelope]] = deque()
        for member in members:
            ahead.append(threads.submit(load_envelope, files, manifest, member, exact=exact))
            if len(ahead) > THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
