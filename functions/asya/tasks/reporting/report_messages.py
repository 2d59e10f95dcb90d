"""Packs reports into messages of the report queues, and selects their base URL (`protocol §5`, reports; `§3`)."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from asya.function.sqs import pack
from asya.protocol import headers, names
from asya.protocol.envelope import Envelope
from asya.protocol.errors import shortened
from asya.protocol.events import EVENT_LIMIT, EventData, Report, TaskEvent, is_end
from asya.protocol.exact_json import encode_json
from asya.protocol.times import format_time, parse_time


def report_url(envelope: Envelope, *, configured: str | None, allowed_hosts: frozenset[str]) -> str | None:
    """The base URL for reports of this envelope; None without a gateway.

    The envelope's header counts only if its scheme is http or https and its host is allowed. Reports are signed, so a
    sender must not direct them to a host of its choice. Any address on the gateway's own host means the configured URL.
    """
    value = envelope.header(headers.GATEWAY_URL)
    return (allowed_address(value, allowed_hosts, configured) if isinstance(value, str) else None) or configured


def allowed_address(value: str, allowed_hosts: frozenset[str], own: str | None) -> str | None:
    """The base URL in a text; None if its scheme is not http or https, or its host is not allowed.

    Args:
        own: the URL of the mesh's own gateway. It stands for each address on its host: another scheme or path there would
            count as a foreign gateway that never takes a report.
    """
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.netloc in allowed_hosts
    except ValueError:
        return None
    if usable and own is not None and parts.netloc == urlsplit(own).netloc:
        return own
    # Rebuilt from the checked parts, because other parsers may read the text differently.
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}" if usable else None


def allowed_hosts(configured_url: str | None, extra: Iterable[str]) -> frozenset[str]:
    """The hosts that may receive reports: the deployment's own, and those in the mesh file."""
    own = urlsplit(configured_url).netloc if configured_url else ""
    return frozenset({own, *extra} - {""})


# SQS bills each 64 KiB of a message.
MESSAGE_BYTES = 64 * 1024
# The function that consumes the queues accepts no longer list.
MESSAGE_REPORTS = 500
GATEWAY_MEMBER = "gateway_url"


class EncodedReport(msgspec.Struct, frozen=True):
    """A report as a member of a message.

    Attributes:
        queue: `x-reports` or `x-ends`.
        gateway_url: the foreign gateway that the report is for; None for the mesh's own.
    """

    queue: str
    gateway_url: str | None
    text: bytes

    @property
    def size(self) -> int:
        """Bytes in the body of a message, with the comma."""
        return len(self.text) + 1


def queue_of(event: Report) -> str:
    """The queue that takes a report: `x-ends` for ends and pauses, which only the crew may report."""
    return names.ENDS if is_end(event) else names.REPORTS


def encoded(event: Report, gateway_url: str | None) -> EncodedReport:
    """Encode a report. The record must learn of an end of any size; its object has what is left out."""
    text = _text(event, gateway_url)
    if len(text) > EVENT_LIMIT and isinstance(event, TaskEvent):
        event = replace(event, row=UNSET, data=replace(event.data, route=None))
        text = _text(event, gateway_url)
        if len(text) > EVENT_LIMIT:
            text = _text(replace(event, data=_with_short_texts(event.data)), gateway_url)
    return EncodedReport(queue_of(event), gateway_url, text)


def fits(event: TaskEvent, gateway_url: str) -> bool:
    """Whether a report has no member that `encoded` would leave out, whichever gateway gets it."""
    return len(_text(event, gateway_url)) <= EVENT_LIMIT


def _text(event: Report, gateway_url: str | None) -> bytes:
    """The JSON of a report. SQS refuses U+FFFE and U+FFFF, so they are escaped."""
    text = encode_json(event)
    if gateway_url is not None:
        text = b'{"%s":%s,%s' % (GATEWAY_MEMBER.encode(), encode_json(gateway_url), text[1:])
    if not text.isascii():
        text = text.replace(b"\xef\xbf\xbe", b"\\ufffe").replace(b"\xef\xbf\xbf", b"\\uffff")
    return text


class HasReport(Protocol):
    """A report that waits for its message."""

    @property
    def report(self) -> EncodedReport:
        """The encoded report."""

    @property
    def size(self) -> int:
        """Bytes in the body of a message."""


Waiting = TypeVar("Waiting", bound=HasReport)


def messages(reports: Iterable[Waiting]) -> Iterator[list[Waiting]]:
    """Group reports of one queue into messages, in order; a message is for one gateway."""
    by_gateway: dict[str | None, list[Waiting]] = {}
    for each in reports:
        by_gateway.setdefault(each.report.gateway_url, []).append(each)
    for group in by_gateway.values():
        # One byte for the other bracket: each report counts a comma.
        yield from pack(group, count=MESSAGE_REPORTS, size=MESSAGE_BYTES - 1)


def body(message: Iterable[HasReport]) -> bytes:
    """The body of a message: a JSON array of reports."""
    return b"[" + b",".join(each.report.text for each in message) + b"]"


def _with_short_texts(data: EventData) -> EventData:
    """Data whose error has neither ancestors nor traceback, and whose times have no more digits than those of the mesh."""
    error = data.error and replace(shortened(data.error), mro=(), traceback="")
    return replace(data, error=error, created_at=_short(data.created_at), deadline_at=_short(data.deadline_at))


def _short(time: str | None) -> str | None:
    try:
        return format_time(parse_time(time)) if time else None
    except ValueError:
        return None
