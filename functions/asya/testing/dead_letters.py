"""The dead letters of a mesh in memory."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from asya.capabilities.dead_letters.redrive import Redriven
from asya.protocol.ids import id_of_message
from asya.testing.services.queues import Message, Queues


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
        answer = ask("POST", f"/api/v1/mesh/redrive?{urlencode(query)}", Redriven, body=letter.body.encode())
        letters.remove(letter)
        sent.append(answer.id or id_of_message(letter.message_id))
    return sent
