"""Packs reports into the messages of the report queues (`protocol §5`, reports)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from asya.function.batching import pack
from asya.protocol import names
from asya.protocol.errors import shortened
from asya.protocol.events import EVENT_LIMIT, Report, TaskEvent, is_end
from asya.protocol.exact_json import encode_json

# SQS bills each 64 KiB of a message.
MESSAGE_BYTES = 64 * 1024
# The function that consumes the queues accepts no longer list.
MESSAGE_REPORTS = 500
GATEWAY_MEMBER = "gateway_url"


@dataclass(frozen=True, slots=True)
class EncodedReport:
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
    """Encode a report. SQS refuses U+FFFE and U+FFFF, so they are escaped."""
    text = encode_json(event)
    if len(text) > EVENT_LIMIT and isinstance(event, TaskEvent):
        text = encode_json(_reduced(event))
    if gateway_url is not None:
        text = b'{"%s":%s,%s' % (GATEWAY_MEMBER.encode(), encode_json(gateway_url), text[1:])
    if not text.isascii():
        text = text.replace(b"\xef\xbf\xbe", b"\\ufffe").replace(b"\xef\xbf\xbf", b"\\uffff")
    return EncodedReport(queue_of(event), gateway_url, text)


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


def _reduced(event: TaskEvent) -> TaskEvent:
    """A report of an end without its largest members: the record must learn of the end, and its object has the rest."""
    data = event.data
    return replace(event, data=replace(data, route=None, result=UNSET, error=data.error and shortened(data.error)))
