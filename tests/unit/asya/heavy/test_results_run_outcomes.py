"""The word of a run, and its envelopes by outcome (`protocol §13.operations.runs.word`)."""

from dataclasses import replace

import pytest

from asya.capabilities.operations.aws.job_runs import emr_state, run_word
from asya.function.hop import Delivery, DeliveryKind, Diversion
from asya.heavy.aws.run_records import Resolution, RoutingCursor, RunRecord
from asya.heavy.results import Outcome, RunOutcomes, outcome_of, outcome_of_diversion
from asya.protocol.job_runs import Place, ResultHead
from asya.protocol.states import JobEnd

RECORD = RunRecord("clean", 1, "started", "2026-01-01T00:00:00Z", job_run_id="00a", members=20, job_state="RUNNING")


@pytest.mark.rule("13.operations.runs.word")
@pytest.mark.parametrize(
    ("outcomes", "word", "text"),
    [
        (RunOutcomes(succeeded=20), "succeeded", "20 succeeded"),
        (RunOutcomes(failed=20), "failed", "20 failed"),
        (RunOutcomes(succeeded=19, failed=1), "partly failed", "19 succeeded, 1 failed"),
        (RunOutcomes(failed=1, retried=3, again=16), "partly failed", "1 failed, 3 retried, 16 again"),
        (RunOutcomes(retried=20), "retried", "20 retried"),
        (RunOutcomes(succeeded=12, retried=8), "partly retried", "12 succeeded, 8 retried"),
        (RunOutcomes(again=20), "runs again", "20 again"),
        (RunOutcomes(succeeded=12, again=8), "partly again", "12 succeeded, 8 again"),
        (RunOutcomes(canceled=20), "canceled", "20 canceled"),
        (RunOutcomes(succeeded=19, canceled=1), "partly canceled", "19 succeeded, 1 canceled"),
    ],
)
def test_the_word_of_a_closed_run_is_that_of_its_envelopes_and_not_that_of_emr(
    outcomes: RunOutcomes, word: str, text: str
) -> None:
    for state in ("SUCCESS", "FAILED"):
        closed = replace(RECORD, state="closed", job_state=state, cursor=RoutingCursor(outcomes=outcomes))
        assert (run_word(closed), emr_state(closed)) == (word, state)
        assert closed.outcomes is not None
        assert closed.outcomes.text == text


@pytest.mark.rule("13.operations.runs.word")
@pytest.mark.parametrize(
    ("record", "word", "at_emr"),
    [
        (replace(RECORD, state="formed", job_run_id=None, job_state=""), "formed", ""),
        (replace(RECORD, job_run_id="", job_state=""), "refused", ""),
        (replace(RECORD, job_state=""), "submitted", "SUBMITTED"),
        (RECORD, "running", "RUNNING"),
        (replace(RECORD, resolution=Resolution("commit")), "routing", "RUNNING"),
        (replace(RECORD, state="closed", job_state="SUCCESS"), "ended", "SUCCESS"),
        (
            replace(RECORD, state="closed", cursor=RoutingCursor(outcomes=RunOutcomes(succeeded=3))),
            "ended",
            "RUNNING",
        ),
        (replace(RECORD, place=Place(7, 3), lingers=True), "running", "RUNNING, batch 3 of run 7"),
        (replace(RECORD, lingers=True), "running", "RUNNING, resident"),
    ],
    ids=["formed", "refused", "submitted", "running", "routing", "older version", "half counted", "batch", "resident"],
)
def test_the_word_of_a_run_says_how_far_it_is(record: RunRecord, word: str, at_emr: str) -> None:
    assert (run_word(record), emr_state(record)) == (word, at_emr)


@pytest.mark.parametrize(
    ("end", "kind", "outcome"),
    [
        ("done", "next", "succeeded"),
        ("done", "sink", "succeeded"),
        ("done", "sump", "failed"),
        ("done", None, "succeeded"),
        ("failed", "retry", "retried"),
        ("failed", "sink", "failed"),
        ("failed", "next", "failed"),
        ("timed_out", "retry", "retried"),
        ("crashed", "sump", "failed"),
    ],
)
def test_the_first_delivery_of_a_result_decides(end: JobEnd, kind: DeliveryKind | None, outcome: Outcome) -> None:
    delivery = None if kind is None else Delivery("a", b"", kind)
    assert outcome_of(ResultHead(index=0, end=end), delivery) == outcome


@pytest.mark.parametrize(("why", "outcome"), [("Canceled", "canceled"), ("SlaExpired", "failed")])
def test_an_envelope_that_ended_meanwhile_is_canceled_or_failed(why: str, outcome: Outcome) -> None:
    assert outcome_of_diversion(Diversion("a", (), why)) == outcome
