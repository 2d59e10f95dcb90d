"""What systems and people without an account do to a mesh in memory.

They fire triggers (`protocol §16.objects`, `§16.events`), call webhooks, and answer by links.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid5

from asya.capabilities.triggers.http_calls import TAKE_WEBHOOK
from asya.capabilities.triggers.messages import UnusableMessageError
from asya.capabilities.triggers.sources.new_objects import Buckets
from asya.capabilities.triggers.sources.service_messages import read_service_message
from asya.capabilities.triggers.webhooks import occurrence_key, read_keys, read_signature
from asya.client.calls import to
from asya.contracts.codec import plain
from asya.function.hop import Arrival
from asya.protocol import ids
from asya.protocol.mesh_table import MeshTable
from asya.protocol.names import TASK_SWEEP, TRIGGERS
from asya.protocol.strict_json import encode_value
from asya.protocol.text import decode_text
from asya.protocol.times import format_time
from asya.protocol.triggers import ObjectSource, Webhook
from asya.testing.api import Api
from asya.testing.errors import RefusedError, TestKitError, hint
from asya.testing.messages import put
from asya.testing.run import Run
from asya.testing.services.functions import ACCOUNT, REGION, RESULTS_URI
from asya.testing.services.roles import role_id
from asya.testing.virtual_time import slot_start
from asya.testing.webhooks import kit_secret, signed_headers

SERVICE_SENDER = "AIDAOFAWS"
"""The `SenderId` of what S3 and EventBridge send: an id of AWS, and no role of the mesh."""
_IDS = UUID("5b2f3a52-5c0e-4a64-9a51-0f3a5d2f8c11")


class Sources:
    """The sources of triggers of a mesh that a test has. Each object and each event is a new one.

    Args:
        table: the table of the mesh.
        data_uri: the base of references.
    """

    def __init__(self, table: MeshTable, data_uri: str) -> None:
        self._table = table
        self._buckets = Buckets(data_uri, RESULTS_URI)
        self._numbers = count(1)

    def start_of(self, name: str, at: datetime, *, key: str | None, event: Mapping[str, Any] | None) -> tuple[str, str]:
        """The body of the message about a new object or an event, and the id of the task that it starts.

        Args:
            name: the name of the trigger.
            at: when it happens.
            key: the key of the object, below the place of the trigger's bucket.
            event: members of the event.

        Raises:
            TestKitError: the trigger does not react to it.
        """
        trigger = self._table.triggers.get(name)
        if key is not None and event is None and trigger is not None and trigger.objects is not None:
            told = self._created(trigger.objects, key)
        elif key is None and event is not None and trigger is not None and trigger.event is not None:
            told = {"source": "test", "detail-type": "Test", "detail": {}, **event}
        else:
            given = "key needs a trigger with s3" if event is None else "event needs a trigger with event, and no key"
            raise TestKitError(f"{given}; {name!r} is none")
        number = next(self._numbers)
        base = {"version": "0", "id": str(uuid5(_IDS, str(number))), "account": ACCOUNT, "time": format_time(at)}
        body = json.dumps({"trigger": name, "event": {**base, "region": REGION, "resources": [], **told}})
        arrival = Arrival(
            body=body.encode(), message_id="", sent_at=at, receive_count=1, sender=SERVICE_SENDER, size=len(body)
        )
        try:
            occurrences = read_service_message(arrival, self._table, self._buckets)
        except UnusableMessageError as error:
            raise TestKitError(f"the trigger {name!r}: {error}") from None
        if not occurrences:
            raise TestKitError(f"the trigger {name!r} does not ask for the key {key!r}")
        return body, occurrences[0].task_id

    def _created(self, source: ObjectSource, key: str) -> dict[str, Any]:
        place = self._buckets.place(source.bucket)
        written = {"key": f"{place.prefix}{key}", "size": 0, "etag": "", "sequencer": f"{next(self._numbers):016X}"}
        detail = {"bucket": {"name": place.bucket}, "object": written}
        return {"source": "aws.s3", "detail-type": "Object Created", "detail": detail}


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
            webhook,
            read_keys(kit_secret(webhook.secret), webhook.signature)[0],
            self.body,
            api.cloud.simulation.scheduler.now,
        )
        request, sent = to(TAKE_WEBHOOK, name=self.trigger), {**headers, **signature}
        response = api.cloud.request(*request, self.body, sent, user_arn="", user_id="")
        if response["statusCode"] >= 400:
            raise RefusedError(str(response.get("body", "")))
        received = {name.lower(): text for name, text in sent.items()}
        signed = read_signature(webhook, received, self.body)
        return ids.occurrence_id(self.trigger, occurrence_key(webhook, signed, received, decode_text(self.body)))

    def _webhook(self, api: Api) -> Webhook:
        known = api.cloud.table.webhooks
        if self.trigger not in known:
            raise TestKitError(f"the mesh has no webhook {self.trigger!r}{hint(self.trigger, known)}")
        return known[self.trigger]


class ExternalSystems:
    """The clock of schedules, S3, EventBridge, senders of webhooks, and the holders of links.

    Args:
        api: the gateway of the mesh.
        data_uri: the base of references.
    """

    def __init__(self, api: Api, data_uri: str) -> None:
        self._api = api
        self._cloud = api.cloud
        self._sources = Sources(api.cloud.table, data_uri)

    def fire(self, trigger: str, *, at: datetime | None, key: str | None, event: Mapping[str, Any] | None) -> str:
        """Start a task of a trigger, as `Mesh.fire` says; returns the id of the task."""
        now = self._cloud.simulation.scheduler.now
        if key is None and event is None:
            (body, task_id), sender = slot_start(self._cloud.table, trigger, at, now), role_id(TASK_SWEEP)
        else:
            (body, task_id), sender = self._sources.start_of(trigger, at or now, key=key, event=event), SERVICE_SENDER
        put(self._cloud, TRIGGERS, body, sender=sender)
        return task_id

    def webhook(self, trigger: str, body: Any, *, event: str, content_type: str) -> str:
        """Call the webhook of a trigger, as `Mesh.webhook` says; returns the id of the task."""
        content = body if isinstance(body, bytes) else bytes(encode_value(plain(body, "payload")))
        return WebhookCall(trigger, content, content_type, event).make(self._api)

    def call_back(self, run: Run, fields: Mapping[str, Any]) -> None:
        """Answer the question of a paused run by its link.

        Raises:
            TestKitError: the pause has no link.
            RefusedError: the gateway refuses the answer.
        """
        question = run.question
        if question is None or question.callback is None:
            raise TestKitError(f"run {run.id} has no link; its pause actor needs callback: true")
        self._api.call_back(question.callback, {"input": plain(dict(fields), "payload")})
