"""What systems and people without an account do to a mesh: they fire triggers, call webhooks, and answer by links."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from asya.contracts.codec import plain
from asya.protocol.names import TASK_SWEEP, TRIGGERS
from asya.protocol.strict_json import encode_value
from asya.testing.api import Api
from asya.testing.errors import TestKitError
from asya.testing.external.source_events import SERVICE_SENDER, Sources
from asya.testing.external.webhook_calls import WebhookCall
from asya.testing.messages import put
from asya.testing.run import Run
from asya.testing.schedules import slot_start
from asya.testing.services.roles import role_id


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
