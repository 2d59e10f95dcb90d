"""Signs webhooks as their senders do."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

from asya.protocol.triggers import Webhook


def kit_secret(reference: str) -> str:
    """The value of a secret in the test kit: a key of each scheme, and of this secret alone."""
    key = f"a key of the test kit: {reference}"
    return f"whsec_{base64.b64encode(key.encode()).decode()}"


def signed_headers(webhook: Webhook, key: bytes, body: bytes, now: datetime) -> Mapping[str, str]:
    """The headers with the signature of a body.

    Args:
        webhook: the webhook, whose scheme signs.
        key: the key of the signature.
        body: the body.
        now: the time to sign, if the scheme signs one.
    """
    time = str(int(now.timestamp()))

    def digest(content: bytes) -> bytes:
        return hmac.digest(key, content, "sha256")

    match webhook.signature:
        case "github":
            return {"X-Hub-Signature-256": f"sha256={digest(body).hex()}"}
        case "stripe":
            return {"Stripe-Signature": f"t={time},v1={digest(f'{time}.'.encode() + body).hex()}"}
        case "slack":
            signature = digest(f"v0:{time}:".encode() + body).hex()
            return {"X-Slack-Request-Timestamp": time, "X-Slack-Signature": f"v0={signature}"}
        case "standard-webhooks":
            identity = f"msg_{hashlib.sha256(body).hexdigest()[:27]}"
            signature = base64.b64encode(digest(f"{identity}.{time}.".encode() + body)).decode()
            return {"webhook-id": identity, "webhook-timestamp": time, "webhook-signature": f"v1,{signature}"}
        case "hmac-sha256":
            return {webhook.header: f"sha256={digest(body).hex()}"}
