"""The trace context of envelopes."""

import pytest
from msgspec import Raw

from asya.protocol.tracing import TraceContext, hop_context, hop_header, trace_context

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT, SPAN = "b7ad6b7169203331", "00f067aa0ba902b7"


@pytest.mark.rule("3.trace")
def test_protocol_3_one_trace_from_hop_to_hop() -> None:
    received = trace_context(Raw(f'"00-{TRACE}-{PARENT}-00"'.encode()))
    assert received == TraceContext(TRACE, PARENT, "00")
    assert str(hop_context(received, "env-1", SPAN)) == f"00-{TRACE}-{SPAN}-00"
    for context in (received, None):
        assert trace_context(hop_header(context, "env-1", SPAN)) == hop_context(context, "env-1", SPAN)


@pytest.mark.rule("3.trace")
@pytest.mark.parametrize("received", [b"5", b'"junk"', f'"00-{"0" * 32}-{PARENT}-01"'.encode(), b"null"])
def test_protocol_3_a_malformed_trace_counts_as_missing(received: bytes) -> None:
    assert trace_context(Raw(received)) is None


@pytest.mark.rule("3.trace")
def test_protocol_3_a_missing_trace_starts_anew_from_the_id() -> None:
    first = hop_context(trace_context(None), "env-1", SPAN)
    assert first.trace_id == hop_context(None, "env-1", PARENT).trace_id
    assert first.trace_id != hop_context(None, "env-2", SPAN).trace_id
    assert (first.span_id, first.flags) == (SPAN, "01")
    assert trace_context(Raw(f'"{first}"'.encode())) == first


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("03", True)])
def test_the_last_bit_of_the_flags_says_whether_the_trace_is_recorded(flags: str, sampled: bool) -> None:
    assert TraceContext(TRACE, SPAN, flags).is_sampled is sampled
