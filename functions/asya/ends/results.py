"""What is stored of a result: its S3 object metadata, and its row in the index of results (`protocol §11`).

New rows of the index are JSON lines under `index/recent/`; x-index compacts each day under `index/days/`.
docs/how-to/query-results.md documents the columns.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import quote, unquote_to_bytes

import msgspec

from asya.protocol.envelope import Envelope
from asya.protocol.keys import last_actor_name
from asya.protocol.status import end_phase
from asya.protocol.times import format_time, parse_time

# The limit of S3 covers the names and values of user metadata together.
METADATA_LIMIT = 2048
# Metadata are HTTP headers: printable ASCII stays as it is, except the space, which is lost at the ends.
_PLAIN = "!#$&'()*+,-./:;<=>?@[]^_`{|}~"
# Left out, in this order, if the metadata are too large. The envelope has them all.
_OPTIONAL = ("root", "parent")


def result_metadata(envelope: Envelope, namespace: str) -> dict[str, str]:
    """Id, parent, root, namespace, generation, phase and last actor, percent-encoded; absent values are left out."""
    status = envelope.status
    values = {
        "id": envelope.id,
        "parent": envelope.parent_id,
        "root": envelope.root_id or envelope.id,
        "namespace": namespace,
        "generation": str(envelope.generation),
        "phase": end_phase(status),
        "last-actor": last_actor_name(envelope),
    }
    metadata = {
        name: quote(value.encode("utf-8", "surrogatepass"), safe=_PLAIN) for name, value in values.items() if value
    }
    for name in _OPTIONAL:
        if _size(metadata) > METADATA_LIMIT:
            metadata.pop(name, None)
    return metadata


def read_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """The values that `result_metadata` wrote."""
    return {name: unquote_to_bytes(value).decode("utf-8", "surrogatepass") for name, value in metadata.items()}


def _size(metadata: dict[str, str]) -> int:
    return sum(len(name) + len(value) for name, value in metadata.items())


RECENT_PREFIX = "index/recent/"
MESSAGE_LIMIT = 500  # characters; the whole message is in the object


class ResultRow(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one envelope. Times are RFC 3339 in UTC with microseconds, so they sort as text.

    Attributes:
        root_id: the root task of the tree; the envelope's own id unless it is a child.
        tool: the tool that started the root task, as the envelope says; None if no tool did.
        last_actor: the last actor that processed the envelope.
        route: the actors that are done, in order.
        seconds: from creation to end.
        payload_bytes: the size of the payload as JSON.
        result_uri: the object with the whole envelope.
        recorded_by: x-sink, or x-sump for a failed envelope.
    """

    namespace: str
    id: str
    generation: int
    parent_id: str | None
    root_id: str
    phase: str
    reason: str | None
    last_actor: str
    route: tuple[str, ...]
    attempt: int | None
    error_type: str | None
    error_message: str | None
    created_at: str | None
    ended_at: str
    seconds: float | None
    payload_bytes: int
    result_uri: str
    recorded_by: str
    tool: str | None = None


_row_decoder = msgspec.json.Decoder(ResultRow)


def result_row(envelope: Envelope, *, namespace: str, result_uri: str, recorded_by: str, now: datetime) -> ResultRow:
    """The row of an envelope that ended.

    Args:
        now: the time of the end, if the status has none.
    """
    status = envelope.status
    ended = _time(status.updated_at if status else None) or now
    created = _time(status.created_at if status else None)
    error = status.error if status else None
    return ResultRow(
        namespace=namespace,
        id=envelope.id,
        generation=envelope.generation,
        parent_id=envelope.parent_id,
        root_id=envelope.root_id or envelope.id,
        phase=end_phase(status),
        reason=status.reason if status else None,
        last_actor=last_actor_name(envelope),
        route=tuple(envelope.route.prev),
        attempt=status.attempt if status else None,
        error_type=error.type if error else None,
        error_message=error.message[:MESSAGE_LIMIT] if error else None,
        created_at=format_time(created) if created else None,
        ended_at=format_time(ended),
        seconds=(ended - created).total_seconds() if created else None,
        payload_bytes=len(bytes(envelope.payload)),
        result_uri=result_uri,
        recorded_by=recorded_by,
        tool=envelope.tool,
    )


def row_of(raw: msgspec.Raw) -> ResultRow:
    """Read the row in the report of an end.

    Raises:
        ValueError: it is not a row.
    """
    row = _row_decoder.decode(raw)
    parse_time(row.ended_at)
    return row


def day_of(row: ResultRow) -> str:
    """The UTC day of a row, such as `2025-11-18`."""
    return row.ended_at[:10]


def recent_object(day: str, rows: Sequence[ResultRow]) -> tuple[str, bytes]:
    """The key and content of the object with these rows of one day; the same rows give the same object."""
    body = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    digest = hashlib.sha256(body).hexdigest()[:32]
    return f"{RECENT_PREFIX}dt={day}/{digest}.jsonl", body


def _time(text: str | None) -> datetime | None:
    """Parse a time from a status, which may hold any text; None if it is not a time."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
