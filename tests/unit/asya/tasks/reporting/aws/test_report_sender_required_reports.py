"""Reports that must arrive (`protocol §5`, reports)."""

import msgspec
import pytest

from asya.tasks.reporting.aws.report_sender import ProgressReporter, ReportSender, RequiredReports
from asya.testing.services.direct import MemorySqs
from asya.testing.services.queues import Refusal
from tests.doubles.tasks import event
from tests.unit.asya.tasks.reporting.aws.test_report_sender_progress_reporter import (
    REPORTS,
    URL,
    Drops,
    sender,
    statuses,
)

ENDS = "asya-shop-x-ends"


def reporters(sqs: MemorySqs) -> tuple[RequiredReports, ProgressReporter]:
    shared: ReportSender = sender(sqs)
    progress = ProgressReporter(shared, Drops(), threaded=False)
    return RequiredReports(shared, progress), progress


@pytest.mark.rule("5.two-queues")
def test_ends_and_pauses_go_to_a_queue_of_their_own() -> None:
    sqs = MemorySqs()
    required, progress = reporters(sqs)
    receipts = [required.report(URL, event("a", status)) for status in ("succeeded", "failed", "canceled", "paused")]
    progress.report(URL, event("a", "completed"))
    required.flush()
    assert [each["status"] for each in msgspec.json.decode(sqs.sent[ENDS][0].body)] == [
        "succeeded",
        "failed",
        "canceled",
        "paused",
    ]
    assert all(receipt.problem is None for receipt in receipts)
    assert sqs.requests == [(ENDS, 1)]  # progress alone waits for the end of the batch


@pytest.mark.rule("5.one-message")
def test_a_registration_shares_its_message_with_the_progress_of_the_batch() -> None:
    sqs = MemorySqs()
    required, progress = reporters(sqs)
    receipt = required.report(URL, event("a", "registered"))
    progress.report(URL, event("a", "received"))
    progress.report(URL, event("b", "received"))
    required.flush()
    assert receipt.problem is None
    assert statuses(sqs) == [["registered", "received", "received"]]
    required.flush()
    progress.flush()
    assert sqs.requests == [(REPORTS, 1)]


@pytest.mark.rule("5.must-arrive")
@pytest.mark.parametrize("fault", [Refusal("call"), Refusal(sender_fault=True), Refusal("silence")])
@pytest.mark.parametrize(("status", "queue"), [("succeeded", ENDS), ("registered", REPORTS)])
def test_a_report_that_sqs_does_not_accept_keeps_its_message(fault: Refusal, status: str, queue: str) -> None:
    sqs = MemorySqs(refuse_always={queue: fault})
    required, _ = reporters(sqs)
    receipt = required.report(URL, event("a", status))  # type: ignore[arg-type]
    assert receipt.problem is not None
    required.flush()
    assert receipt.problem is not None
    del sqs.refuse_always[queue]
    again = required.report(URL, event("a", status))  # type: ignore[arg-type]
    required.flush()
    assert again.problem is None
