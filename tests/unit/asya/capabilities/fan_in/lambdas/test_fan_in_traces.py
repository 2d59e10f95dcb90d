"""protocol §15: a fan-out and its fan-in are one trace."""

import json

import pytest

from tests.doubles.fan_in_sets import Start, numbers
from tests.doubles.span_log import log_spans

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.rule("15.spans")
def test_protocol_15_the_slices_and_the_merge_are_one_trace(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_spans(monkeypatch)
    mesh = start()
    envelope = {
        "id": "env-1",
        "route": {"prev": [], "curr": "split", "next": ["x-fan-in", "post"]},
        "headers": {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
        "payload": numbers(2),
    }
    mesh.send("split", json.dumps(envelope))
    mesh.run()
    assert {span.context.trace_id for span in log.spans} == {TRACE}
    # Two slices and the origin reach the fan-in actor; the merged envelope goes on with the trace of the origin.
    assert [span.name for span in log.spans].count("process x-fan-in") == 3
    parents = log.parents()
    assert (parents["process split"], parents["process score"]) == ("outside", "process split")
    assert parents["process post"] == "process x-fan-in"
    assert "outside" not in {parent for name, parent in parents.items() if name != "process split"}
