"""What is the same when a sender repeats a webhook, and so names its occurrence (`protocol §16.webhooks.id`)."""

import hashlib
from collections.abc import Mapping

from asya.capabilities.triggers.pointers import part_at
from asya.capabilities.triggers.webhooks.signatures import SignedRequest
from asya.protocol.strict_json import NotJsonError, encode_value
from asya.protocol.triggers import Signature, Webhook

IDS_OF_SCHEMES: Mapping[Signature, str] = {"stripe": "/id"}
"""The ids of schemes whose bodies change between repetitions."""


def occurrence_key(webhook: Webhook, signed: SignedRequest, headers: Mapping[str, str], body: object) -> str:
    """The key of the occurrence: a repetition has the same.

    A request without the id is known by what its scheme signs, so that it is not lost.

    Args:
        webhook: the webhook.
        signed: what the request has signed.
        headers: its headers, names in lower case.
        body: the value of its body.
    """
    named = _named(webhook.id or IDS_OF_SCHEMES.get(webhook.signature, ""), headers, body)
    identity = signed.identity if named is None else named
    return f"webhook {'' if named is None else 'id '}{hashlib.sha256(identity).hexdigest()}"


def _named(name: str, headers: Mapping[str, str], body: object) -> bytes | None:
    """The id at a pointer or in a header; None if the request has none there."""
    if not name.startswith("/"):
        text = headers.get(name.lower(), "").strip() if name else ""
        return text.encode() if text else None
    try:
        part = part_at(body, name)
        return None if part is None or part == "" else bytes(encode_value(part))
    except (ValueError, NotJsonError):
        return None
