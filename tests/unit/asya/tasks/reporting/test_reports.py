"""protocol §5, reports, and §13, event data: the reports of a hop and their fields."""

import msgspec
import pytest
from msgspec.structs import replace

from asya.protocol.codec import decode
from asya.protocol.envelope import Route
from asya.protocol.events import INLINE_RESULT_LIMIT
from asya.protocol.times import format_time
from asya.tasks.reporting import reports
from tests.doubles.envelopes import NOW, hop, message, status

ERROR = {"type": "ValueError", "message": "bad", "mro": [], "traceback": ""}


@pytest.mark.rule("5.6")
def test_received_and_processing() -> None:
    start = hop(message(parent_id="env-0", headers={"x-asya-root": "env-r", "x-asya-generation": 2}))
    received, processing = reports.received(start, now=NOW), reports.processing(start, now=NOW)
    for event in (received, processing):
        assert (event.id, event.parent_id, event.root_id) == ("env-1", "env-0", "env-r")
        assert (event.generation, event.position, event.attempt, event.at) == (2, 1, 1, format_time(NOW))
        assert (event.data.actor, event.data.route, event.data.attempt) == ("infer", start.envelope.route, 1)
    assert received.data.message_size_kb == round(start.arrival.size / 1024, 3)


TRACE = "5759e988bd862e3fe1be46a994272793"


@pytest.mark.rule("15.trace-id")
@pytest.mark.parametrize(
    ("share", "flags", "trace_id"),
    [(None, "01", None), (1.0, "01", TRACE), (1.0, "00", None), (0.0, "01", None)],
)
def test_received_names_the_trace_that_x_ray_gets(share: float | None, flags: str, trace_id: str | None) -> None:
    traced = hop(message(headers={"traceparent": f"00-{TRACE}-53995c3f42cd8ad8-{flags}"}))
    traced = replace(traced, mesh=replace(traced.mesh, xray_share=share))
    assert reports.received(traced, now=NOW).data.trace_id == trace_id


@pytest.mark.rule("5.8.completed")
def test_completed_tells_the_route_as_the_handler_left_it() -> None:
    event = reports.completed(hop(), ("rescue",), now=NOW, duration_ms=12.34567)
    assert event.data.route == Route(("prep",), "infer", ("rescue",))
    assert event.data.duration_ms == 12.346
    assert reports.completed(hop(), None, now=NOW, duration_ms=1).data.route == Route(("prep",), "infer", ("post",))


def test_registered_tells_the_owner_and_the_route() -> None:
    start = hop(message(status=...))
    event = reports.registered(start, now=NOW)
    assert event.status == "registered"
    assert event.data.route == start.envelope.route
    assert event.data.owner is None


@pytest.mark.parametrize(("length", "inline"), [(INLINE_RESULT_LIMIT - 2, True), (INLINE_RESULT_LIMIT - 1, False)])
def test_a_result_is_inline_up_to_64_kib(length: int, inline: bool) -> None:
    envelope = decode(message(payload="x" * length, status=status(phase="succeeded", reason="Completed")))
    event = reports.terminal(envelope, at=NOW, result_uri="s3://b/k")
    assert event.status == "succeeded"
    assert (event.data.result is not msgspec.UNSET) is inline
    assert event.data.result_uri == "s3://b/k"
    assert event.data.error is None
    assert event.data.reason is None


def test_an_end_without_a_status_is_a_failure_without_a_reason() -> None:
    event = reports.terminal(decode(message(status=None)), at=NOW)
    assert (event.status, event.attempt, event.data.actor, event.data.reason) == ("failed", 1, "", None)
    assert (event.data.error, event.data.result, event.data.attempt) == (None, msgspec.UNSET, None)


def test_a_failure_tells_error_reason_and_actor_and_no_result() -> None:
    envelope = decode(message(status=status(phase="failed", reason="PolicyExhausted", attempt=3, error=ERROR)))
    event = reports.terminal(envelope, at=NOW)
    assert (event.status, event.attempt, event.position) == ("failed", 3, 1)
    assert event.data.error is not None
    assert (event.data.error.type, event.data.reason, event.data.actor) == ("ValueError", "PolicyExhausted", "infer")
    assert event.data.result is msgspec.UNSET
