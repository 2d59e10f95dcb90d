"""Adds rows to an Iceberg table once, however often the job runs (`protocol §10.append-once.iceberg`).

Iceberg's write-audit-publish: a write under `spark.wap.id` adds a *staged* snapshot, which no reader sees. A cherry-pick
publishes it, and Iceberg refuses to pick a second snapshot of an id (`DuplicateWAPCommitException`); it checks this in the commit
that publishes. The id is the key of the call, so each attempt finds what the attempts before it have staged or published.
"""

import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from asya_spark.tables.commits import tell_earlier
from asya_spark.tables.errors import TableError

CATALOG = "iceberg"
"""The name of the catalog that `tables: iceberg` in the mesh file gives."""
_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+){2,}")
_STAGING = "write.wap.enabled"
# Iceberg repeats a commit that conflicts with another one four times, unless the table says otherwise.
_CONFLICT = "CommitFailedException"
_ATTEMPTS = 5
_LONGEST_PAUSE = 4.0  # seconds, doubled after each conflict


@dataclass(frozen=True)
class Snapshot:
    """A snapshot with the key of a call.

    Attributes:
        is_published: whether the table has its rows.
    """

    id: int
    is_published: bool


class StagingTable(Protocol):
    """A table that takes rows in two steps."""

    name: str

    def find(self, key: str) -> Sequence[Snapshot]:
        """The snapshots with a key, in the order of their commits."""

    def check_staging(self) -> None:
        """Raises `TableError` unless rows with a key are staged."""

    def stage(self, frame: DataFrame, key: str) -> None:
        """Adds a snapshot with the rows that no reader sees."""

    def publish(self, snapshot: int) -> None:
        """Adds the rows of a staged snapshot to the table; fails if one with the same key is published."""


def append_to_table(frame: DataFrame, table: StagingTable, key: str) -> None:
    """Appends the rows of a frame, or those of an earlier attempt at the same call.

    Raises:
        TableError: the table stages no rows, or a staged snapshot is gone.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _append(frame, table, key, is_first=attempt == 1)
        except Exception as error:
            # Refused because it is published, refused for another commit at the same time, or unknown: the table tells.
            if _is_published(table.find(key)):
                return
            if _CONFLICT not in str(error) or attempt == _ATTEMPTS:
                raise
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.25 * 2**attempt)))
        else:
            return


def _append(frame: DataFrame, table: StagingTable, key: str, *, is_first: bool) -> None:
    snapshots = table.find(key)
    if snapshots and is_first:
        tell_earlier(table.name)
    if not snapshots:
        table.check_staging()
        table.stage(frame, key)
        snapshots = table.find(key)
    if _is_published(snapshots):
        return
    if not snapshots:
        raise TableError(
            f"the rows for {table.name} were staged and are gone: an expiry of snapshots removed them, or {_STAGING} was "
            "changed meanwhile. The expiry must keep snapshots longer than messages live"
        )
    # The first one: attempts at the same time mostly pick the same, and its twin is left to the expiry.
    table.publish(snapshots[0].id)


def _is_published(snapshots: Sequence[Snapshot]) -> bool:
    return any(snapshot.is_published for snapshot in snapshots)


def find_table(spark: SparkSession, name: str) -> "IcebergTable | None":
    """The table of a catalog with this name; None for a folder.

    `catalog.database.table` is a table if the session has the catalog.

    Raises:
        TableError: the name begins with `iceberg.`, and the session has no such catalog.
    """
    if not _NAME.fullmatch(name):
        return None
    catalog = name.partition(".")[0]
    if spark.conf.get(f"spark.sql.catalog.{catalog}", None) is not None:
        return IcebergTable(spark, name)
    if catalog == CATALOG:
        raise TableError(
            f"{name} is a table of the catalog {CATALOG!r}, which this job does not have: set spark: {{catalog: glue, "
            "tables: iceberg} in the mesh file"
        )
    return None


class IcebergTable:
    """A table of a catalog, by SQL."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        self._spark = spark
        self._catalog, _, self._identifier = name.partition(".")

    def find(self, key: str) -> list[Snapshot]:
        """The snapshots with a key, in the order of their commits."""
        # A session keeps what it has read of a table for a while.
        self._spark.sql(f"REFRESH TABLE {self.name}")
        rows = self._spark.sql(
            "SELECT s.snapshot_id, coalesce(h.is_current_ancestor, false) AS is_published "
            f"FROM {self.name}.snapshots s LEFT JOIN {self.name}.history h ON h.snapshot_id = s.snapshot_id "
            f"WHERE s.summary['wap.id'] = '{key}' OR s.summary['published-wap-id'] = '{key}' "
            "ORDER BY s.committed_at, s.snapshot_id"
        ).collect()
        return [Snapshot(row.snapshot_id, row.is_published) for row in rows]

    def check_staging(self) -> None:
        """Raises `TableError` unless the table stages writes; without the property they would be published at once."""
        properties = {row.key: row.value for row in self._spark.sql(f"SHOW TBLPROPERTIES {self.name}").collect()}
        if properties.get(_STAGING) != "true":
            raise TableError(
                f"{self.name} stages no writes, so rows cannot be appended once; run "
                f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{_STAGING}' = 'true')"
            )

    def stage(self, frame: DataFrame, key: str) -> None:
        """Writes the rows under the key, in a copy of the session: other writes of the job must not get the key."""
        view = f"asya_append_{key}"
        frame.createOrReplaceTempView(view)
        try:
            session = _copy_of(frame.sparkSession)
            rows = session.table(view)  # the copy takes the views over with its first use
        finally:
            # `catalog.dropTempView` would also drop the cache of the frame.
            _state(frame.sparkSession).catalog().dropTempView(view)
        session.conf.set("spark.wap.id", key)
        rows.writeTo(self.name).append()

    def publish(self, snapshot: int) -> None:
        """Cherry-picks a staged snapshot. Not `publish_changes`: newer versions of it refuse an id that was staged twice."""
        self._spark.sql(
            f"CALL {self._catalog}.system.cherrypick_snapshot(table => '{self._identifier}', snapshot_id => {snapshot})"
        )


def _copy_of(session: SparkSession) -> SparkSession:
    """A session with the settings, views and functions of another one."""
    java: Any = session._jsparkSession
    return SparkSession(session.sparkContext, java.cloneSession())


def _state(session: SparkSession) -> Any:
    java: Any = session._jsparkSession
    return java.sessionState()
