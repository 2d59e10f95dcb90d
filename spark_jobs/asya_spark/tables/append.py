"""Adds rows to a table once, however often the job runs (`protocol §10.append-once`): a folder of Parquet files.

Tables of a catalog are in `asya_spark.tables.iceberg`.

    {table}/_asya/staging/{key}/{random}/…    the files of one attempt
    {table}/_asya/commits/{key}.json          the attempt that counts: its files, and as many rows as Spark has written.
                                              Written on the condition that it is absent
    {table}/_asya/commits/{key}.published     all its files are published
    {table}/…/asya-{key}-{number}.parquet     the published files

Readers of the folder ignore `_asya`, because they ignore names with an underscore. A process may die after any step: the next
attempt at the envelope finds the commit, and publishes what is left.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import uuid4

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from asya_spark import data
from asya_spark.context import context
from asya_spark.files import HadoopFiles, is_hidden
from asya_spark.tables.commits import commits_for, tell_earlier
from asya_spark.tables.errors import TableError
from asya_spark.tables.iceberg import append_to_table, find_table

_FOLDER = "_asya"


def append_once(frame: DataFrame, table: str, *, partition_by: Sequence[str] = (), name: str = "") -> None:
    """Appends the rows of a frame to a folder of Parquet files or to an Iceberg table, once for this hop of the envelope.

    The rows of the first attempt that gets this far count, also if a later attempt has other ones. The calls of a hop are told
    apart by table and by their order. In threads, where the order is left to chance, name them.

    A reader of a folder may see a part of the rows until this returns; a reader of an Iceberg table sees all or none. A replay
    is a hop of its own and appends again.

    Args:
        frame: the rows.
        table: the folder, as a reference below the data of the mesh, or as a URI; or an Iceberg table, as
            `catalog.database.table` with a catalog of the session.
        partition_by: columns that become folders. Spark reads folders of a column such as `_load_date`, and other readers such
            as pyarrow pass over them. An Iceberg table has partitions of its own.
        name: tells this call apart from others of the hop, in place of their order.

    Raises:
        TableError: in a DataFrame job, whose call has many envelopes; what was staged is gone, or has other rows than Spark
            has written; or the Iceberg table does not have `write.wap.enabled`.
        ValueError: `partition_by` for an Iceberg table, or with a column that no reader would find.
        RuntimeError: outside a job.
        ModuleNotFoundError: the table is on S3 and the run has no boto3, which writes on a condition; name it in the
            `requirements.txt` of the jobs.
    """
    iceberg = find_table(frame.sparkSession, table)
    if iceberg is not None:
        if partition_by:
            raise ValueError(f"{table} is an Iceberg table, which has its own partitions; leave partition_by out")
        append_to_table(frame, iceberg, _key(table, name))
        return
    if unreadable := [column for column in partition_by if is_hidden(f"{column}=")]:
        raise ValueError(
            f"{table}: no reader finds the partitions of {unreadable[0]!r}, because its folders begin with a dot; rename it"
        )
    folder = (table if "://" in table else data.uri(table, write=True)).rstrip("/")
    _Append(folder, _key(folder, name), HadoopFiles(frame.sparkSession)).run(frame, partition_by)


def _key(folder: str, name: str) -> str:
    """Identifies a call by the hop and never by the attempt: 32 hex digits."""
    current = context()
    if current.is_run:
        raise TableError(
            f"append_once({folder!r}) is for jobs with one payload. A DataFrame job has many envelopes in a call, and other ones "
            "in a repetition; write their rows in a way that a second write does no harm"
        )
    identity = [current.id, current.generation, current.position, folder, name or current.next_ordinal(folder)]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class _Commit:
    """The attempt that counts: its staging folder, its files relative to it, and the number of their rows."""

    staging: str
    files: tuple[str, ...]
    rows: int

    @classmethod
    def decode(cls, content: bytes) -> "_Commit":
        fields = json.loads(content)
        return cls(fields["staging"], tuple(fields["files"]), fields["rows"])

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode("ascii")


class _Append:
    """One call."""

    def __init__(self, folder: str, key: str, files: HadoopFiles) -> None:
        self._folder = folder
        self._key = key
        self._files = files
        self._commits = commits_for(folder)
        self._commit_uri = f"{folder}/{_FOLDER}/commits/{key}.json"
        self._published_uri = f"{folder}/{_FOLDER}/commits/{key}.published"

    def run(self, frame: DataFrame, partition_by: Sequence[str]) -> None:
        if self._commits.read(self._published_uri) is not None:
            tell_earlier(self._folder)
            return
        chosen = self._commits.read(self._commit_uri)
        if chosen is None:
            staging = f"{self._folder}/{_FOLDER}/staging/{self._key}/{uuid4().hex[:12]}"
            chosen = self._commit(frame, partition_by, staging)
        else:
            tell_earlier(self._folder)
        self._publish(_Commit.decode(chosen))

    def _commit(self, frame: DataFrame, partition_by: Sequence[str], staging: str) -> bytes:
        """Stages the rows, and commits them unless another attempt has; returns the commit."""
        content = self._stage(frame, partition_by, staging).encode()
        if self._commits.create(self._commit_uri, content):
            return content
        self._files.remove_folder(staging)
        tell_earlier(self._folder)
        chosen = self._commits.read(self._commit_uri)
        if chosen is None:
            raise TableError(f"{self._commit_uri} was there a moment ago; nobody may remove commits while jobs run")
        return chosen

    def _stage(self, frame: DataFrame, partition_by: Sequence[str], staging: str) -> _Commit:
        """Writes the rows, and looks that the files have all of them: a file that is not found would be rows lost in silence."""
        written = Observation()
        writer = frame.observe(written, F.count(F.lit(1)).alias("rows")).write
        (writer.partitionBy(*partition_by) if partition_by else writer).parquet(staging)
        staged = tuple(name for name in self._files.tree(staging) if name.endswith(".parquet"))
        rows, found = written.get["rows"], sum(self._files.parquet_rows(f"{staging}/{name}") for name in staged)
        if rows != found:
            raise TableError(
                f"Spark has written {rows} rows for {self._folder}, and the files in {staging} ({len(staged)}) have {found}. "
                "Nothing is appended; the files stay there"
            )
        return _Commit(staging, staged, rows)

    def _publish(self, commit: _Commit) -> None:
        """Publishes the committed files that are not published; another attempt may do so at the same time."""
        for number, name in enumerate(commit.files):
            parent = name.rpartition("/")[0]
            target = f"{self._folder}/{parent + '/' if parent else ''}asya-{self._key}-{number:05d}.parquet"
            if self._files.exists(target) or self._files.rename(f"{commit.staging}/{name}", target):
                continue
            if not self._files.exists(target):
                raise TableError(
                    f"{commit.staging}/{name} is committed to {self._folder} and is gone, so its rows are lost: nobody may remove "
                    f"{_FOLDER}/staging while jobs run. Remove {self._commit_uri} to append these rows anew"
                )
        self._commits.create(self._published_uri, b"{}")
        self._files.remove_folder(commit.staging)
