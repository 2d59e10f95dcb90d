"""Puts messages on the queues of a mesh in memory."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from asya.capabilities.legacy.envelopes import read_envelope
from asya.contracts.codec import plain
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope
from asya.protocol.ids import id_of_message
from asya.protocol.names import queue_name
from asya.protocol.route import Route
from asya.protocol.strict_json import encode_value
from asya.testing.api import USER_ID
from asya.testing.deployment import Deployment


def produce(cloud: Deployment, actor: str, then: tuple[str, ...], payload: Any, headers: Mapping[str, Any]) -> str:
    """Send an envelope as a producer does, and return its id.

    Args:
        actor: the first actor of the route.
        then: the next ones.
        payload: a value that JSON has a form for, a dataclass or a model.
        headers: headers of the envelope.
    """
    envelope = Envelope(
        id=f"run-{len(cloud.history.sent) + 1}",
        route=Route((), actor, then),
        headers={name: Raw(msgspec.json.encode(value)) for name, value in headers.items()},
        payload=encode_value(plain(payload, "payload")),
    )
    return put(cloud, actor, encode(envelope).decode())


def put(cloud: Deployment, actor: str, body: str, *, sender: str = USER_ID) -> str:
    """Put a message on a queue; returns the id of its envelope, or that of the failure of a malformed one."""
    queue = queue_name(cloud.table.namespace, actor)
    message_id = cloud.queues.send(queue, body, sender=None, by=sender)
    try:
        return read_envelope(body.encode("utf-8", "surrogatepass"), message_id=message_id).id
    except ParseError as error:
        return error.envelope_id or id_of_message(message_id)
