"""A webhook on the queue `x-triggers`, and the occurrence that it is (`protocol §16.webhooks`)."""

import msgspec

from asya.capabilities.triggers.occurrences import Occurrence
from asya.capabilities.triggers.pointers import part_at
from asya.capabilities.triggers.templates import fill_in
from asya.capabilities.triggers.webhooks.bodies import read_body, type_of
from asya.function.claim_check import PayloadReference
from asya.protocol.strict_json import NotJsonError, encode_value
from asya.protocol.task import StartedBy
from asya.protocol.triggers import Trigger

VALUES_OF_WEBHOOKS: dict[str, object] = {"body": {}, "event": "", "received_at": ""}
"""The values for the template of a payload, each empty. A body need not be text."""


class UnusableDeliveryError(ValueError):
    """A webhook that can start no task of its trigger."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A webhook whose signature was right.

    Attributes:
        key: the key of the occurrence.
        body: the body; empty if it is stored.
        stored: the object with the body that is too large for a message.
        content_type: the content type of the body.
        event: the name of the event in a header; empty if the scheme has none.
        received_at: when the gateway took it.
    """

    key: str
    body: str
    content_type: str = ""
    event: str = ""
    received_at: str
    stored: PayloadReference | None = None


class WebhookMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The message of a webhook on the queue `x-triggers`."""

    trigger: str
    webhook: Delivery


def webhook_message(trigger: str, delivery: Delivery) -> bytes:
    """The message of a webhook: JSON in ASCII, because SQS accepts XML characters only."""
    message = WebhookMessage(trigger=trigger, webhook=delivery)
    return bytes(encode_value(msgspec.to_builtins(message)))


def webhook_values(delivery: Delivery, body: object) -> dict[str, object]:
    """The values for the template of a payload."""
    return {"body": body, "event": delivery.event or type_of(body), "received_at": delivery.received_at}


def webhook_occurrence(name: str, trigger: Trigger, delivery: Delivery) -> Occurrence:
    """The occurrence of a webhook.

    Raises:
        UnusableDeliveryError: the body has another form than its type says, or it lacks what `input` points to.
    """
    try:
        body = read_body(delivery.body, delivery.content_type)
        if trigger.payload is not None:
            payload = fill_in(trigger.payload, webhook_values(delivery, body))
        else:
            payload = part_at(body, trigger.input)
        encoded = encode_value(payload)
    except (ValueError, NotJsonError) as error:
        raise UnusableDeliveryError(str(error)) from None
    return Occurrence(name, delivery.key, encoded, StartedBy(kind="trigger", name=name))
