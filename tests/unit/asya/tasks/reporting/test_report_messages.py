"""protocol §5: reports in the messages of the report queues."""

import msgspec
import pytest
from msgspec import Raw

from asya.function.sqs import is_sendable
from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo
from asya.protocol.events import EVENT_LIMIT, TaskEvent
from asya.tasks.reporting.aws.report_sender import QueuedReport, ReportSender
from asya.tasks.reporting.report_messages import body, encoded, messages
from asya.testing.services.direct import MemorySqs
from tests.doubles.tasks import event

URL = "https://gateway.example"


def packed(*events: TaskEvent, gateway_url: str | None = None) -> list[list[QueuedReport]]:
    return list(messages(QueuedReport(encoded(each, gateway_url)) for each in events))


@pytest.mark.rule("5.one-message")
def test_a_message_has_64_kib_at_most_and_a_larger_report_goes_alone() -> None:
    small = [event(f"env-{number}", "received", actor="x" * 1000) for number in range(200)]
    large = event("large", "succeeded", result=Raw(b'"' + b"y" * 65_000 + b'"'))
    groups = packed(*small, large, *small)
    bodies = [body(group) for group in groups]
    assert [each["id"] for text in bodies for each in msgspec.json.decode(text)] == [
        each.id for each in (*small, large, *small)
    ]
    assert max(len(text) for text in bodies if b"large" not in text) <= 64 * 1024
    assert [len(group) for group in groups if b"large" in body(group)] == [1]
    assert len(groups) <= 2 * (200 * 1300 // (64 * 1024) + 1) + 1


@pytest.mark.rule("5.one-message")
@pytest.mark.parametrize(("size", "count"), [(65_536, 1), (65_537, 2)])
def test_reports_share_a_message_of_65536_bytes_and_no_larger_one(size: int, count: int) -> None:
    first, shortest = event("a", "received"), event("b", "received", actor="x")
    missing = size - len(body(QueuedReport(encoded(each, None)) for each in (first, shortest)))
    groups = packed(first, event("b", "received", actor="x" * (1 + missing)))
    assert len(groups) == count
    assert len(body(report for group in groups for report in group)) == size


@pytest.mark.rule("5.one-message")
def test_requests_respect_the_limits_of_sqs() -> None:
    sqs = MemorySqs()
    sender = ReportSender(sqs, lambda actor: f"https://sqs/1/asya-shop-{actor}", URL)  # type: ignore[arg-type]
    large = Raw(b'"' + b"y" * 60_000 + b'"')
    sender.send([sender.queued(URL, event(f"env-{number}", "succeeded", result=large)) for number in range(25)])
    assert sum(count for _, count in sqs.requests) == 25
    assert len(sqs.requests) == 3


@pytest.mark.rule("5.one-message")
@pytest.mark.parametrize("text", ["\ufffe", "\uffff", "a\ufffeb\uffffc\u00e9", "\U0001f600"])
def test_a_text_that_sqs_refuses_is_escaped(text: str) -> None:
    result = Raw(b'"' + text.encode() + b'"')
    report = event(text, "failed", result=result, error=ErrorInfo(type="E", message=text))
    ((only,),) = packed(report)
    sent = body([only])
    assert is_sendable(sent)
    (back,) = msgspec.json.decode(sent, type=list[TaskEvent])
    assert (back.id, back.data.error) == (text, report.data.error)
    assert msgspec.json.decode(back.data.result) == text  # type: ignore[arg-type]


@pytest.mark.rule("5.must-arrive")
def test_an_end_that_is_too_large_for_a_report_arrives_without_its_largest_members() -> None:
    """Senders set the route and the error of their envelopes; an end that nobody can send would never end its task."""
    route = Route(tuple(f"actor-{number:05d}" for number in range(40_000)), "", ())
    error = ErrorInfo(type="E" * 5_000, message="m" * 500_000, mro=("A",) * 1000, traceback="t" * 500_000)
    ((only,),) = packed(
        msgspec.structs.replace(
            event("a", "failed", error=error), data=event("a", "failed", error=error, route=route).data
        )
    )
    assert len(only.report.text) <= EVENT_LIMIT
    back = msgspec.json.decode(only.report.text, type=TaskEvent)
    assert (back.status, back.data.route) == ("failed", None)
    assert back.data.error is not None


@pytest.mark.rule("3.gateway-url.foreign")
def test_reports_for_a_foreign_gateway_name_it_and_share_no_message_with_others() -> None:
    sqs = MemorySqs()
    sender = ReportSender(sqs, lambda actor: f"https://sqs/1/asya-shop-{actor}", URL)  # type: ignore[arg-type]
    foreign = "https://other.example/base"
    reports = [sender.queued(url, event("a", "received")) for url in (URL, foreign, URL)]
    sender.send(reports)
    bodies = [msgspec.json.decode(sent.body) for sent in sqs.sent["asya-shop-x-reports"]]
    assert [[each.get("gateway_url") for each in message] for message in bodies] == [[None, None], [foreign]]
