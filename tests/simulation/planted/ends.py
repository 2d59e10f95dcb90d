"""Planted mistakes about ends: claims, result objects and what is reported of them."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.dead_letters.lambdas import dlq
from asya.capabilities.dead_letters.lambdas.dlq import DeadLetterWatch
from asya.capabilities.fan_in.lambdas import fan_in
from asya.ends import ending
from asya.ends.aws.results import EndObjects, Results, StoredEnd
from asya.ends.lambdas import ends, sink, sump
from asya.protocol.envelope import Envelope
from asya.testing.dynamo.tables import MemoryDynamo
from tests.simulation.mistake import Mistake, everywhere, found_by, substitute, wrap
from tests.simulation.planted.replacements import skip_claim


def _claim_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request["Key"]["sk"]["S"] == "claim":
        del request["ConditionExpression"]
    return real(self, **request)


def _write_ignoring_errors(real: Any, self: Results, key: str, *args: Any, **more: Any) -> str:
    try:
        return real(self, key, *args, **more)  # type: ignore[no-any-return]
    except (ClientError, BotoCoreError):
        return self.uri(key)


def _write_unconditionally(self: EndObjects, key: str, envelope: Envelope) -> StoredEnd:
    return StoredEnd(self.results.write_envelope(key, envelope, self.namespace), envelope)


def _write_end_ignoring_errors(real: Any, self: EndObjects, key: str, envelope: Envelope) -> StoredEnd | None:
    try:
        return real(self, key, envelope)  # type: ignore[no-any-return]
    except (ClientError, BotoCoreError):
        return StoredEnd(self.results.uri(key), envelope)


def _put_record_unconditionally(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request["Item"]["sk"]["S"] == "record":
        for name in ("ConditionExpression", "ExpressionAttributeValues"):
            del request[name]
    return real(self, **request)


def _is_reported_unless_canceled(real: Any, envelope: Envelope) -> bool:
    return bool(real(envelope)) and not (envelope.status is not None and envelope.status.phase == "canceled")


MISTAKES = (
    Mistake("claims an end unconditionally", wrap(MemoryDynamo, "update_item", _claim_unconditionally), seed=0),
    Mistake(
        "reports failures in x-sump without claiming them",
        (substitute(sink, "claim_end", skip_claim), substitute(sump, "claim_end", skip_claim)),
        "repeats",
    ),
    Mistake(
        "keeps no copy of refused ends",
        substitute(ends.CrewEnd, "keep_refused", lambda *_: []),
        "repeats",
        seed=4,
    ),
    found_by(
        "reports ends with the time of their report",
        everywhere((ending, dlq, fan_in), "report_time", lambda _, __, now: now),
        "unit/asya/ends/lambdas/test_ends_times.py::test_a_cancellation_between_claim_and_report_loses",
        "unit/asya/ends/lambdas/test_ends_times.py::test_x_sump_reports_a_failure_with_the_time_of_x_sink",
        "unit/asya/capabilities/dead_letters/lambdas/test_dlq_end_times.py::test_a_later_scan_reports_with_the_time_of_the_first_claim",
        "unit/asya/capabilities/fan_in/lambdas/test_fan_in_end_times.py::test_a_redelivery_reports_a_slice_with_the_time_of_its_claim",
    ),
    Mistake("overwrites the object of an end", substitute(EndObjects, "write", _write_unconditionally), "repeats"),
    Mistake(
        "acknowledges without a written result",
        (wrap(Results, "write", _write_ignoring_errors), wrap(EndObjects, "write", _write_end_ignoring_errors)),
        seed=4,
    ),
    Mistake("writes records unconditionally", wrap(MemoryDynamo, "put_item", _put_record_unconditionally), seed=10),
    Mistake("does not report dead letters", substitute(DeadLetterWatch, "scan", lambda *_: None), "poison"),
    Mistake(
        "does not report canceled children",
        wrap(ending, "is_reported", _is_reported_unless_canceled),
        "fault-free",
        seed=11,
    ),
    Mistake("reports stealth envelopes", substitute(Envelope, "is_stealth", property(lambda _: False))),
)
