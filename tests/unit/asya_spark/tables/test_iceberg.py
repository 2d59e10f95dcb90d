"""The decisions of an append to an Iceberg table: what follows from what the table says.

The table is a model with the answers that Iceberg gave in tests/iceberg, where the same runs on Iceberg itself.
"""

import random
from itertools import count
from typing import Any, cast

import pytest

from asya_spark.tables import iceberg
from asya_spark.tables.errors import TableError
from asya_spark.tables.iceberg import Snapshot, append_to_table, find_table, write_in_branch


class KilledError(BaseException):
    """Stands for the end of the process."""


class DuplicateWAPCommitException(Exception):  # noqa: N818 - the name of Iceberg's
    """A key is published."""


class CommitFailedException(Exception):  # noqa: N818 - the name of Iceberg's
    """Another commit came first. Errors of the JVM have its name in their text."""

    def __str__(self) -> str:
        return type(self).__name__


class Table:
    """Staged and published snapshots: id → key and rows."""

    name = "iceberg.sales.orders"

    def __init__(self) -> None:
        self.staged: dict[int, tuple[str, str]] = {}
        self.published: dict[int, tuple[str, str]] = {}
        self.stages = True
        self.steps: list[str] = []

    def find(self, key: str) -> list[Snapshot]:
        self.steps.append("find")
        return [
            Snapshot(number, is_published=number in self.published)
            for number, (staged_key, _) in self.staged.items()
            if staged_key == key
        ]

    def check_staging(self) -> None:
        self.steps.append("check")
        if not self.stages:
            raise TableError("stages no writes")

    def stage(self, frame: Any, key: str) -> None:
        self.steps.append("stage")
        self.staged[len(self.staged) + 1] = (key, frame)

    def publish(self, snapshot: int) -> None:
        self.steps.append("publish")
        if self.staged[snapshot][0] in [key for key, _ in self.published.values()]:
            raise DuplicateWAPCommitException
        self.published[snapshot] = self.staged[snapshot]

    @property
    def rows(self) -> list[str]:
        return [rows for _, rows in self.published.values()]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setattr(iceberg.time, "sleep", lambda _seconds: None)
    return Table()


def append(table: Table, rows: str = "rows", key: str = "k") -> None:
    append_to_table(cast("Any", rows), table, key)


@pytest.mark.rule("10.append-once.iceberg")
def test_10_rows_are_staged_then_published(table: Table) -> None:
    append(table)
    assert table.steps == ["find", "check", "stage", "find", "publish"]
    assert table.rows == ["rows"]


@pytest.mark.rule("10.append-once.iceberg")
def test_10_a_published_call_only_looks(table: Table) -> None:
    append(table)
    table.steps.clear()
    append(table, "others")
    assert (table.steps, table.rows) == (["find"], ["rows"])


@pytest.mark.rule("10.append-once.iceberg")
def test_10_what_a_dead_attempt_has_staged_is_published_and_nothing_else_is_staged(table: Table) -> None:
    table.stage("first", "k")
    table.steps.clear()
    append(table, "second")
    assert (table.steps, table.rows) == (["find", "publish"], ["first"])


@pytest.mark.rule("10.append-once.iceberg")
def test_10_a_refusal_because_another_attempt_has_published_is_no_error(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = table.publish

    def overtaken(snapshot: int) -> None:
        monkeypatch.undo()
        table.stage("twin", "k")
        original(2)
        original(snapshot)

    monkeypatch.setattr(table, "publish", overtaken)
    append(table)
    assert table.rows == ["twin"]


@pytest.mark.rule("10.append-once.iceberg")
@pytest.mark.parametrize("step", ["stage", "publish"])
@pytest.mark.parametrize("conflicts", [1, 4])
def test_10_a_conflict_with_another_commit_is_repeated(
    table: Table, monkeypatch: pytest.MonkeyPatch, step: str, conflicts: int
) -> None:
    original, left = getattr(table, step), [conflicts]

    def conflicting(*arguments: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise CommitFailedException
        original(*arguments)

    monkeypatch.setattr(table, step, conflicting)
    append(table)
    assert table.rows == ["rows"]
    assert len(table.staged) == 1


@pytest.mark.rule("10.append-once.iceberg")
@pytest.mark.parametrize(("error", "tries"), [(CommitFailedException(), 5), (PermissionError("denied"), 1)])
def test_10_a_conflict_that_lasts_and_any_other_error_reach_the_job(
    table: Table, monkeypatch: pytest.MonkeyPatch, error: Exception, tries: int
) -> None:
    seen = []

    def failing(_snapshot: int) -> None:
        seen.append(1)
        raise error

    monkeypatch.setattr(table, "publish", failing)
    with pytest.raises(type(error)):
        append(table)
    assert (len(seen), len(table.staged), table.rows) == (tries, 1, [])


@pytest.mark.rule("10.append-once.iceberg")
def test_10_a_commit_without_an_answer_counts_if_the_table_has_it(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = table.publish

    def unanswered(snapshot: int) -> None:
        original(snapshot)
        raise TimeoutError

    monkeypatch.setattr(table, "publish", unanswered)
    append(table)
    assert table.rows == ["rows"]


def test_10_a_table_that_stages_nothing_gets_no_rows(table: Table) -> None:
    table.stages = False
    with pytest.raises(TableError, match="stages no writes"):
        append(table)
    assert "stage" not in table.steps


def test_10_rows_that_are_gone_after_they_were_staged_are_an_error(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "find", lambda _key: [])
    with pytest.raises(TableError, match="were staged and are gone"):
        append(table)


@pytest.mark.rule("10.append-once.iceberg")
@pytest.mark.parametrize("seed", range(50))
def test_10_processes_that_die_at_any_step_append_once(
    table: Table, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)

    def dying(original: Any) -> Any:
        def step(*arguments: Any) -> Any:
            if chance.random() < 0.2:
                raise KilledError
            result = original(*arguments)
            if chance.random() < 0.2:
                raise KilledError
            return result

        return step

    for name in ("find", "check_staging", "stage", "publish"):
        monkeypatch.setattr(table, name, dying(getattr(table, name)))
    for attempt in range(1, 1000):
        try:
            append(table, f"attempt {attempt}")
            break
        except KilledError:
            continue
    assert len(table.rows) == 1


class Branches:
    """A table with branches: the keys and rows of its commits. A branch is where it began, and what was written to it."""

    name = "iceberg.sales.orders"

    def __init__(self) -> None:
        self.main: list[tuple[str, str]] = []
        self.refs: dict[str, list[tuple[str, str]]] = {}

    def has(self, key: str) -> bool:
        return key in [each for each, _ in self.main]

    def branch(self, name: str) -> None:
        self.refs[name] = list(self.main)

    def take(self, branch: str) -> None:
        if self.refs[branch][: len(self.main)] != self.main:
            raise RuntimeError("main is not an ancestor of the branch")
        self.main = list(self.refs[branch])

    def drop(self, branch: str) -> None:
        self.refs.pop(branch, None)

    def branches(self, beginning: str) -> list[str]:
        return [name for name in self.refs if name.startswith(beginning)]

    def write(self, key: str, rows: str) -> bool:
        return write_in_branch(self, key, lambda branch: self.refs[branch].append((key, rows)))


STEPS = ("branches", "branch", "has", "take", "drop")


@pytest.fixture
def branches(monkeypatch: pytest.MonkeyPatch) -> Branches:
    monkeypatch.setattr(iceberg.time, "sleep", lambda _seconds: None)
    return Branches()


@pytest.mark.rule("10.branches.iceberg")
def test_10_a_call_takes_its_branch_once(branches: Branches) -> None:
    assert branches.write("k", "first")
    assert not branches.write("k", "second")
    assert (branches.main, branches.refs) == ([("k", "first")], {})


@pytest.mark.rule("10.branches.iceberg")
@pytest.mark.parametrize("key", ["k", "other"])
@pytest.mark.parametrize("step", STEPS)
def test_10_a_call_that_another_one_meets_before_any_step(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, step: str, key: str
) -> None:
    original = getattr(branches, step)

    def met(*arguments: Any) -> Any:
        monkeypatch.setattr(branches, step, original)
        branches.write(key, "met")
        return original(*arguments)

    monkeypatch.setattr(branches, step, met)
    branches.write("k", "own")
    assert [each for each, _ in branches.main].count("k") == 1
    assert {each for each, _ in branches.main} == {"k", key}


@pytest.mark.rule("10.branches.iceberg")
def test_10_a_table_that_always_moves_fails_the_call_in_the_end(
    branches: Branches, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, original = count(), branches.take

    def moved(branch: str) -> None:
        branches.main.append((f"other {next(numbers)}", "rows"))
        original(branch)

    monkeypatch.setattr(branches, "take", moved)
    with pytest.raises(RuntimeError, match="is not an ancestor"):
        branches.write("k", "own")
    assert (next(numbers), branches.has("k"), branches.refs) == (5, False, {})


@pytest.mark.rule("10.branches.iceberg")
@pytest.mark.parametrize("seed", range(50))
def test_10_processes_that_die_at_any_step_write_once(
    branches: Branches, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)

    def dying(original: Any) -> Any:
        def step(*arguments: Any) -> Any:
            if chance.random() < 0.15:
                raise KilledError
            result = original(*arguments)
            if chance.random() < 0.15:
                raise KilledError
            return result

        return step

    for name in STEPS:
        monkeypatch.setattr(branches, name, dying(getattr(branches, name)))
    for attempt in range(1, 1000):
        try:
            branches.write("k", f"attempt {attempt}")
            break
        except KilledError:
            branches.main.append(("other", "rows"))
    assert [each for each, _ in branches.main].count("k") == 1


class Session:
    """A session with settings."""

    def __init__(self, **settings: str) -> None:
        self.conf = settings


LAKE = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}


@pytest.mark.rule("10.append-once.iceberg")
@pytest.mark.parametrize(
    ("name", "is_table"),
    [
        ("lake.sales.orders", True),
        ("lake.eu.sales.orders", True),
        ("lake.orders", False),
        ("sales.orders.v1", False),
        ("lake/sales/orders", False),
        ("lake.sales.orders/clean", False),
        ("s3://lake.sales.orders", False),
        ("lake.sales.`orders`", False),
        ("lake.sales.orders'", False),
    ],
)
def test_10_a_name_in_a_catalog_of_the_session_is_a_table(name: str, is_table: bool) -> None:
    found = find_table(cast("Any", Session(**LAKE)), name)
    assert (found is not None and found.name == name) == is_table


def test_10_without_iceberg_its_tables_are_no_folders() -> None:
    with pytest.raises(
        TableError, match=r"does not have: set spark: \{catalog: glue, tables: iceberg\} in the mesh file"
    ):
        find_table(cast("Any", Session()), "iceberg.sales.orders")
