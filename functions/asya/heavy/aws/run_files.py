"""The files of job runs in S3: manifests, commits, journals, results, heartbeats and partials (`protocol §10`)."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec
from botocore.exceptions import ClientError

from asya.function.aws.bounded_reads import is_missing, is_unreadable, read_at_most
from asya.function.aws.conditional_writes import put_if_absent
from asya.heavy.results import UNREADABLE, ordered_parts, read_lines
from asya.heavy.run_failures import RunStage
from asya.heavy.run_formation import decode_manifest, encode_manifest, manifest_problem
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import COMMIT_FILE, CallWork, Commit, Journal, Manifest, ResultPart, RunFolder, manifest_key
from asya.protocol.run_progress import HeartbeatRecord, JobPartial

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_CHUNK = 256 * 1024
# Bytes of a file that a job writes for the crew. A commit of 10,000 members, each with a part of its own, has less than 1 MiB.
_LARGEST_CONTROL_FILE = 8 * 1024 * 1024
_LARGEST_NOTE = 1024 * 1024
# EMR Serverless starts few attempts. A job may make any number of folders.
_MOST_ATTEMPTS = 32
_MOST_PAGES = 8
# A job writes a file of up to 1,000 partials each second, and a poll comes every 4 s. It catches up with what it has missed.
_MOST_PARTIAL_FILES = 32
_MOST_PARTIALS = 1_000


class ManifestError(RuntimeError):
    """A manifest is missing, does not fit its run, or this version of asya cannot read it."""


class Manifests:
    """The manifests in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        # The watch reads one manifest repeatedly, and a manifest never changes.
        self._last: tuple[str, Manifest, str] | None = None

    def create(self, manifest: Manifest) -> str | None:
        """Forms a run: writes its manifest if that is absent.

        Returns:
            The digest of the manifest; None if a run with this number exists, whatever its envelopes.
        """
        key, body = manifest_key(manifest.actor, manifest.number), encode_manifest(manifest)
        return (
            hashlib.sha256(body).hexdigest()
            if put_if_absent(self._s3, bucket=self._bucket, key=key, body=body)
            else None
        )

    def read(self, actor: str, number: int, digest: str = "") -> Manifest | None:
        """The manifest of a run; None if the run was never formed.

        Args:
            digest: the digest in the record of the run; empty if it has none.

        Raises:
            ManifestError: if it has another digest, does not fit the run, or this version of asya cannot read it.
        """
        found = self.read_with_digest(actor, number, digest)
        return found[0] if found is not None else None

    def read_with_digest(self, actor: str, number: int, digest: str = "") -> tuple[Manifest, str] | None:
        """The manifest of a run, as `read` gives it, and its digest.

        Raises:
            ManifestError: as `read`.
        """
        key = manifest_key(actor, number)
        if self._last is not None and self._last[0] == key and digest in ("", self._last[2]):
            return self._last[1:]
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"]
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        content = _Digested(body.iter_chunks(_CHUNK))
        manifest: Manifest | ValueError
        try:
            manifest = decode_manifest(content)
        except ValueError as error:
            manifest = error
        name, actual = f"s3://{self._bucket}/{key}", content.digest()
        if digest not in ("", actual):
            raise ManifestError(
                f"{name} was changed after the run was formed: its SHA-256 is {actual}, not {digest}. "
                "No result of the run is routed; write the original back, then redrive the message"
            )
        if isinstance(manifest, ValueError):
            raise ManifestError(
                f"this version of asya cannot read {name}: {manifest}; deploy the version that wrote it"
            ) from manifest
        problem = manifest_problem(manifest, actor, number)
        if problem is not None:
            raise ManifestError(f"{name} does not fit its run: {problem}. No result of the run is routed")
        self._last = (key, manifest, actual)
        return manifest, actual

    def exists(self, actor: str, number: int) -> bool:
        """Whether a run with this number was formed."""
        try:
            self._s3.head_object(Bucket=self._bucket, Key=manifest_key(actor, number))
        except ClientError as error:
            if is_missing(error):
                return False
            raise
        return True


class _Digested:
    """The pieces of a text, and its digest."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._hash.update(chunk)
            yield chunk

    def digest(self) -> str:
        """The digest of the whole text, also of what nobody has read."""
        for _ in self:
            pass
        return self._hash.hexdigest()


_JOURNAL_COPIES = 2


Kind = TypeVar("Kind", Commit, Journal, ErrorInfo)

ResultSource = Literal["commit", "journal", "none"]


class ResultsError(RuntimeError):
    """The results in S3 do not match their commit or journal."""


@dataclass(frozen=True, slots=True)
class RunOutput:
    """The output of a run.

    Attributes:
        source: a commit, the journal of a failed attempt, or none.
        parts: the complete parts.
        at_work, is_first, stage: from a journal; `is_first` if user code was called for one member only.
        error, unreached, work: from a commit.
    """

    source: ResultSource = "none"
    attempt: str = ""
    parts: tuple[ResultPart, ...] = ()
    at_work: tuple[int, ...] = ()
    is_first: bool = False
    stage: RunStage = "absent"
    error: ErrorInfo | None = None
    unreached: int | None = None
    work: CallWork | None = None

    def missing(self, members: int) -> list[int]:
        """The indexes of the members without a result."""
        present = {index for part in self.parts for index in range(part.first, part.last + 1)}
        return [index for index in range(members) if index not in present]


class RunResults:
    """The results in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def has_commit(self, run: RunFolder) -> bool:
        """Whether an attempt at the run wrote a commit."""
        return self.committed_attempt(run) is not None

    def committed_attempt(self, run: RunFolder) -> str | None:
        """The first attempt that wrote a commit; None if there is none."""
        return next((attempt for attempt in self.attempts(run) if self.commit(run, attempt) is not None), None)

    def find(self, run: RunFolder, members: int) -> RunOutput:
        """Selects the output that counts: a commit, else the journal with the most progress, else none.

        The listing gives only the names of attempts (S3 listings are consistent). The commit or the journal names the results,
        and the complete parts of a journal count.

        Args:
            run: where the files of the run are.
            members: the number of its members; parts beyond them do not count.
        """
        attempts = self.attempts(run)
        for attempt in attempts:
            if (commit := self.commit(run, attempt)) is not None:
                return _committed(attempt, commit, members)
        journals = ((attempt, journal) for attempt in attempts if (journal := self.journal(run, attempt)))
        found = max(journals, key=lambda pair: (len(pair[1].parts), pair[1].stage, pair[0]), default=None)
        if found is None:
            return RunOutput(stage="starting" if attempts else "absent")
        attempt, journal = found
        parts = ordered_parts(journal.parts, members)
        parts = parts[: self._complete_parts(run, attempt, parts)]
        return RunOutput("journal", attempt, parts, journal.at_work, journal.is_first, journal.stage)

    def read(self, run: RunFolder, source: ResultSource, attempt: str, *, parts: int, members: int) -> RunOutput:
        """Reads the output that a resolution names.

        Raises:
            ResultsError: if its commit or journal is missing.
        """
        if source == "none":
            return RunOutput()
        if source == "commit":
            commit = self.commit(run, attempt)
            if commit is None:
                raise ResultsError(f"the commit of attempt {attempt} of run {run.number} of {run.actor} is missing")
            return _committed(attempt, commit, members)
        journal = self.journal(run, attempt)
        if journal is None:
            raise ResultsError(f"the journal of attempt {attempt} of run {run.number} of {run.actor} is missing")
        kept = ordered_parts(journal.parts, members)[:parts]
        return RunOutput("journal", attempt, kept, journal.at_work, journal.is_first, journal.stage)

    def last_error(self, run: RunFolder) -> ErrorInfo | None:
        """The exception that ended the driver's Python, if the latest attempt wrote it."""
        for attempt in reversed(self.attempts(run)):
            return self._read_file(self._folder(run, attempt) + "error.json", ErrorInfo)
        return None

    def commit(self, run: RunFolder, attempt: str) -> Commit | None:
        """The commit of an attempt; None without one."""
        return self._read_file(self._folder(run, attempt) + COMMIT_FILE, Commit)

    def journal(self, run: RunFolder, attempt: str) -> Journal | None:
        """The journal of an attempt: the readable copy with the higher sequence."""
        folder = self._folder(run, attempt)
        copies = [self._read_file(f"{folder}journal-{copy}.json", Journal) for copy in range(_JOURNAL_COPIES)]
        return max((copy for copy in copies if copy), key=lambda journal: journal.sequence, default=None)

    def lines(self, run: RunFolder, attempt: str, part: ResultPart) -> Iterator[bytes]:
        """Streams the lines of a part.

        Raises:
            ResultsError: if the part is missing, or its size is not the recorded one.
        """
        key = self._folder(run, attempt) + part.file
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if _has_nothing(error):
                raise ResultsError(f"s3://{self._bucket}/{key} is missing or unreadable") from error
            raise
        if answer["ContentLength"] != part.size:
            raise ResultsError(
                f"s3://{self._bucket}/{key} has {answer['ContentLength']} bytes, not the recorded {part.size}"
            )
        yield from read_lines(answer["Body"].iter_chunks(_CHUNK))

    def _complete_parts(self, run: RunFolder, attempt: str, parts: Sequence[ResultPart]) -> int:
        """The number of complete parts before the first incomplete one."""
        for count, part in enumerate(parts):
            if self._size(self._folder(run, attempt) + part.file) != part.size:
                return count
        return len(parts)

    def attempts(self, run: RunFolder) -> list[str]:
        """The names of a run's attempts, oldest first, as many as EMR Serverless may start."""
        prefix = run.attempts
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
        some = islice(pages, _MOST_PAGES)
        folders = (entry["Prefix"] for page in some for entry in page.get("CommonPrefixes", []))
        return [name.removeprefix(prefix).rstrip("/") for name in islice(folders, _MOST_ATTEMPTS)]

    def _folder(self, run: RunFolder, attempt: str) -> str:
        return f"{run.attempts}{attempt}/"

    def _size(self, key: str) -> int | None:
        try:
            return self._s3.head_object(Bucket=self._bucket, Key=key)["ContentLength"]
        except ClientError as error:
            if _has_nothing(error):
                return None
            raise

    def _read_file(self, key: str, kind: type[Kind]) -> Kind | None:
        """A control file; None if it is missing, too large, unreadable, or truncated because its writer failed."""
        try:
            content = read_at_most(self._s3.get_object(Bucket=self._bucket, Key=key)["Body"], _LARGEST_CONTROL_FILE)
            return None if content is None else msgspec.json.decode(content, type=kind)
        except UNREADABLE:
            return None
        except ClientError as error:
            if _has_nothing(error):
                return None
            raise


def _has_nothing(error: ClientError) -> bool:
    """Whether an object of a job is missing, or in a form in which nobody can read it."""
    return is_missing(error) or is_unreadable(error)


def _committed(attempt: str, commit: Commit, members: int) -> RunOutput:
    parts = ordered_parts(commit.parts, members)
    return RunOutput("commit", attempt, parts, error=commit.error, unreached=commit.unreached, work=commit.work)


_COPIES = 2
_heartbeat_decoder = msgspec.json.Decoder(HeartbeatRecord)
_partial_decoder = msgspec.json.Decoder(JobPartial)


class Heartbeats:
    """The heartbeats and partials in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def latest(self, run: RunFolder, attempt: str) -> HeartbeatRecord | None:
        """The latest heartbeat of an attempt."""
        heartbeats = []
        for copy in range(_COPIES):
            content = self._read(f"{run.attempts}{attempt}/heartbeat-{copy}.json")
            try:
                heartbeats += [_heartbeat_decoder.decode(content)] if content else []
            except UNREADABLE:
                continue  # the driver failed during the write; the other copy is complete
        return max(heartbeats, key=lambda heartbeat: heartbeat.beat, default=None)

    def partials(self, run: RunFolder, attempt: str, after: str) -> Iterator[tuple[str, list[JobPartial]]]:
        """The partials of the next files of an attempt, by file name, in order.

        Args:
            after: the name of the last file read; empty at first.
        """
        folder = f"{run.attempts}{attempt}/"
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=f"{folder}fly-", StartAfter=f"{folder}{after}"
        )
        entries = (entry for page in pages for entry in page.get("Contents", []))
        for entry in islice(entries, _MOST_PARTIAL_FILES):
            lines = (self._read(entry["Key"]) or b"").splitlines()[:_MOST_PARTIALS]
            yield entry["Key"].removeprefix(folder), [partial for line in lines for partial in _partials(line)]

    def _read(self, key: str) -> bytes | None:
        try:
            return read_at_most(self._s3.get_object(Bucket=self._bucket, Key=key)["Body"], _LARGEST_NOTE)
        except ClientError as error:
            if _has_nothing(error):
                return None
            raise


def _partials(line: bytes) -> list[JobPartial]:
    """The partial in a line; none if the job wrote something else, which must not stop the ones after it."""
    try:
        return [_partial_decoder.decode(line)]
    except UNREADABLE:
        return []
