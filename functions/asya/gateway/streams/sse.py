"""Server-Sent Events as text (`protocol §13`, `GET …/events`)."""

MEDIA_TYPE = "text/event-stream"

KEEPALIVE = ": keepalive\n\n"
KEEPALIVE_SECONDS = 15.0
"""A client hears at least this often, also of a buffered response: it reaches the client as a whole, at its end."""

MAX_STREAM_SECONDS = 300.0
"""A long-lived stream ends after this time, because a function does not notice a lost client. Others reconnect."""


def retry(milliseconds: int) -> str:
    """Return the field that sets the reconnection time of the client."""
    return f"retry: {milliseconds}\n\n"


def event(name: str, event_id: str, data: bytes) -> str:
    """Return a named event; each line of data becomes a field of its own."""
    return f"event: {name}\nid: {event_id}\n{_lines(data)}\n"


def message(data: bytes) -> str:
    """Return an event without a name."""
    return f"{_lines(data)}\n"


def _lines(data: bytes) -> str:
    text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    return "".join(f"data: {line}\n" for line in text.split("\n"))
