"""protocol §5.4: a tasks table that does not answer holds no envelope up."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from asya.tasks.aws.state_reader import READ_LIMIT, NoAnswerError, StateQueries
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.task_state import StateQuery, TaskState
from tests.doubles.tasks import at

QUERIES = [StateQuery(id="a")]


class Reader:
    """Answers, or fails; each call takes some seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.seconds = 0.5
        self.error: Exception | None = None
        self.calls: list[int] = []

    def read(self, queries: Sequence[StateQuery], _now: datetime) -> dict[str, TaskState]:
        self.calls.append(len(queries))
        self.now += self.seconds
        if self.error is not None:
            raise self.error
        return {query.id: TaskState(id=query.id, status="running") for query in queries}


class Notices:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.skips = 0

    def failed(self, problem: str) -> None:
        self.problems.append(problem)

    def skipped(self) -> None:
        self.skips += 1


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def notices() -> Notices:
    return Notices()


@pytest.fixture
def queries(reader: Reader, notices: Notices) -> StateQueries:
    return StateQueries(reader, lambda: reader.now, notices)  # type: ignore[arg-type]


def many(count: int) -> list[StateQuery]:
    return [StateQuery(id=str(number), root_id=f"root-{number}") for number in range(count)]


@pytest.mark.rule("5.4.go-on")
def test_after_silence_the_process_skips_the_query_for_30_seconds(
    queries: StateQueries, reader: Reader, notices: Notices
) -> None:
    reader.error = NoAnswerError("no answer")
    assert queries.ask(QUERIES, at(0)) == {}
    silent_at = reader.now
    assert queries.ask(QUERIES, at(0)) == {}
    reader.now = silent_at + 29.9
    assert queries.ask(QUERIES, at(0)) == {}
    assert (len(reader.calls), len(notices.problems), notices.skips) == (1, 1, 2)
    reader.error = None
    reader.now = silent_at + 30
    assert queries.ask(QUERIES, at(0)).keys() == {"a"}


@pytest.mark.rule("5.4.go-on")
def test_an_error_is_an_answer(queries: StateQueries, reader: Reader, notices: Notices) -> None:
    reader.error = TaskStoreError("throttled")
    assert queries.ask(QUERIES, at(0)) == {}
    reader.error = None
    assert queries.ask(QUERIES, at(0)).keys() == {"a"}
    assert (len(notices.problems), notices.skips) == (1, 0)


def test_a_batch_without_tasks_asks_for_nothing(queries: StateQueries, reader: Reader, notices: Notices) -> None:
    assert (queries.ask([], at(0)), reader.calls, notices.skips) == ({}, [], 0)


@pytest.mark.rule("5.4.one-call")
def test_a_call_asks_for_as_many_tasks_and_roots_as_dynamodb_takes(queries: StateQueries, reader: Reader) -> None:
    reader.seconds = 0.1
    assert len(queries.ask(many(120), at(0))) == 120
    assert reader.calls == [READ_LIMIT // 2, READ_LIMIT // 2, 20]


@pytest.mark.rule("5.4.go-on")
def test_no_call_begins_after_two_seconds(queries: StateQueries, reader: Reader) -> None:
    reader.seconds = 1.0
    assert len(queries.ask(many(500), at(0))) == READ_LIMIT
    assert len(reader.calls) == 2


@pytest.mark.rule("5.4.go-on")
def test_silence_ends_the_queries_of_a_batch(queries: StateQueries, reader: Reader, notices: Notices) -> None:
    reader.error = NoAnswerError("no answer")
    assert queries.ask(many(500), at(0)) == {}
    assert (len(reader.calls), notices.skips) == (1, 0)
