"""Planted mistakes about callbacks, the ends of pauses, cancellations, claims of ids and the index of results."""

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from asya.capabilities.pauses import callback_tokens, resuming
from asya.capabilities.pauses.lambdas import sweep
from asya.ends.aws import results
from asya.ends.aws.results import ResultIndex
from asya.function.aws.receipt import Receipt
from asya.gateway import report_messages
from asya.gateway.callbacks import page, routes
from asya.gateway.lambdas import report_queues, task_sweeps
from asya.gateway.routes.resume import ResumeRoutes
from asya.protocol.pause import TaskPause
from asya.senders import entry
from asya.senders.aws.entry_items import OwnerClaims
from asya.tasks import sweeps
from asya.tasks.aws.index import TaskIndex
from asya.tasks.reporting import report_messages as reported
from asya.tasks.reporting.aws import report_sender
from tests.simulation.mistake import everywhere, found_by, substitute, wrap

_ROUTES = "unit/asya/gateway/callbacks/test_routes.py"
_INSTANT = timedelta(microseconds=1)


def _read_as_of(span: timedelta) -> Any:
    def read(real: Any, key: bytes, token: str, now: datetime) -> Any:
        return real(key, token, now - span)

    return read


def _end_any_pause(real: Any, self: ResumeRoutes, task_id: str, answers: Any, now: datetime, check: Any) -> Any:
    return real(self, task_id, answers, now, lambda _: None)


def _from_the_creation(real: Any, record: Any, limit: timedelta, *, now: datetime) -> Any:
    if record.pause is None:
        return real(record, limit, now=now)
    changed = real(replace(record, pause=replace(record.pause, since=record.created_at)), limit, now=now)
    return changed if changed.status == "failed" else record


def _a_moment_late(real: Any, record: Any, limit: timedelta, *, now: datetime) -> Any:
    return real(record, limit, now=now - _INSTANT)


def _first_page(real: Any, self: TaskIndex, *args: Any) -> Any:
    page = real(self, *args)
    return type(page)(page.keys, None)


_roots: set[str] = set()


def _resolved_row(real: Any, self: ResultIndex, row: Any) -> Receipt:
    real(self, row)
    receipt = Receipt("index row")
    receipt.resolve()
    return receipt


def _one_object_a_day(real: Any, day: str, rows: Any) -> Any:
    _, body = real(day, rows)
    return f"index/recent/dt={day}/rows.jsonl", body


def _claim_of_anybody(real: Any, self: OwnerClaims, *args: Any) -> bool:
    real(self, *args)
    return True


def _claim_from_now(real: Any, envelope: Any, *args: Any) -> Any:
    return real(replace(envelope, status=None), *args)


def _keep_all_headers(real: Any, members: Any) -> Any:
    return dict(members)


def _one_message(real: Any, reports: Any) -> Any:
    waiting = list(reports)
    return iter([waiting] if waiting else [])


def _without_reread(real: Any, mark: Any, until: datetime) -> Any:
    minutes = list(real(mark, until))
    return iter([minute for minute in minutes if mark is None or minute > mark])


def _at_any_time(real: Any, text: str) -> Any:
    return real(text)


MISTAKES = (
    found_by(
        "takes the token of a callback after its expiry",
        everywhere((callback_tokens, routes), "read", _read_as_of(timedelta(days=30))),
        "unit/asya/capabilities/pauses/test_callback_tokens.py::test_it_expires",
    ),
    found_by(
        "takes the token of a callback at its expiry",
        everywhere((callback_tokens, routes), "read", _read_as_of(_INSTANT)),
        "unit/asya/capabilities/pauses/test_callback_tokens.py::test_it_expires",
    ),
    found_by(
        "answers a later pause with the token of an earlier one",
        wrap(ResumeRoutes, "end_pause", _end_any_pause),
        f"{_ROUTES}::test_a_link_answers_no_pause_that_came_meanwhile",
    ),
    found_by(
        "takes tokens of another mesh",
        substitute(callback_tokens, "key_label", lambda _: b"asya callbacks"),
        "unit/asya/capabilities/pauses/test_callback_tokens.py::test_another_key_has_other_tokens",
    ),
    found_by(
        "shows the link of a callback in lists and streams",
        substitute(TaskPause, "shortened", lambda pause: pause),
        f"{_ROUTES}::test_lists_and_streams_leave_the_link_out",
    ),
    found_by(
        "reads unticked boxes as no answer",
        substitute(page, "has_ticks_to_remove", lambda _: False),
        "unit/asya/gateway/callbacks/test_page_form.py::test_boxes_without_a_tick_are_no_default",
    ),
    found_by(
        "ends a pause by the age of its task",
        everywhere((resuming, sweep), "expire_pause", _from_the_creation),
        "unit/asya/capabilities/pauses/test_resuming_expiry.py::test_it_fails_with_its_envelope_for_x_sink",
    ),
    found_by(
        "ends a pause a moment late",
        everywhere((resuming, sweep), "expire_pause", _a_moment_late),
        "unit/asya/capabilities/pauses/test_resuming_expiry.py::test_it_fails_with_its_envelope_for_x_sink",
    ),
    found_by(
        "cancels the first page of children",
        wrap(TaskIndex, "children", _first_page),
        "unit/asya/gateway/routes/test_cancel.py::test_children_of_other_times_are_canceled_beyond_a_page",
    ),
    found_by(
        "acknowledges rows of the index that are not written",
        wrap(ResultIndex, "add", _resolved_row),
        "unit/asya/ends/lambdas/test_sink_index.py::test_a_message_stays_until_its_row_is_written",
    ),
    found_by(
        "overwrites the rows of the same day",
        wrap(results, "recent_object", _one_object_a_day),
        "unit/asya/ends/lambdas/test_sink_index.py::test_batches_of_one_day_are_objects_of_their_own",
    ),
    found_by(
        "files all rows under one day",
        substitute(results, "day_of", lambda _: "2026-11-20"),
        "unit/asya/ends/lambdas/test_sink_index.py::test_a_row_is_filed_under_the_day_of_its_end",
    ),
    found_by(
        "lets a sender take the id of another one",
        wrap(OwnerClaims, "claim", _claim_of_anybody),
        "unit/asya/senders/aws/test_entry_items_owner_claims.py::test_the_first_owner_keeps_an_id_and_may_take_it_again",
    ),
    found_by(
        "lets the claim of an id expire before its task",
        wrap(entry, "end_of_claim", _claim_from_now),
        "unit/asya/senders/test_entry.py::test_an_id_is_kept_for_twice_the_life_of_a_record",
    ),
    found_by(
        "lets senders outside set managed headers",
        wrap(entry, "user_headers", _keep_all_headers),
        "unit/asya/senders/test_entry.py::test_an_envelope_enters_without_what_only_the_mesh_writes",
    ),
    found_by(
        "sends reports of two gateways in one message",
        everywhere((reported, report_sender), "messages", _one_message),
        "unit/asya/tasks/reporting/test_report_messages.py::test_reports_for_a_foreign_gateway_name_it_and_share_no_message_with_others",
    ),
    found_by(
        "reads no minute of deadlines again",
        everywhere((sweeps, task_sweeps), "unswept_minutes", _without_reread),
        "unit/asya/tasks/test_sweeps_overdue.py::test_the_last_minutes_are_read_again",
    ),
    found_by(
        "refuses reports that waited for an hour",
        substitute(report_messages, "AGE_LIMIT", timedelta(hours=1)),
        "unit/asya/gateway/lambdas/test_report_queues.py::test_a_report_of_an_incredible_time_is_refused",
    ),
    found_by(
        "lets every sender report ends",
        substitute(report_messages, "is_end", lambda _: False),
        "unit/asya/gateway/lambdas/test_report_queues.py::test_an_end_on_the_queue_of_all_actors_is_refused_alone",
    ),
    found_by(
        "believes any role about the first sender of a report",
        substitute(report_queues.names, "GATEWAY_API", None),
        "unit/asya/gateway/lambdas/test_report_queues.py::test_the_gateway_alone_is_believed_about_the_first_sender",
    ),
    found_by(
        "sends required reports behind progress",
        substitute(report_sender, "queue_of", lambda _: "x-reports"),
        "unit/asya/tasks/reporting/aws/test_report_sender_required_reports.py::test_ends_and_pauses_go_to_a_queue_of_their_own",
    ),
)
