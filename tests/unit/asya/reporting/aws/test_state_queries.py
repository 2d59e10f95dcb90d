"""protocol §5.4: a gateway that does not answer holds no envelope up."""

from collections.abc import Sequence

import pytest

from asya.protocol.events import StateQuery, TaskState
from asya.reporting.aws.gateway_client import GatewayError, NoAnswerError
from asya.reporting.aws.state_queries import StateQueries

OWN, OTHER = "https://own.example", "https://other.example"


class Client:
    """Answers, or fails with an error for each gateway; each call takes some seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.seconds = 0.5
        self.errors: dict[str, Exception] = {}
        self.calls: list[tuple[str, float]] = []

    def states(self, url: str, queries: Sequence[StateQuery], *, seconds: float) -> tuple[TaskState, ...]:
        self.calls.append((url, seconds))
        self.now += min(self.seconds, seconds)
        if url in self.errors:
            raise self.errors[url]
        return tuple(TaskState(id=query.id, status="running") for query in queries)


class Notices:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.skips = 0

    def failed(self, problem: str) -> None:
        self.problems.append(problem)

    def skipped(self) -> None:
        self.skips += 1


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def notices() -> Notices:
    return Notices()


@pytest.fixture
def queries(client: Client, notices: Notices) -> StateQueries:
    return StateQueries(client, lambda: client.now, notices, OWN)  # type: ignore[arg-type]


A, B = [StateQuery(id="a")], [StateQuery(id="b")]


@pytest.mark.rule("5.4.go-on")
def test_after_silence_the_process_skips_the_query_for_30_seconds(
    queries: StateQueries, client: Client, notices: Notices
) -> None:
    client.errors[OWN] = NoAnswerError("no answer")
    assert queries.ask({OWN: A}) == {}
    silent_at = client.now
    assert queries.ask({OWN: A}) == {}
    client.now = silent_at + 29.9
    assert queries.ask({OWN: A}) == {}
    assert (len(client.calls), len(notices.problems), notices.skips) == (1, 1, 2)
    del client.errors[OWN]
    client.now = silent_at + 30
    assert queries.ask({OWN: A}).keys() == {"a"}


@pytest.mark.rule("5.4.go-on")
def test_an_error_is_an_answer(queries: StateQueries, client: Client, notices: Notices) -> None:
    client.errors[OWN] = GatewayError("answered 503")
    assert queries.ask({OWN: A}) == {}
    del client.errors[OWN]
    assert queries.ask({OWN: A}).keys() == {"a"}
    assert (len(notices.problems), notices.skips) == (1, 0)


@pytest.mark.rule("5.4.go-on")
def test_a_batch_waits_two_seconds_for_all_of_its_gateways(queries: StateQueries, client: Client) -> None:
    client.seconds = 1.5
    assert queries.ask({OWN: A, OTHER: B, "https://third.example": A}).keys() == {"a", "b"}
    assert client.calls == [(OWN, 2.0), (OTHER, 0.5)]


@pytest.mark.rule("5.4.go-on")
def test_one_silent_gateway_pauses_itself_only(queries: StateQueries, client: Client) -> None:
    client.errors[OTHER] = NoAnswerError("no answer")
    assert queries.ask({OTHER: B, OWN: A}).keys() == {"a"}
    assert queries.ask({OTHER: B, OWN: A}).keys() == {"a"}
    assert [url for url, _ in client.calls] == [OWN, OTHER, OWN]


@pytest.mark.rule("5.4.go-on")
def test_addresses_of_a_silent_host_take_no_time_of_the_own_gateway(queries: StateQueries, client: Client) -> None:
    """A sender may name any path on an allowed host."""
    client.seconds = 1.2
    paths = [f"{OTHER}/{number}" for number in range(20)]
    client.errors = {path: NoAnswerError("no answer") for path in paths}
    for _ in range(3):
        assert queries.ask(dict.fromkeys(paths, B) | {OWN: A}).keys() == {"a"}
    assert [url for url, _ in client.calls] == [OWN, paths[0], OWN, OWN]
