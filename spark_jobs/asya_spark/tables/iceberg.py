"""Writes to an Iceberg table once, however often the job runs (`protocol §10.append-once.iceberg`, `§10.branches.iceberg`).

Iceberg's write-audit-publish: a write under `spark.wap.id` adds a *staged* snapshot, which no reader sees. A cherry-pick
publishes it, and Iceberg refuses to pick a second snapshot of an id (`DuplicateWAPCommitException`); it checks this in the commit
that publishes. The id is the key of the call, so each attempt finds what the attempts before it have staged or published.

Replacing and merging write to a *branch* of the table, under the key as a property of the snapshot. The table is moved to the end
of the branch, and Iceberg refuses that if the table has got another commit since the branch began: no other commit is
overwritten, and no key is published twice.
"""

import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession

from asya_spark.tables.commits import tell_earlier
from asya_spark.tables.errors import TableError

CATALOG = "iceberg"
"""The name of the catalog that `tables: iceberg` in the mesh file gives."""
_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+){2,}")
_STAGING = "write.wap.enabled"
# Iceberg repeats a commit that conflicts with another one four times, unless the table says otherwise.
_CONFLICT = "CommitFailedException"
_ATTEMPTS = 5
# The table is not where the branch began.
_MOVED = "is not an ancestor of"
_BRANCH = "asya_"
_KEY = "asya-key"
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


class BranchingTable(Protocol):
    """A table that takes what is written to a branch."""

    name: str

    def has(self, key: str) -> bool:
        """Whether the history of the table has a snapshot with a key."""

    def branch(self, name: str) -> None:
        """Adds a branch that begins where the table is."""

    def take(self, branch: str) -> None:
        """Moves the table to the end of a branch; fails if the table has moved since the branch began."""

    def drop(self, branch: str) -> None:
        """Removes a branch; idempotent."""

    def branches(self, beginning: str) -> list[str]:
        """The names of the branches that begin so."""


def write_in_branch(table: BranchingTable, key: str, write: Callable[[str], None]) -> bool:
    """Lets a table take a write once for a call; a commit of others at the same time is told, and the write repeated.

    Args:
        write: writes to the branch with this name, under the key.

    Returns:
        Whether the rows of this attempt count.
    """
    for left in branches_of(table, key):
        table.drop(left)
    for attempt in range(1, _ATTEMPTS + 1):
        branch = f"{_BRANCH}{key}_{uuid4().hex[:12]}"
        # The branch comes before the look: what is published after the look lets the last step fail.
        table.branch(branch)
        try:
            if table.has(key):
                return False
            write(branch)
            table.take(branch)
        except Exception as error:
            # Refused for another commit, refused because it is published, or unknown: the table tells.
            if table.has(key):
                return _MOVED not in str(error)
            if not any(name in str(error) for name in (_MOVED, _CONFLICT)) or attempt == _ATTEMPTS:
                raise
            print(f"asya_spark: {table.name}: another commit came first; the write is repeated", flush=True)
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.25 * 2**attempt)))
        else:
            return True
        finally:
            table.drop(branch)
    raise AssertionError("the last attempt returns or raises")


def branches_of(table: BranchingTable, key: str) -> list[str]:
    """The branches that attempts at a call have left."""
    return table.branches(f"{_BRANCH}{key}_")


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

    def has(self, key: str) -> bool:
        """Whether the history of the table has a snapshot with a key."""
        self._spark.sql(f"REFRESH TABLE {self.name}")
        found = self._spark.sql(
            f"SELECT 1 FROM {self.name}.snapshots s JOIN {self.name}.history h ON h.snapshot_id = s.snapshot_id "
            f"WHERE h.is_current_ancestor AND s.summary['{_KEY}'] = '{key}' LIMIT 1"
        )
        return bool(found.collect())

    def branch(self, name: str) -> None:
        """Adds a branch that begins where the table is."""
        self._spark.sql(f"ALTER TABLE {self.name} CREATE BRANCH `{name}`")

    def take(self, branch: str) -> None:
        """Moves the table to the end of a branch; fails if the table has moved since the branch began."""
        self._spark.sql(
            f"CALL {self._catalog}.system.fast_forward(table => '{self._identifier}', branch => 'main', to => '{branch}')"
        )

    def drop(self, branch: str) -> None:
        """Removes a branch; idempotent."""
        self._spark.sql(f"ALTER TABLE {self.name} DROP BRANCH IF EXISTS `{branch}`")

    def branches(self, beginning: str) -> list[str]:
        """The names of the branches that begin so."""
        self._spark.sql(f"REFRESH TABLE {self.name}")
        rows = self._spark.sql(f"SELECT name FROM {self.name}.refs WHERE type = 'BRANCH'").collect()
        return [row.name for row in rows if row.name.startswith(beginning)]

    def replace(self, frame: DataFrame, condition: Column, branch: str, key: str) -> None:
        """Replaces the rows that meet a condition, in a branch."""
        writer = frame.writeTo(f"{self.name}.branch_{branch}").option(f"snapshot-property.{_KEY}", key)
        writer.overwrite(condition)

    def merge(self, frame: DataFrame, on: Sequence[str], branch: str, key: str) -> None:
        """Updates the rows with the same values of `on`, and inserts the others, in a branch."""
        view, target = f"asya_merge_{key}", f"{self.name}.branch_{branch}"
        same = " AND ".join(f"t.{quoted(column)} <=> s.{quoted(column)}" for column in on)
        frame.createOrReplaceTempView(view)
        try:
            frame.sparkSession.sql(
                f"MERGE INTO {target} t USING {view} s ON {same} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        finally:
            # `catalog.dropTempView` would also drop the cache of the frame.
            _state(frame.sparkSession).catalog().dropTempView(view)
        # A statement takes no properties. The commit that has the key is on the same branch, so readers find both or none.
        self._spark.table(self.name).limit(0).writeTo(target).option(f"snapshot-property.{_KEY}", key).append()


def quoted(column: str) -> str:
    """A column as SQL names it."""
    return f"`{column.replace('`', '``')}`"


def _copy_of(session: SparkSession) -> SparkSession:
    """A session with the settings, views and functions of another one."""
    java: Any = session._jsparkSession
    return SparkSession(session.sparkContext, java.cloneSession())


def _state(session: SparkSession) -> Any:
    java: Any = session._jsparkSession
    return java.sessionState()
