"""What job runs left in S3: commits, journals, results (`protocol §10`)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import msgspec
from botocore.exceptions import ClientError

from asya.aws.refusals import is_missing
from asya.aws.run_records import Settlement
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Commit, Journal, Part, attempts_prefix

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_JOURNAL_SLOTS = 2
_CHUNK = 256 * 1024

Kind = TypeVar("Kind", Commit, Journal)


class ResultsError(RuntimeError):
    """Results that are not what the commit says they are."""


class RunResults:
    """The results in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def find(self, actor: str, number: int) -> Settlement:
        """Whose results may count: a commit if there is one, else the journal that got furthest, else nothing.

        A listing is used only for the names of attempts (S3's are consistent); which results there are stands in the commit or
        the journal, and of a journal's parts only those count that are there as a whole.
        """
        attempts = self._attempts(actor, number)
        for attempt in attempts:
            if self.commit(actor, number, attempt) is not None:
                return Settlement("commit", attempt)
        journals = [(attempt, journal) for attempt in attempts if (journal := self.journal(actor, number, attempt))]
        if not journals:
            return Settlement("none")
        attempt, journal = max(journals, key=lambda pair: (len(pair[1].parts), pair[0]))
        return Settlement("journal", attempt, self._complete_parts(actor, number, attempt, journal))

    def parts(self, actor: str, number: int, settlement: Settlement) -> tuple[tuple[Part, ...], ErrorInfo | None]:
        """The parts that count, and the error that the job as a whole ended with, if it wrote one.

        Raises:
            ResultsError: if what was settled on is gone.
        """
        if settlement.source == "none":
            return (), None
        if settlement.source == "commit":
            commit = self.commit(actor, number, settlement.attempt)
            if commit is None:
                raise ResultsError(f"the commit of attempt {settlement.attempt} of run {number} of {actor} is gone")
            return commit.parts, commit.error
        journal = self.journal(actor, number, settlement.attempt)
        if journal is None:
            raise ResultsError(f"the journal of attempt {settlement.attempt} of run {number} of {actor} is gone")
        return journal.parts[: settlement.parts], None

    def commit(self, actor: str, number: int, attempt: str) -> Commit | None:
        """An attempt's commit."""
        return self._read(self._folder(actor, number, attempt) + "commit.json", Commit)

    def journal(self, actor: str, number: int, attempt: str) -> Journal | None:
        """An attempt's journal: the later one of the slots that can be read."""
        folder = self._folder(actor, number, attempt)
        slots = [self._read(f"{folder}journal-{slot}.json", Journal) for slot in range(_JOURNAL_SLOTS)]
        return max((slot for slot in slots if slot), key=lambda journal: journal.sequence, default=None)

    def lines(self, actor: str, number: int, attempt: str, part: Part) -> Iterator[bytes]:
        """The lines of a part, streamed.

        Raises:
            ResultsError: if it is not as large as it was when it was written.
        """
        key = self._folder(actor, number, attempt) + part.file
        answer = self._s3.get_object(Bucket=self._bucket, Key=key)
        if answer["ContentLength"] != part.size:
            raise ResultsError(f"s3://{self._bucket}/{key} has {answer['ContentLength']} bytes, not {part.size}")
        yield from answer["Body"].iter_lines(chunk_size=_CHUNK)

    def _complete_parts(self, actor: str, number: int, attempt: str, journal: Journal) -> int:
        """How many parts, from the first on, are there as a whole."""
        for count, part in enumerate(journal.parts):
            if self._size(self._folder(actor, number, attempt) + part.file) != part.size:
                return count
        return len(journal.parts)

    def _attempts(self, actor: str, number: int) -> list[str]:
        prefix = attempts_prefix(actor, number)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
        found = [entry["Prefix"] for page in pages for entry in page.get("CommonPrefixes", [])]
        return sorted(name.removeprefix(prefix).rstrip("/") for name in found)

    def _folder(self, actor: str, number: int, attempt: str) -> str:
        return f"{attempts_prefix(actor, number)}{attempt}/"

    def _size(self, key: str) -> int | None:
        try:
            return self._s3.head_object(Bucket=self._bucket, Key=key)["ContentLength"]
        except ClientError as error:
            if is_missing(error):
                return None
            raise

    def _read(self, key: str, kind: type[Kind]) -> Kind | None:
        """A control file; one that breaks off, because its writer died, is none."""
        try:
            content = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError:
            return None
        except ClientError as error:
            if is_missing(error):
                return None
            raise
