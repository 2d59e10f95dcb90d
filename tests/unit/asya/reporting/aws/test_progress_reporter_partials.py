"""Partials of handlers on their way to the gateway (`protocol §7`, FLY)."""

import time
from collections.abc import Iterator

import pytest
from botocore.credentials import Credentials
from msgspec import Raw

from asya.protocol.events import PartialEvent
from asya.reporting.aws.gateway_client import GatewayClient
from asya.reporting.aws.progress_reporter import PARTIAL_BUFFER_LIMIT, PARTIAL_LINGER_SECONDS, ProgressReporter
from tests.doubles.gateway import FakeGateway, running_gateway
from tests.doubles.tasks import event


class Source:
    def get_credentials(self) -> Credentials:
        return Credentials("AKIAEXAMPLE", "secret")


class Drops(list[tuple[int, str]]):
    def __call__(self, count: int, problem: str) -> None:
        self.append((count, problem))


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running_gateway() as running:
        yield running


@pytest.fixture
def client() -> GatewayClient:
    return GatewayClient(Source(), "eu-west-1")


def fly(sequence: int) -> PartialEvent:
    return PartialEvent(id="env-1", at="2026-11-20T09:00:00Z", data=Raw(b'{"n":%d}' % sequence), sequence=sequence)


@pytest.mark.rule("7.FLY.soon")
def test_protocol_7_partials_leave_soon_and_in_order(
    gateway: FakeGateway, client: GatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a flush, other reports would wait for an hour. All leave with the partials, after their shorter wait."""
    monkeypatch.setattr("asya.reporting.aws.progress_reporter.LINGER_SECONDS", 3600.0)
    assert PARTIAL_LINGER_SECONDS < 1.0
    progress = ProgressReporter(client, Drops())
    progress.report(gateway.url, event("env-1", "received"))
    for number in range(20):
        progress.report(gateway.url, fly(number))
    late = time.monotonic() + 60
    while len(gateway.partials) < 20:
        assert time.monotonic() < late, "it does not leave by itself"
        time.sleep(0.01)
    assert [partial.sequence for partial in gateway.partials] == list(range(20))
    assert gateway.reported("env-1") == ["received"]  # what came before leaves before


@pytest.mark.rule("7.FLY.soon")
def test_partials_beyond_the_buffer_are_dropped_and_counted(gateway: FakeGateway, client: GatewayClient) -> None:
    drops = Drops()
    progress = ProgressReporter(client, drops, threaded=False)
    for number in range(PARTIAL_BUFFER_LIMIT + 3):
        progress.report(gateway.url, fly(number))
    progress.report(gateway.url, event("env-1", "completed"))
    progress.flush()
    assert [count for count, _ in drops] == [3]
    assert gateway.reported("env-1") == ["completed"]
    assert len(gateway.partials) == PARTIAL_BUFFER_LIMIT
