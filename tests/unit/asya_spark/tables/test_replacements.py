"""A partition is replaced once and in order, wherever processes die and however they overlap (`protocol §10.replace-once`).

Files and commits are a dictionary, and Spark is left out: what a call stages are files with its rows.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from asya_spark.tables import replacements
from asya_spark.tables.errors import TableError
from asya_spark.tables.records import FOLDER, Layout
from asya_spark.tables.replacements import Replacements, Table
from tests.doubles.stored_table import Store, StoredCommits, StoredFiles

DAY = "day=2026-01-01"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
URI = "s3://shop/table"


class KilledError(BaseException):
    """Stands for the end of the process."""


class Stepping:
    """Calls a hook before each step of the files and the commits, and before each request of a rename, if asked to."""

    def __init__(self, target: Any, hook: Callable[[], None], *, in_parts: bool = False) -> None:
        self._target = target
        self._hook = hook
        self._in_parts = in_parts

    def __getattr__(self, name: str) -> Any:
        if name == "rename" and self._in_parts:
            parts = self._target.parts_of_rename
            return lambda *arguments: all(self._stepped(part)() for part in parts(*arguments))
        return self._stepped(getattr(self._target, name))

    def _stepped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            self._hook()
            return original(*arguments)

        return step


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The moves of a call are steps in order, so that a test can stop between them."""
    monkeypatch.setattr(replacements, "each", lambda do, items: [do(item) for item in items])


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture(params=["plain", "versioned"])
def table(request: pytest.FixtureRequest, store: Store) -> Table:
    return table_in(store, request.param)


def table_in(store: Store, layout: Layout) -> Table:
    return Table(URI, layout, StoredFiles(store), StoredCommits(store), lambda: NOW)


def stepping(table: Table, hook: Callable[[], None], *, in_parts: bool = False) -> Table:
    return replace(table, files=Stepping(table.files, hook, in_parts=in_parts), commits=Stepping(table.commits, hook))


def dying(table: Table, steps: int) -> Table:
    """The table of a process that dies before a step."""
    taken = count()

    def hook() -> None:
        if next(taken) == steps:
            raise KilledError

    return stepping(table, hook)


def store_of(table: Table) -> Store:
    commits: Any = table.commits
    while isinstance(commits, Stepping):
        commits = commits._target
    return commits._store  # type: ignore[no-any-return]


def write(table: Table, key: str, rows: Sequence[str], partition: str = DAY) -> bool:
    """Replaces a partition by as many files as there are rows."""

    def stage(folder: str) -> tuple[tuple[str, ...], int]:
        inner = "" if table.layout == "versioned" else f"{partition}/"
        names = tuple(f"{inner}part-{number}.parquet" for number in range(len(rows)))
        store_of(table).update(zip((f"{folder}/{name}" for name in names), rows, strict=True))
        return names, len(rows)

    return Replacements(table, partition).run(key.encode().hex().zfill(32), stage, {"id": key})


def rows(table: Table, partition: str = DAY) -> list[str]:
    """What a reader finds."""
    store = store_of(table)
    if table.layout == "plain":
        return sorted(store[f"{URI}/{partition}/{name}"] for name in table.files.tree(f"{URI}/{partition}"))
    commits = [table.commit_of(entry.key, partition) for entry in table.last_entries() if entry.partition == partition]
    return sorted(store[f"{commit.folder}/{name}"] for commit in commits if commit for name in commit.files)


@pytest.mark.rule("10.replace-once")
def test_10_a_new_call_replaces_and_a_repetition_changes_nothing(table: Table) -> None:
    assert write(table, "a", ["a1", "a2", "a3"])
    assert not write(table, "a", ["other"])
    assert rows(table) == ["a1", "a2", "a3"]
    assert write(table, "b", ["b1"])
    assert not write(table, "a", ["late"])
    assert rows(table) == ["b1"]
    assert write(table, "c", [])
    assert rows(table) == []


@pytest.mark.rule("10.replace-once")
def test_10_other_partitions_stay(table: Table) -> None:
    write(table, "a", ["a1"])
    write(table, "b", ["b1"], "day=2026-01-02")
    write(table, "c", ["c1"])
    assert (rows(table), rows(table, "day=2026-01-02")) == (["c1"], ["b1"])


@pytest.mark.rule("10.replace-once.plain")
def test_10_files_of_other_writers_are_replaced_and_kept_for_a_day(store: Store) -> None:
    table = table_in(store, "plain")
    store |= {f"{URI}/{DAY}/{name}": "old" for name in ("part-0.parquet", f"asya-{'0' * 32}-00000.parquet")}
    write(table, "a", ["a1"])
    assert rows(table) == ["a1"]
    kept = f"{URI}/{FOLDER}/replaced"
    assert [store[f"{kept}/{name}"] for name in store.below(kept)] == ["old", "old"]
    store[f"{URI}/{DAY}/part-0.parquet"] = "later"
    write(table, "a", ["again"])
    assert rows(table) == ["a1", "later"]
    write(replace(table, now=lambda: NOW + timedelta(hours=25)), "b", ["b1"])
    assert sorted(store[f"{kept}/{name}"] for name in store.below(kept)) == ["a1", "later"]


@pytest.mark.rule("10.replace-once.plain")
def test_10_an_older_call_leaves_a_file_that_another_writer_has_written_anew(store: Store) -> None:
    table, other = table_in(store, "plain"), f"{URI}/{DAY}/part-0.parquet"
    with pytest.raises(KilledError):
        write(dying(table, 8), "old", ["old"])  # it has its number
    assert table.last_entries()
    store[other] = "first"
    write(table, "new", ["new"])
    store[other] = "second"
    write(table, "old", ["old"])
    assert rows(table) == ["new", "second"]


@pytest.mark.rule("10.replace-once.versioned")
def test_10_replaced_versions_stay_for_a_day_and_the_folder_has_no_file_for_plain_readers(store: Store) -> None:
    table, versions = table_in(store, "versioned"), f"{URI}/{FOLDER}/versions"
    write(table, "a", ["a1"])
    write(table, "b", ["b1"])
    assert sorted(store[f"{versions}/{name}"] for name in store.below(versions)) == ["a1", "b1"]
    assert not table.files.tree(URI)
    write(replace(table, now=lambda: NOW + timedelta(hours=25)), "c", ["c1"])
    assert sorted(store[f"{versions}/{name}"] for name in store.below(versions)) == ["b1", "c1"]


@pytest.mark.rule("10.replace-once.plain")
def test_10_committed_files_that_somebody_removed_are_named(store: Store) -> None:
    table = table_in(store, "plain")
    with pytest.raises(KilledError):
        write(dying(table, 4), "a", ["a1"])  # published, commit, number, commit
    table.files.remove_folder(f"{URI}/{FOLDER}/staging")
    with pytest.raises(TableError, match=r"is committed to .* and is gone"):
        write(table, "a", ["a1"])


def check(table: Table) -> str:
    """The rows are all those of one attempt, the one that counts of the last call; returns this call."""
    (entry,) = table.last_entries()
    commit = table.commit_of(entry.key, DAY)
    assert commit is not None
    found, key = rows(table), str(commit.call["id"])
    assert len(found) == commit.rows
    assert found == [f"{key}.{found[0].split('.')[1]}.{number}" for number in range(len(found))]
    return key


def overtaken(layout: Layout, between: Sequence[str], overtaken_at: int, died_at: int) -> tuple[bool, bool]:
    """A call stops before a step, other ones run, the call goes on, dies before a later step, and is repeated.

    Returns:
        Whether it was overtaken, and whether it died.
    """
    table, steps, had_number = table_in(Store(), layout), count(), []

    def hook() -> None:
        step = next(steps)
        if step == overtaken_at:
            had_number.append(len(store_of(table).below(f"{URI}/{FOLDER}/replacements")) > 1)
            for attempt, key in enumerate(between):
                write(table, key, [f"{key}.{attempt}.{number}" for number in range(2)])
        if step == died_at:
            raise KilledError

    write(table, "before", ["before.0.0", "before.0.1"])
    died = False
    try:
        write(stepping(table, hook), "call", ["call.8.0", "call.8.1", "call.8.2"])
    except KilledError:
        died = True
        write(table, "call", ["call.9.0"])
    last, found = check(table), rows(table)
    if had_number == [True]:
        # It is older than all that ran in between, but itself.
        assert last == next((key for key in reversed(between) if key != "call"), "call")
    for key in ("before", "call", *(between if had_number else ())):
        assert not write(table, key, ["late"])
    assert (check(table), rows(table)) == (last, found)
    return bool(had_number), died


@pytest.mark.rule("10.replace-once")
@pytest.mark.parametrize("layout", ["plain", "versioned"])
@pytest.mark.parametrize("between", [["new"], ["call"], ["call", "new"], ["new", "call"], ["new", "newer"]])
def test_10_a_call_that_is_overtaken_at_any_step_and_dies_at_any_later_one(layout: Layout, between: list[str]) -> None:
    for overtaken_at in count():
        for died_at in count(overtaken_at):
            was_overtaken, died = overtaken(layout, between, overtaken_at, died_at)
            if not died:
                break
        if not was_overtaken:
            assert overtaken_at > 10
            return


class Together:
    """Runs writers as threads, of which one takes a step at a time; some die.

    The one of the highest rank goes on, and at a few steps it falls behind all others: most faults need few changes.
    """

    def __init__(self, table: Table, chance: random.Random, deaths: float) -> None:
        self._table = table
        self._chance = chance
        self._deaths = deaths
        self._turn = threading.Condition()
        self._waiting: set[int] = set()
        self._alive: set[int] = set()
        self._chosen: int | None = None
        self._ranks: list[int] = []

    def run(self, writers: list[Callable[[Table], Any]]) -> list[bool]:
        """Returns which of them ended."""
        self._alive = set(range(len(writers)))
        self._ranks = self._chance.sample(range(len(writers)), len(writers))
        ended = [False] * len(writers)
        threads = [threading.Thread(target=self._work, args=(number, writers, ended)) for number in self._alive]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ended

    def _work(self, number: int, writers: list[Callable[[Table], Any]], ended: list[bool]) -> None:
        try:
            writers[number](stepping(self._table, lambda: self._step(number), in_parts=True))
            ended[number] = True
        except KilledError:
            pass
        finally:
            with self._turn:
                self._alive.discard(number)
                self._choose()

    def _step(self, number: int) -> None:
        with self._turn:
            self._waiting.add(number)
            self._choose()
            while self._chosen != number:
                self._turn.wait()
            self._chosen = None
            self._waiting.discard(number)
            if self._chance.random() < 0.1:
                self._ranks[number] = min(self._ranks) - 1
            if self._chance.random() < self._deaths:
                raise KilledError

    def _choose(self) -> None:
        if self._waiting and self._waiting == self._alive:
            self._chosen = max(self._waiting, key=self._ranks.__getitem__)
            self._turn.notify_all()


def writer(key: str, attempt: int) -> Callable[[Table], Any]:
    return lambda table: write(table, key, [f"{key}.{attempt}.{number}" for number in range(attempt % 4)])


@pytest.mark.rule("10.replace-once")
@pytest.mark.parametrize("seed", range(60))
def test_10_each_day_has_the_rows_of_one_call_whoever_dies_and_overlaps(table: Table, seed: int) -> None:
    """Calls, their repetitions and drivers that are taken for dead overlap, until each call has ended."""
    chance = random.Random(seed)
    left, attempts, deaths = {"a", "b", "c"}, count(1), chance.choice((0.0, 0.02, 0.05))
    while left:
        keys = [chance.choice(sorted(left)) for _ in range(chance.randint(1, 3))]
        ended = Together(table, chance, deaths).run([writer(key, next(attempts)) for key in keys])
        left -= {key for key, has_ended in zip(keys, ended, strict=True) if has_ended}
    last, found = check(table), rows(table)
    for key in "abc":
        assert not write(table, key, ["late"])
    assert (check(table), rows(table)) == (last, found)
