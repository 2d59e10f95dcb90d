"""Adds rows to a table once, however often the job runs (`protocol §10.append-once`): a folder of Parquet files.

Tables of a catalog are in `asya_spark.tables.iceberg`.

    {table}/_asya/staging/{key}/{random}/…    the files of one attempt
    {table}/_asya/commits/{key}.json          the attempt that counts: its files, and as many rows as Spark has written.
                                              Written on the condition that it is absent
    {table}/_asya/published/{key}             all its files are published
    {table}/…/asya-{key}-{number}.parquet     the published files

Readers of the folder ignore `_asya`, because they ignore names with an underscore. A process may die after any step: the next
attempt at the envelope finds the commit, and publishes what is left.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from asya_spark.context import context
from asya_spark.files import HadoopFiles
from asya_spark.tables.commits import tell_earlier
from asya_spark.tables.description import Evolve, Write, latest, settle, shaped
from asya_spark.tables.errors import TableError
from asya_spark.tables.folders import (
    call_key,
    call_of,
    check_partitions,
    describe_files,
    folder_of,
    table_at,
    write_parquet,
)
from asya_spark.tables.iceberg import append_to_table, find_table
from asya_spark.tables.records import FOLDER, Commit
from asya_spark.tables.replacements import Table, each


def append_once(
    frame: DataFrame,
    table: str,
    *,
    partition_by: Sequence[str] = (),
    evolve: Evolve | None = None,
    name: str = "",
) -> None:
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
        evolve: `add` adds columns that the folder lacks, fills those that the frame lacks with nulls, and casts narrower
            numbers. An Iceberg table has rules of its own.
        name: tells this call apart from others of the hop, in place of their order.

    Raises:
        TableError: the rows would break the table; in a DataFrame job, whose call has many envelopes; what was staged is gone,
            or has other rows than Spark has written; or the Iceberg table does not have `write.wap.enabled`.
        ValueError: `partition_by` or `evolve` for an Iceberg table, or a column that no reader would find.
        RuntimeError: outside a job.
        ModuleNotFoundError: the table is on S3 and the run has no boto3, which writes on a condition; name it in the
            `requirements.txt` of the jobs.
    """
    iceberg = find_table(frame.sparkSession, table)
    if iceberg is not None:
        if partition_by or evolve:
            raise ValueError(
                f"{table} is an Iceberg table, which has its own partitions and columns; leave both options out"
            )
        append_to_table(frame, iceberg, call_key("append_once", table, name))
        return
    check_partitions(table, partition_by)
    folder = folder_of(table)
    place = table_at(frame.sparkSession, folder, "plain")
    key = call_key("append_once", folder, name)
    write = Write(frame.schema, tuple(partition_by), None, "plain", evolve)
    described = settle(place, write, None if latest(place) else describe_files(frame, place))
    _Append(place, key, HadoopFiles(frame.sparkSession)).run(shaped(frame, described.columns), partition_by)


class _Append:
    """One call."""

    def __init__(self, table: Table, key: str, files: HadoopFiles) -> None:
        self._table = table
        self._folder = table.uri
        self._key = key
        self._files = files
        self._commits = table.commits

    def run(self, frame: DataFrame, partition_by: Sequence[str]) -> None:
        if self._commits.read(self._table.published_uri(self._key)) is not None:
            tell_earlier(self._folder)
            return
        chosen = self._table.commit_of(self._key, "")
        if chosen is None:
            chosen = self._commit(frame, partition_by)
        else:
            tell_earlier(self._folder)
        self._publish(chosen)

    def _commit(self, frame: DataFrame, partition_by: Sequence[str]) -> Commit:
        """Stages the rows, and commits them unless another attempt has; returns the commit."""
        staging, uri = self._table.new_folder(self._key), self._table.commit_uri(self._key)
        written = write_parquet(frame, staging, partition_by, self._files)
        own = Commit(
            self._key, "", staging, written.files, written.rows, at=self._table.time(), call=call_of(context())
        )
        if self._commits.create(uri, own.encode()):
            return own
        self._files.remove_folder(staging)
        tell_earlier(self._folder)
        chosen = self._table.commit_of(self._key, "")
        if chosen is None:
            raise TableError(f"{uri} was there a moment ago; nobody may remove commits while jobs run")
        return chosen

    def _publish(self, commit: Commit) -> None:
        """Publishes the committed files that are not published; another attempt may do so at the same time."""

        def move(number_and_name: tuple[int, str]) -> None:
            number, name = number_and_name
            parent = name.rpartition("/")[0]
            target = f"{self._folder}/{parent + '/' if parent else ''}asya-{self._key}-{number:05d}.parquet"
            if self._files.exists(target) or self._files.rename(f"{commit.folder}/{name}", target):
                return
            if not self._files.exists(target):
                raise TableError(
                    f"{commit.folder}/{name} is committed to {self._folder} and is gone, so its rows are lost: nobody may remove "
                    f"{FOLDER}/staging while jobs run. Remove {self._table.commit_uri(self._key)} to append these rows anew"
                )

        each(move, enumerate(commit.files))
        self._commits.create(self._table.published_uri(self._key), b"")
        self._files.remove_folder(commit.folder)
