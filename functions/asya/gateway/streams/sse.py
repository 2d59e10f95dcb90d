"""Server-Sent Events, as text (`protocol §13`, `GET …/events`)."""

MEDIA_TYPE = "text/event-stream"

KEEPALIVE = ": keepalive\n\n"
KEEPALIVE_SECONDS = 15.0

MAX_STREAM_SECONDS = 300.0
"""A stream that goes on ends after this: nobody tells a function that its client has gone. Who has not connects again, and
misses nothing."""


def retry(milliseconds: int) -> str:
    """How long a client waits before it connects again."""
    return f"retry: {milliseconds}\n\n"


def event(name: str, event_id: str, data: bytes) -> str:
    """One event; data may have line breaks, as JSON that was taken over as it came."""
    return f"event: {name}\nid: {event_id}\n{_lines(data)}\n"


def message(data: bytes) -> str:
    """One event without a name."""
    return f"{_lines(data)}\n"


def _lines(data: bytes) -> str:
    text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    return "".join(f"data: {line}\n" for line in text.split("\n"))
