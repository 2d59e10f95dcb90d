"""The events of a stream, as the gateway writes them."""

import msgspec

from asya.client.events import Event, parse_events
from asya.gateway.streams import sse


def test_what_the_gateway_writes_is_read() -> None:
    text = sse.retry(300) + sse.event("status", "1.0", b'{"status":"running"}') + sse.KEEPALIVE
    text += sse.event("final", "1.1", b'{"status":"succeeded"}')
    events = list(parse_events(text.encode()))
    assert events == [
        Event("status", "1.0", {"status": "running"}),
        Event("final", "1.1", {"status": "succeeded"}),
    ]
    assert [event.is_last for event in events] == [False, True]


def test_a_line_separator_within_a_text_is_no_end_of_a_line() -> None:
    data = {"text": "one\u2028two\u0085three\u2029four\x0bfive\nsix"}
    (event,) = parse_events(sse.event("partial", "1", msgspec.json.encode(data)).encode())
    assert event.data == data


def test_comments_and_blocks_without_data_are_no_events() -> None:
    assert list(parse_events(b": keepalive\n\nretry: 300\n\nevent: status\n\n")) == []
    assert list(parse_events(b"")) == []
