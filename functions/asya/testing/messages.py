"""Puts messages on the queues of a mesh in memory, and gives its dead letters."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from asya.capabilities.dead_letters.http_calls import REDRIVE
from asya.capabilities.dead_letters.redrive import Redriven
from asya.capabilities.legacy.envelopes import read_envelope
from asya.client.calls import to
from asya.contracts.codec import plain
from asya.protocol.codec import ParseError, encode
from asya.protocol.envelope import Envelope, Route
from asya.protocol.ids import id_of_message
from asya.protocol.names import queue_name
from asya.protocol.strict_json import encode_value
from asya.testing.api import USER_ID
from asya.testing.deployment import Deployment
from asya.testing.services.queues import Message, Queues


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


def waiting(queues: Queues) -> list[Message]:
    """The messages in dead-letter queues, in the order of their sends."""
    letters = [message for queue in queues.queues.values() if queue.max_receives is None for message in queue.messages]
    return sorted(letters, key=lambda message: message.message_id)


def redrive(ask: Callable[..., Any], queues: Queues, dead_letter_queue: str, actor: str, *, force: bool) -> list[str]:
    """Let the gateway send the dead letters of an actor again; return the ids of their envelopes.

    Args:
        ask: calls the API of the gateway; see `Mesh.ask`.
        force: also for tasks that have succeeded, were canceled or went on elsewhere.

    Raises:
        RefusedError: the gateway refuses a dead letter, which stays in its queue.
    """
    letters, sent = queues.queues[dead_letter_queue].messages, []
    for letter in sorted(letters, key=lambda message: message.message_id):
        query = {
            "actor": actor,
            "message_id": letter.message_id,
            "sender": letter.sender,
            "force": "true" if force else "false",
        }
        answer = ask(*to(REDRIVE, query), Redriven, body=letter.body.encode())
        letters.remove(letter)
        sent.append(answer.id or id_of_message(letter.message_id))
    return sent
