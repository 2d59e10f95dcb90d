"""The client of the gateway over a real socket: signatures, time limits, one result per item (`protocol §5`, `§13`)."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import NoCredentialsError

from asya.protocol.events import EventData, EventResult, StateQuery, TaskEvent, TaskState
from asya.protocol.times import format_time
from asya.reporting.aws.gateway_client import GatewayClient, GatewayError, allowed_hosts, is_final
from asya.reporting.aws.progress_reporter import ProgressReporter
from asya.reporting.aws.required_reports import RequiredReports, RetryWindow
from tests.doubles.gateway import FakeGateway, running_gateway

AT = format_time(datetime(2026, 11, 20, 12, tzinfo=UTC))


class Source:
    """A source of credentials."""

    def __init__(self, problem: Exception | None = None, *, has_credentials: bool = True) -> None:
        self.problem, self.has_credentials = problem, has_credentials

    def get_credentials(self) -> Credentials | None:
        if self.problem:
            raise self.problem
        return Credentials("AKIDEXAMPLE", "secret", "token") if self.has_credentials else None


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_gateway() as running:
        yield running


@pytest.fixture
def client() -> GatewayClient:
    return GatewayClient(Source(), "eu-west-1")


def event(task_id: str = "env-1", status: str = "received", text: str = "") -> TaskEvent:
    return TaskEvent(id=task_id, status=status, at=AT, data=EventData(actor="infer", owner=text or None))  # type: ignore[arg-type]


def test_a_report_is_signed_for_the_api_and_answered_by_item(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.item_status["env-2", "received"] = 503
    results = client.report(gateway.url, [event("env-1"), event("env-2")])
    assert [result.status for result in results] == [204, 503]
    assert gateway.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/execute-api/aws4_request" in gateway.headers["authorization"]
    assert gateway.headers["x-amz-security-token"] == "token"


def test_many_or_large_events_take_several_calls(gateway: FakeGateway, client: GatewayClient) -> None:
    events = [event(f"env-{n}", text="x" * 1000) for n in range(450)]
    assert len(client.report(gateway.url, events)) == 450
    assert [one.id for one in gateway.events] == [one.id for one in events]
    assert client.report(gateway.url, []) == ()


def test_states_are_answered_in_order(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.states["b"] = TaskState(id="b", status="canceled")
    states = client.states(gateway.url, [StateQuery(id="a"), StateQuery(id="b", root_id="r")])
    assert [state.status for state in states] == ["unknown", "canceled"]


@pytest.mark.parametrize("status", [403, 429, 500, 503, 302])
def test_other_answers_are_errors_to_try_again(gateway: FakeGateway, client: GatewayClient, status: int) -> None:
    gateway.status = status
    with pytest.raises(GatewayError, match=str(status)):
        client.report(gateway.url, [event()])
    with pytest.raises(GatewayError, match=str(status)):
        client.states(gateway.url, [StateQuery(id="a")])


@pytest.mark.parametrize(
    "answer", [b"", b"hello", b"{}", b'{"items":[]}', b'{"items":[{"id":"a"}]}', b'{"items":[5,6]}']
)
def test_malformed_answers_are_errors(gateway: FakeGateway, client: GatewayClient, answer: bytes) -> None:
    gateway.answer = answer
    with pytest.raises(GatewayError, match="answer"):
        client.report(gateway.url, [event()])
    with pytest.raises(GatewayError, match="answer"):
        client.states(gateway.url, [StateQuery(id="a")])


def test_a_silent_endpoint_is_an_error_in_time(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.silent = True
    with pytest.raises(GatewayError, match="no answer"):
        client.report(gateway.url, [event()], seconds=0.1)


def test_an_unreachable_endpoint_is_an_error(client: GatewayClient) -> None:
    with pytest.raises(GatewayError, match="no answer"):
        client.report("http://127.0.0.1:9", [event()], seconds=0.5)


@pytest.mark.parametrize("source", [Source(has_credentials=False), Source(NoCredentialsError())])
def test_without_credentials_nothing_is_sent(gateway: FakeGateway, source: Source) -> None:
    with pytest.raises(GatewayError):
        GatewayClient(source, "eu-west-1").report(gateway.url, [event()])
    assert gateway.events == []


@pytest.mark.rule("5.must-arrive")
@pytest.mark.parametrize(
    ("status", "settled"), [(204, True), (400, True), (404, True), (403, False), (429, False), (500, False)]
)
def test_protocol_5_404_and_400_count_as_accepted(status: int, settled: bool) -> None:
    assert is_final(EventResult(id="a", status=status)) is settled


def test_allowed_hosts_are_the_own_and_those_named() -> None:
    assert allowed_hosts("https://own.example/base", ["other.example"]) == {"own.example", "other.example"}
    assert allowed_hosts(None, []) == frozenset()


# --- reports that must arrive


@pytest.mark.rule("5.must-arrive")
@pytest.mark.parametrize(
    ("status", "taken"), [(204, True), (400, True), (404, True), (429, False), (403, False), (503, False)]
)
@pytest.mark.parametrize("whole_call", [False, True], ids=["item", "call"])
def test_protocol_5_a_required_report_is_accepted_or_its_receipt_has_the_error(
    gateway: FakeGateway, client: GatewayClient, status: int, taken: bool, whole_call: bool
) -> None:
    refused: list[EventResult] = []
    reports = RequiredReports(client, refused.append)
    if whole_call and status != 204:
        gateway.status = status
    else:
        gateway.item_status["env-1", "succeeded"] = status
    receipt = reports.report(gateway.url, event(status="succeeded"))
    neighbour = reports.report(gateway.url, event("env-2", "succeeded"))
    reports.flush()
    assert (receipt.problem is None) is taken
    assert neighbour.problem is None or (whole_call and not taken)
    assert [result.status for result in refused if result.id == "env-1"] == (
        [status] if taken and status != 204 else []
    )
    if not taken:
        assert str(status) in str(receipt.problem)


def test_protocol_5_one_endpoint_that_is_down_does_not_cost_the_others_reports(
    gateway: FakeGateway, client: GatewayClient
) -> None:
    reports = RequiredReports(client)
    lost = reports.report("http://127.0.0.1:9", event("env-1", "failed"))
    kept = reports.report(gateway.url, event("env-2", "failed"))
    reports.flush()
    assert lost.problem is not None
    assert kept.problem is None
    reports.flush()
    assert gateway.reported("env-2") == ["failed"]


class Clock:
    """A clock that advances only during sleeps, and runs actions meanwhile."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.seconds = 0.0
        self.meanwhile = meanwhile

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.meanwhile()


def test_protocol_5_a_required_report_is_retried_before_its_message_is_kept(
    gateway: FakeGateway, client: GatewayClient
) -> None:
    gateway.item_status["env-1", "succeeded"] = 503
    clock = Clock(gateway.item_status.clear)
    reports = RequiredReports(client, retry_window=RetryWindow(10, clock))
    receipts = [reports.report(gateway.url, event(name, "succeeded")) for name in ("env-1", "env-2")]
    reports.flush()
    assert [receipt.problem for receipt in receipts] == [None, None]
    assert gateway.reported("env-1") == ["succeeded", "succeeded"]
    assert gateway.reported("env-2") == ["succeeded"]  # accepted at once, and not reported again


def test_protocol_5_retries_end_while_an_endpoint_is_down(client: GatewayClient) -> None:
    clock = Clock()
    reports = RequiredReports(client, retry_window=RetryWindow(10, clock))
    receipt = reports.report("http://127.0.0.1:9", event("env-1", "failed"))
    reports.flush()
    assert receipt.problem is not None
    assert 5 < clock.seconds < 10


# --- progress


class Drops(list[tuple[int, str]]):
    def __call__(self, count: int, problem: str) -> None:
        self.append((count, problem))


def test_progress_leaves_at_the_flush_in_one_call_and_in_order(gateway: FakeGateway, client: GatewayClient) -> None:
    drops = Drops()
    progress = ProgressReporter(client, drops)
    for status in ("received", "processing", "completed"):
        progress.report(gateway.url, event(status=status))
    progress.flush()
    assert gateway.reported("env-1") == ["received", "processing", "completed"]
    assert drops == []
    progress.flush()


def test_progress_of_a_long_handler_leaves_by_itself(
    gateway: FakeGateway, client: GatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asya.reporting.aws.progress_reporter.LINGER_SECONDS", 0.02)
    progress = ProgressReporter(client, Drops())
    progress.report(gateway.url, event())
    deadline = datetime.now(UTC).timestamp() + 5
    while not gateway.events and datetime.now(UTC).timestamp() < deadline:
        gateway.over.wait(0.005)
    assert gateway.reported("env-1") == ["received"]


@pytest.mark.rule("5.progress")
@pytest.mark.parametrize("trouble", ["status", "item", "answer"])
def test_protocol_5_progress_that_is_not_accepted_is_tried_twice_then_dropped_and_counted(
    gateway: FakeGateway, client: GatewayClient, trouble: str
) -> None:
    if trouble == "status":
        gateway.status = 503
    elif trouble == "item":
        gateway.item_status["env-1", "received"] = 503
    else:
        gateway.answer = b'{"items":[]}'
    drops = Drops()
    progress = ProgressReporter(client, drops)
    progress.report(gateway.url, event())
    progress.flush()
    assert gateway.reported("env-1") == ["received", "received"]
    assert [count for count, _ in drops] == [1]
    gateway.status, gateway.answer = 200, None
    gateway.item_status.clear()
    progress.report(gateway.url, event("env-2"))
    progress.flush()
    assert gateway.reported("env-2") == ["received"]


@pytest.mark.rule("5.progress")
def test_protocol_5_progress_never_blocks_longer_than_it_may(gateway: FakeGateway, client: GatewayClient) -> None:
    gateway.silent = True
    drops = Drops()
    progress = ProgressReporter(client, drops)
    for number in range(250):
        progress.report(gateway.url, event(f"env-{number}"))
    progress.flush(seconds=0.05)
    assert drops[0][0] == 150  # one call is still under way with a hundred
    gateway.over.set()


class Exploding(GatewayClient):
    def report(self, *_: object, **__: object) -> tuple[EventResult, ...]:
        raise ZeroDivisionError("a mistake of ours")


def test_the_reporter_survives_any_exception() -> None:
    drops = Drops()
    progress = ProgressReporter(Exploding(Source(), "x"), drops)
    progress.report("http://127.0.0.1:9", event())
    progress.flush()
    assert drops == [(1, "a mistake of ours")]
