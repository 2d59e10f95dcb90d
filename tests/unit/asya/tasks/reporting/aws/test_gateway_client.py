"""The client of the gateway over a real socket: signatures, time limits, one result per item (`protocol §5`, `§13`)."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import NoCredentialsError

from asya.protocol.events import EventData, EventResult, TaskEvent
from asya.protocol.times import format_time
from asya.tasks.reporting.aws.gateway_client import GatewayClient, GatewayError, is_final
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
    assert "SignedHeaders=content-type;host;" in gateway.headers["authorization"]
    assert gateway.headers["content-type"] == "application/json"
    assert gateway.headers["x-amz-security-token"] == "token"


def test_many_or_large_events_take_several_calls(gateway: FakeGateway, client: GatewayClient) -> None:
    events = [event(f"env-{n}", text="x" * 1000) for n in range(450)]
    assert len(client.report(gateway.url, events)) == 450
    assert [one.id for one in gateway.events] == [one.id for one in events]
    assert client.report(gateway.url, []) == ()


@pytest.mark.parametrize("status", [403, 429, 500, 503, 302])
def test_other_answers_are_errors_to_try_again(gateway: FakeGateway, client: GatewayClient, status: int) -> None:
    gateway.status = status
    with pytest.raises(GatewayError, match=str(status)):
        client.report(gateway.url, [event()])


@pytest.mark.parametrize(
    "answer", [b"", b"hello", b"{}", b'{"items":[]}', b'{"items":[{"id":"a"}]}', b'{"items":[5,6]}']
)
def test_malformed_answers_are_errors(gateway: FakeGateway, client: GatewayClient, answer: bytes) -> None:
    gateway.answer = answer
    with pytest.raises(GatewayError, match="answer"):
        client.report(gateway.url, [event()])


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


@pytest.mark.rule("3.gateway-url.foreign")
@pytest.mark.parametrize(
    ("status", "settled"), [(204, True), (400, True), (404, True), (403, False), (429, False), (500, False)]
)
def test_protocol_5_404_and_400_count_as_accepted(status: int, settled: bool) -> None:
    assert is_final(EventResult(id="a", status=status)) is settled
