"""Progress and partials on their way to the report queue (`protocol §5`, reports; `§7`, FLY)."""

import threading
from types import SimpleNamespace

import msgspec
import pytest
from msgspec import Raw

from asya.protocol.events import PartialEvent
from asya.tasks.reporting.aws.report_sender import (
    PARTIAL_BUFFER_LIMIT,
    PARTIAL_LINGER_SECONDS,
    ProgressReporter,
    ReportSender,
)
from asya.testing.services.direct import MemorySqs
from asya.testing.services.queues import Refusal
from tests.doubles.tasks import event

URL = "https://gateway.example"
REPORTS = "asya-shop-x-reports"


class Drops(list[tuple[int, str]]):
    def __call__(self, count: int, problem: str) -> None:
        self.append((count, problem))


def sender(sqs: MemorySqs) -> ReportSender:
    return ReportSender(sqs, lambda actor: f"https://sqs/123/asya-shop-{actor}", URL)  # type: ignore[arg-type]


def statuses(sqs: MemorySqs) -> list[list[str]]:
    """The reports of each message: their statuses, or `fly` with the sequence."""
    messages = [msgspec.json.decode(sent.body) for sent in sqs.sent[REPORTS]]
    return [[each.get("status") or f"fly {each['sequence']}" for each in message] for message in messages]


def fly(sequence: int) -> PartialEvent:
    return PartialEvent(id="env-1", at="2026-11-20T09:00:00Z", data=Raw(b'{"n":%d}' % sequence), sequence=sequence)


@pytest.mark.rule("5.one-message")
def test_the_reports_of_a_batch_are_one_message() -> None:
    sqs = MemorySqs()
    progress = ProgressReporter(sender(sqs), Drops(), threaded=False)
    for number in range(10):
        for status in ("received", "processing", "completed"):
            progress.report(URL, event(f"env-{number}", status))
    progress.flush()
    assert sqs.requests == [(REPORTS, 1)]
    assert [len(each) for each in statuses(sqs)] == [30]


@pytest.mark.rule("5.slow-handler")
def test_reports_leave_by_themselves_while_a_handler_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya.tasks.reporting.aws.report_sender.LINGER_SECONDS", 0.01)
    sqs = MemorySqs()
    progress = ProgressReporter(sender(sqs), Drops())
    progress.report(URL, event("env-1", "received"))
    progress.report(URL, event("env-1", "processing"))
    assert sqs.wait_until_sent(REPORTS)
    # A process that ends waits for no further reports.
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "progress-reporter")
    progress.flush()
    assert [status for each in statuses(sqs) for status in each] == ["received", "processing"]


@pytest.mark.rule("5.slow-handler")
@pytest.mark.parametrize("is_required", [False, True])
def test_reports_leave_by_themselves_after_one_second(monkeypatch: pytest.MonkeyPatch, is_required: bool) -> None:
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(
        "asya.tasks.reporting.aws.report_sender.time", SimpleNamespace(monotonic=lambda: float(clock.seconds))
    )
    sqs = MemorySqs()
    progress = ProgressReporter(sender(sqs), Drops())
    send = progress.require if is_required else progress.report
    send(URL, event("env-1", "registered" if is_required else "received"))
    clock.seconds = 100.999
    progress.report(URL, event("env-1", "processing"))  # wakes the thread, and leaves with the first report
    assert not sqs.wait_until_sent(REPORTS, seconds=0.1)
    clock.seconds = 101.0
    assert sqs.wait_until_sent(REPORTS)
    progress.flush()
    assert [len(each) for each in statuses(sqs)] == [2]


@pytest.mark.rule("7.FLY.soon")
def test_protocol_7_partials_leave_soon_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a flush, other reports would wait for an hour. All leave with the partials, after their shorter wait."""
    monkeypatch.setattr("asya.tasks.reporting.aws.report_sender.LINGER_SECONDS", 3600.0)
    assert PARTIAL_LINGER_SECONDS <= 0.2
    sqs = MemorySqs()
    progress = ProgressReporter(sender(sqs), Drops())
    progress.report(URL, event("env-1", "received"))
    for number in range(20):
        progress.report(URL, fly(number))
    assert sqs.wait_until_sent(REPORTS)
    assert statuses(sqs)[0][:2] == ["received", "fly 0"]  # what came before leaves before
    progress.flush()
    assert [status for each in statuses(sqs) for status in each][1:] == [f"fly {number}" for number in range(20)]


@pytest.mark.rule("7.FLY.soon")
@pytest.mark.slow
def test_partials_beyond_the_buffer_are_dropped_and_counted() -> None:
    sqs, drops = MemorySqs(), Drops()
    progress = ProgressReporter(sender(sqs), drops, threaded=False)
    for number in range(PARTIAL_BUFFER_LIMIT + 3):
        progress.report(URL, fly(number))
    progress.report(URL, event("env-1", "completed"))
    progress.flush()
    assert [count for count, _ in drops] == [3]
    arrived = [status for each in statuses(sqs) for status in each]
    assert (len(arrived), arrived[-1]) == (PARTIAL_BUFFER_LIMIT + 1, "completed")


@pytest.mark.rule("5.progress")
@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("fault", [Refusal("call"), Refusal(sender_fault=True), Refusal("silence")])
def test_progress_that_sqs_refuses_is_dropped_and_counted(fault: Refusal, threaded: bool) -> None:
    sqs, drops = MemorySqs(refuse_always={REPORTS: fault}), Drops()
    progress = ProgressReporter(sender(sqs), drops, threaded=threaded)
    progress.report(URL, event("env-1", "received"))
    receipt = progress.require(URL, event("env-2", "registered"))
    progress.flush()
    assert [count for count, _ in drops] == [1]
    assert receipt.problem is not None
    del sqs.refuse_always[REPORTS]
    progress.report(URL, event("env-1", "received"))  # the reporter goes on
    progress.flush()
    assert statuses(sqs) == [["received"]]


@pytest.mark.rule("5.progress")
def test_progress_never_blocks_longer_than_it_may() -> None:
    hung, over = threading.Event(), threading.Event()

    class Hanging(MemorySqs):
        def send_message_batch(self, **more: object) -> dict[str, object]:
            hung.set()
            over.wait(30)
            return {}

    drops = Drops()
    progress = ProgressReporter(sender(Hanging()), drops)
    progress.report(URL, event("env-1", "received"))
    progress.report(URL, fly(0))
    assert hung.wait(30)
    progress.report(URL, event("env-1", "completed"))
    receipt = progress.require(URL, event("env-2", "registered"))
    progress.flush(seconds=0.01)
    assert [count for count, _ in drops] == [1]
    assert receipt.problem is not None
    over.set()
