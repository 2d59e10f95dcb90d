"""protocol §15: the spans of heavy actors."""

from collections.abc import Iterator

import pytest

from tests.doubles.heavy import HeavyWorld, done_result, heavy_world
from tests.doubles.span_log import SpanLog, log_spans

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> SpanLog:
    return log_spans(monkeypatch)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, log: SpanLog) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        heavy.send("a", {"n": 1}, headers={"traceparent": f"00-{TRACE}-{CALLER}-01"})
        heavy.enqueue()
        heavy.dispatch()
        yield heavy


@pytest.mark.rule("15.spans")
def test_protocol_15_a_job_run_is_a_span_below_that_of_the_hop(world: HeavyWorld, log: SpanLog) -> None:
    world.write_results(1, [done_result(0, {"n": 2})])
    world.set_state("run1", "SUCCESS")
    world.complete()
    assert log.parents() == {"receive clean": "outside", "run clean": "receive clean"}
    received, ran = log.named("receive clean"), log.named("run clean")
    assert {received.context.trace_id, ran.context.trace_id} == {TRACE}
    assert (ran.service, ran.error) == ("clean", None)
    assert ran.attributes["asya.run_id"] == world.emr.runs["run1"]["name"]
    assert ran.started_at >= received.started_at
    # The next hop continues the span of this one, whichever run delivered it.
    (onward,) = world.bodies("publish")
    assert onward["headers"]["traceparent"] == str(received.context)


def test_a_failed_run_is_a_span_with_its_error(world: HeavyWorld, log: SpanLog) -> None:
    world.write_results(1, [], end=None, at_work=0)
    world.set_state("run1", "FAILED", details="exit code 1")
    world.complete()
    assert log.named("run clean").error == "SparkJobFailed"
