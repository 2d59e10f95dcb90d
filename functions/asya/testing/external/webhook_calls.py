"""Calls the webhooks of a mesh, as their senders do."""

from dataclasses import dataclass

from asya.capabilities.triggers.webhooks.bodies import read_body
from asya.capabilities.triggers.webhooks.identity import occurrence_key
from asya.capabilities.triggers.webhooks.keys import read_keys
from asya.capabilities.triggers.webhooks.signatures import read_signature
from asya.protocol import ids
from asya.protocol.text_encoding import decode_text
from asya.protocol.triggers import Webhook
from asya.testing.api import Api
from asya.testing.errors import RefusedError, TestKitError
from asya.testing.hints import hint
from asya.testing.webhooks import SECRET, signed_headers


@dataclass(frozen=True)
class WebhookCall:
    """A call of a webhook, signed now.

    Attributes:
        event: the name of the event, for the scheme of GitHub.
    """

    trigger: str
    body: bytes
    content_type: str
    event: str

    def make(self, api: Api) -> str:
        """Make the call; returns the id of the task.

        Raises:
            TestKitError: the mesh has no such webhook.
            RefusedError: the gateway refuses the call.
        """
        webhook = self._webhook(api)
        headers = {"content-type": self.content_type} | ({"x-github-event": self.event} if self.event else {})
        signature = signed_headers(
            webhook, read_keys(SECRET, webhook.signature)[0], self.body, api.cloud.simulation.scheduler.now
        )
        path = f"/hooks/{self.trigger}"
        response = api.call("POST", path, self.body, {**headers, **signature}, user_arn="", user_id="")
        if response["statusCode"] >= 400:
            raise RefusedError(str(response.get("body", "")))
        sent = {name.lower(): text for name, text in {**headers, **signature}.items()}
        signed, body = read_signature(webhook, sent, self.body), read_body(decode_text(self.body), self.content_type)
        return ids.occurrence_id(self.trigger, occurrence_key(webhook, signed, sent, body))

    def _webhook(self, api: Api) -> Webhook:
        known = api.cloud.table.webhooks
        if self.trigger not in known:
            raise TestKitError(f"the mesh has no webhook {self.trigger!r}{hint(self.trigger, known)}")
        return known[self.trigger]
