"""protocol §11: the copies that x-sink sends, and the status of an end."""

from datetime import timedelta
from typing import Any

import pytest

from asya.ends import ending
from asya.protocol import ids
from asya.protocol.codec import decode
from asya.protocol.envelope import Envelope
from asya.protocol.events import COUNT_LIMIT
from asya.protocol.mesh_table import Sink
from tests.doubles.envelopes import NOW, SENT_AT, hop, message, status

HOOKED = Sink(hooks=("notify", "archive"))
ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}
ENDED_AT = status()["updated_at"]


def ended(phase: str = "succeeded", **members: Any) -> Envelope:
    error = {"error": ERROR} if phase == "failed" else {}
    return decode(message(**({"status": status(phase=phase, **error)} | members)))


def targets(envelope: Envelope, sink: Sink = HOOKED) -> list[str]:
    return [delivery.actor for delivery in ending.copies(envelope, sink)]


@pytest.mark.rule("11.pause.ends")
def test_a_failure_lies_at_its_hop_and_beyond_every_pause_if_that_is_unknown() -> None:
    at_hop = status(phase="failed", reason="ParseError", error=ERROR)
    assert ending.end_position(ended("failed", status=at_hop)) == 1
    nowhere = {"prev": [], "curr": "x-sump", "next": []}
    for reason in ("ParseError", "RuntimeError"):
        unknown = ended("failed", status=status(phase="failed", reason=reason, error=ERROR), route=nowhere)
        assert ending.end_position(unknown) == COUNT_LIMIT


@pytest.mark.rule("11.hooks")
def test_a_success_goes_to_the_hooks_and_a_failure_on_to_x_sump_after_them() -> None:
    assert targets(ended()) == ["notify", "archive"]
    assert targets(ended("failed")) == ["notify", "archive", "x-sump"]
    assert targets(ended("failed"), Sink()) == ["x-sump"]


@pytest.mark.parametrize("phase", ["canceled", "paused"])
def test_canceled_and_paused_go_nowhere(phase: str) -> None:
    assert targets(ended(phase)) == []


@pytest.mark.rule("11.hooks")
def test_children_trigger_hooks_only_if_asked_for() -> None:
    child = ended(parent_id="env-0")
    assert targets(child) == []
    assert targets(child, Sink(hooks=("notify",), hooks_for_children=True)) == ["notify"]


@pytest.mark.rule("3.hook", "11.hooks")
@pytest.mark.parametrize("for_children", [False, True])
def test_a_hooks_own_run_triggers_none_and_ends_in_x_sump_if_it_failed(for_children: bool) -> None:
    sink = Sink(hooks=("notify",), hooks_for_children=for_children)
    headers = {"x-asya-hook": "notify", "x-asya-mesh-status": "off"}
    assert targets(ended(parent_id="env-0", headers=headers), sink) == []
    assert targets(ended("failed", parent_id="env-0", headers=headers), sink) == ["x-sump"]
    assert ending.is_hook_copy(ended(headers=headers))


@pytest.mark.parametrize(
    "route", [{"prev": ["x-index"], "curr": "", "next": []}, {"prev": [], "curr": "x-index", "next": []}]
)
def test_users_hooks_do_not_hear_of_the_meshs_own_nightly_job(route: dict[str, Any]) -> None:
    assert targets(ended(route=route)) == []
    assert targets(ended("failed", route=route)) == ["x-sump"]


@pytest.mark.rule("11.hooks")
def test_each_hook_gets_a_copy_of_its_own_with_reporting_off() -> None:
    headers = {"tenant": "acme", "x-asya-first-attempt": "2026-11-20T11:00:00Z", "x-asya-fan-in": {"set_id": "s"}}
    late = status(phase="failed", reason="Timeout", error=ERROR, deadline_at="2020-01-01T00:00:00Z")
    envelope = ended(headers=headers, status=late)
    notify, archive, _ = ending.copies(envelope, HOOKED)
    copy = decode(notify.body)
    assert copy.id == ids.hook_id("env-1", 0, "notify") != decode(archive.body).id
    assert copy.parent_id == "env-1"
    assert (copy.route.prev, copy.route.curr, copy.route.next) == ((), "notify", ())
    assert copy.is_stealth
    assert set(copy.headers) == {"tenant", "x-asya-hook", "x-asya-mesh-status"}
    assert bytes(copy.payload) == bytes(envelope.payload)
    assert ending.copies(envelope, HOOKED)[0] == notify


def test_a_hook_can_read_the_error_and_is_not_hurried_by_the_deadline_that_passed() -> None:
    late = status(phase="failed", reason="Timeout", error=ERROR, deadline_at="2020-01-01T00:00:00Z")
    copy = ending.copies(ended(status=late), Sink(hooks=("post",)))[0]
    at_hook = hop(copy.body, actor="post")
    assert at_hook.status.error is not None
    assert at_hook.status.error.type == "ValueError"
    assert at_hook.deadline is None
    assert not at_hook.needs_registration
    assert at_hook.status.created_at == ENDED_AT


@pytest.mark.parametrize("phase", ["succeeded", "failed", "canceled", "paused"])
def test_an_end_is_left_as_it_is(phase: str) -> None:
    envelope = ended(phase)
    assert ending.with_end_status(envelope, sent_at=SENT_AT, now=NOW) is envelope


@pytest.mark.parametrize("was", [None, {"phase": "pending"}, status(phase="processing", attempt=3)])
def test_what_somebody_sent_straight_to_x_sink_ended_well_there(was: Any) -> None:
    envelope = ending.with_end_status(decode(message(status=was)), sent_at=SENT_AT, now=NOW)
    assert envelope.status is not None
    assert (envelope.status.phase, envelope.status.reason, envelope.status.actor) == (
        "succeeded",
        "Completed",
        "x-sink",
    )
    assert envelope.status.created_at in ("2026-11-20T11:59:59.000000Z", status()["created_at"])


@pytest.mark.rule("11.sink.claimed-at")
@pytest.mark.parametrize(
    ("claimed_ago", "reported_ago"),
    [
        (None, timedelta()),
        (timedelta(), timedelta()),
        (timedelta(days=2, hours=23), timedelta(days=2, hours=23)),
        (timedelta(days=20), timedelta(days=3)),
        (-timedelta(seconds=5), -timedelta(seconds=5)),
    ],
)
def test_a_report_has_the_time_of_its_claim_up_to_three_days_back(
    claimed_ago: timedelta | None, reported_ago: timedelta
) -> None:
    """The report may wait for 28 days, and times over 31 days old are refused (protocol §5.report-times)."""
    claimed_at = None if claimed_ago is None else NOW - claimed_ago
    assert ending.report_time(claimed_at, NOW) == NOW - reported_ago
