"""The order of the replacements of a partition, and what follows from it (`protocol §10.replace-once`).

    {table}/_asya/commits/{key}.json        what a call has committed: its files. Written if it is absent
    {table}/_asya/replacements/{partition}-{number}.json
                                            the call that has this number of the partition. Written if it is absent
    {table}/_asya/published/{key}           nothing is left to do for the call
    {table}/_asya/staging/{key}/{random}/…  the files of one attempt, in a plain table
    {table}/_asya/versions/{key}/{random}/… the files of one attempt, in a versioned table
    {table}/_asya/replaced/{hour}/…         what was replaced, for a day
    {table}/…/asya-{number}-{key}-{index}.parquet
                                            the published files of a plain table

The last number of a partition says what is in it. Whoever finds it publishes it, also for a call that is not its own: a process
may die after any step. An older call that goes on later finds a newer number, and publishes that one.

A file of a plain table has its number in its name, so that nobody removes the files of a newer number. Files of other writers
are removed if the partition had them when the number was taken.
"""

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from asya_spark.tables.commits import Commits
from asya_spark.tables.errors import TableError
from asya_spark.tables.records import (
    FOLDER,
    KINDS,
    Commit,
    Entry,
    Layout,
    expect,
    is_inside,
    numbers_in,
    partition_name,
)

_KEPT = timedelta(days=1)
_HOUR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}")
_PUBLISHED = re.compile(r"asya-(?P<number>[0-9]{6,})-[0-9a-f]{32}-[0-9]+\.parquet")
Item = TypeVar("Item")
Result = TypeVar("Result")
# Each move is a request or two, which wait for S3 and not for the processor.
_AT_ONCE = 32


class Files(Protocol):
    """The files of a table."""

    def tree(self, folder: str) -> list[str]:
        """The names of all files below a folder, relative to it, without those with a hidden part; empty without the folder."""

    def exists(self, uri: str) -> bool:
        """Whether there is a file or a folder."""

    def rename(self, uri: str, target: str) -> bool:
        """Moves a file to a name that is free, and makes its folders; returns whether it did."""

    def remove_folder(self, uri: str) -> None:
        """Removes a folder with all that is in it; idempotent."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder; empty without it."""


@dataclass(frozen=True)
class Table:
    """A folder with its files and its commits.

    Attributes:
        now: the clock.
    """

    uri: str
    layout: Layout
    files: Files
    commits: Commits
    now: Callable[[], datetime]

    def commit_of(self, key: str, partition: str) -> Commit | None:
        """What a call has committed for a partition, empty for an append.

        Raises:
            TableError: the commit names files that no attempt at this call can have written, or another partition.
        """
        uri = self.commit_uri(key)
        content = self.commits.read(uri)
        if content is None:
            return None
        commit = Commit.decode(content, uri, self.uri, self.layout, key)
        expect(
            commit.partition == partition,
            uri,
            f"its partition is {commit.partition!r:.200}, and the call writes {partition!r:.200}; where a call of yours chose "
            "another one at an earlier attempt, give it a name that has the partition",
        )
        return commit

    def commit_uri(self, key: str) -> str:
        """The commit of a call."""
        return f"{self.uri}/{FOLDER}/commits/{key}.json"

    def published_uri(self, key: str) -> str:
        """The note that nothing is left to do for a call."""
        return f"{self.uri}/{FOLDER}/published/{key}"

    def new_folder(self, key: str) -> str:
        """A folder for the files of one attempt."""
        return f"{self.attempts_uri(key)}/{uuid4().hex[:12]}"

    def attempts_uri(self, key: str) -> str:
        """The folder of all attempts at a call."""
        return f"{self.uri}/{FOLDER}/{KINDS[self.layout]}/{key}"

    def time(self) -> str:
        """The current time, RFC 3339."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def last_entries(self) -> list[Entry]:
        """The last number of each partition."""
        folder = f"{self.uri}/{FOLDER}/replacements"
        last = numbers_in(folder, self.commits.names(folder), of_partitions=True)
        return each(lambda item: self.entry(*item), last.items())

    def entry(self, partition: str, number: int) -> Entry:
        """A number of a partition, which is named as `partition_name` says.

        Raises:
            TableError: it is gone, or no call has written it.
        """
        uri = f"{self.uri}/{FOLDER}/replacements/{partition}-{number:06d}.json"
        content = self.commits.read(uri)
        if content is None:
            raise TableError(f"{uri} is gone; nobody may remove it while jobs run")
        return Entry.decode(content, uri)


class Replacements:
    """The replacements of one partition.

    Args:
        partition: its folder in the table.
    """

    def __init__(self, table: Table, partition: str) -> None:
        self._table = table
        self._partition = partition
        self._log = f"{table.uri}/{FOLDER}/replacements"
        self._name = partition_name(partition)

    def run(self, key: str, stage: Callable[[str], tuple[tuple[str, ...], int]], call: dict[str, Any]) -> bool:
        """Replaces the partition once for a call.

        Args:
            key: identifies the call.
            stage: writes the files into a folder; returns their names relative to it, and the number of their rows.
            call: who writes, for the commit.

        Returns:
            Whether the rows of this attempt count; those of an earlier one otherwise.

        Raises:
            TableError: committed files are gone.
        """
        table = self._table
        if table.commits.read(table.published_uri(key)) is not None:
            return False
        commit, is_own = table.commit_of(key, self._partition), False
        if commit is None:
            commit, is_own = self._commit(key, stage, call)
        self._take_number(commit)
        self._publish(commit)
        return is_own

    def _commit(
        self, key: str, stage: Callable[[str], tuple[tuple[str, ...], int]], call: dict[str, Any]
    ) -> tuple[Commit, bool]:
        table, after = self._table, self._last()
        folder = table.new_folder(key)
        files, rows = stage(folder)
        own = Commit(key, self._partition, folder, files, rows, after, table.time(), call)
        if table.commits.create(table.commit_uri(key), own.encode()):
            return own, True
        table.files.remove_folder(folder)
        earlier = table.commit_of(key, self._partition)
        if earlier is None:
            raise TableError(
                f"{table.commit_uri(key)} was there a moment ago; nobody may remove commits while jobs run"
            )
        return earlier, False

    def _take_number(self, commit: Commit) -> None:
        """Takes the next number for a call, unless it has one."""
        while True:
            last = self._last()
            for number in range(last, commit.after, -1):
                if self._entry(number).key == commit.key:
                    return
            others = tuple(name for name in self._published_files() if _number(name) is None)
            entry = Entry(self._partition, commit.key, others, self._table.time())
            if self._table.commits.create(self._uri(last + 1), entry.encode()):
                return

    def _publish(self, own: Commit) -> None:
        """Publishes the last number of the partition, until there is no later one."""
        table = self._table
        while True:
            last = self._last()
            entry = self._entry(last)
            if table.layout == "plain":
                self._publish_files(last, entry, own)
            else:
                self._remove_versions(last)
            # The note comes after the look: who dies between them leaves a call that looks again.
            if self._last() == last:
                break
        for key in {entry.key, own.key}:
            table.commits.create(table.published_uri(key), b"")
        self._remove_replaced()

    def _publish_files(self, number: int, entry: Entry, own: Commit) -> None:
        """Moves the files of a number into the partition, and what it replaces out of it.

        Staging goes before what is replaced is listed: another process that works on the same call finds no file to move after
        that, and what it has moved before is in the list.
        """
        table = self._table
        is_published = table.commits.read(table.published_uri(entry.key)) is not None
        if not is_published:
            commit = table.commit_of(entry.key, self._partition)
            if commit is None:
                raise TableError(f"{table.commit_uri(entry.key)} is gone; nobody may remove commits while jobs run")
            self._move(number, commit)
            table.files.remove_folder(commit.folder)
        if own.key != entry.key:
            table.files.remove_folder(own.folder)
        others = frozenset() if is_published else frozenset(entry.others)
        replaced = [
            name
            for name in self._published_files()
            if name in others or ((found := _number(name)) is not None and found < number)
        ]
        hour = table.now().strftime("%Y-%m-%dT%H")
        kept = f"{table.uri}/{FOLDER}/replaced/{hour}/{uuid4().hex[:12]}"
        folder = f"{table.uri}/{self._partition}"
        each(lambda name: table.files.rename(f"{folder}/{name}", f"{kept}/{self._partition}/{name}"), replaced)

    def _move(self, number: int, commit: Commit) -> None:
        files, folder = self._table.files, f"{self._table.uri}/{self._partition}"
        present = set(self._published_files())

        def move(index_and_name: tuple[int, str]) -> None:
            index, name = index_and_name
            inner = name.removeprefix(f"{self._partition}/").rpartition("/")[0]
            target = f"{inner and inner + '/'}asya-{number:06d}-{commit.key}-{index:05d}.parquet"
            source = f"{commit.folder}/{name}"
            if target in present or files.rename(source, f"{folder}/{target}") or files.exists(f"{folder}/{target}"):
                return
            if self._last() == number and self._table.commits.read(self._table.published_uri(commit.key)) is None:
                raise TableError(
                    f"{source} is committed to {self._table.uri} and is gone, so its rows are lost: nobody may remove "
                    f"{FOLDER}/staging while jobs run. Replace {self._partition} by a new envelope"
                )

        each(move, enumerate(commit.files))

    def _remove_versions(self, last: int) -> None:
        """Removes the files of versions that were replaced a day ago."""
        table, limit = self._table, _limit(self._table)
        replaced = []
        for number in range(last - 1, 0, -1):
            if self._entry(number + 1).at > limit:
                continue
            commit = table.commit_of(self._entry(number).key, self._partition)
            if commit is None or not table.files.exists(commit.folder):
                break  # those before it were removed with it, or had no rows
            expect(
                commit.key != self._entry(last).key,
                self._uri(number),
                f"its call is that of the later number {last}",
            )
            replaced.append(commit.key)
        # All records are read before the first folder goes. The oldest goes first, because the loop ends at one that is gone.
        for key in reversed(replaced):
            table.files.remove_folder(table.attempts_uri(key))

    def _remove_replaced(self) -> None:
        """Removes what was replaced a day ago."""
        folder, limit = f"{self._table.uri}/{FOLDER}/replaced", _limit(self._table)
        # Others may make folders there, and a name such as `..` would lead out of it.
        for hour in self._table.files.folders(folder):
            if _HOUR.fullmatch(hour) and f"{hour}:59:59Z" < limit:
                self._table.files.remove_folder(f"{folder}/{hour}")

    def _last(self) -> int:
        names = self._table.commits.names(self._log, f"{self._name}-")
        return numbers_in(self._log, names, of_partitions=True).get(self._name, 0)

    def _entry(self, number: int) -> Entry:
        return self._table.entry(self._name, number)

    def _uri(self, number: int) -> str:
        return f"{self._log}/{self._name}-{number:06d}.json"

    def _published_files(self) -> list[str]:
        """The files of the partition in a plain table.

        Raises:
            TableError: a key of S3 leads out of the partition.
        """
        if self._table.layout == "versioned":
            return []
        folder = f"{self._table.uri}/{self._partition}"
        names = self._table.files.tree(folder)
        for name in names:
            if not is_inside(name):
                raise TableError(f"{folder} has a file {name!r:.200}, whose name leads out of it; remove it")
        return names


def _limit(table: Table) -> str:
    """What was replaced before this time is removed, RFC 3339."""
    return (table.now() - _KEPT).strftime("%Y-%m-%dT%H:%M:%SZ")


def each(do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Does the same for many files at once; raises the first error."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, items))


def _number(name: str) -> int | None:
    """The number of the replacement that has published a file; None for a file of another writer."""
    match = _PUBLISHED.fullmatch(name.rpartition("/")[2])
    return None if match is None else int(match["number"])
