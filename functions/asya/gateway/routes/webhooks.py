"""Takes webhooks: `POST /hooks/{name}` (`protocol §16.webhooks`).

A webhook is sent to `x-triggers` unless its task exists. One that is sent twice has one key, which starts one task.
"""

from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.triggers.aws.webhook_keys import KeysUnavailableError, WebhookKeys
from asya.capabilities.triggers.aws.webhook_queue import KnownWebhook, TooLargeForLaneError, WebhookMemory, WebhookQueue
from asya.capabilities.triggers.occurrences import submission_of
from asya.capabilities.triggers.webhooks import (
    Delivery,
    SignedRequest,
    UnreadableBodyError,
    UnsignedError,
    UnusableDeliveryError,
    occurrence_key,
    read_body,
    read_signature,
    webhook_occurrence,
)
from asya.function.aws.telemetry import Telemetry
from asya.gateway.http.router import Request, Response, check_size
from asya.protocol import ids
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import BODY_LIMIT, MeshTable
from asya.protocol.text import decode_text
from asya.protocol.times import format_time
from asya.protocol.triggers import Trigger, Webhook
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.starts.tool_schemas import validate

_NAME_LIMIT = 255
_WRONG = "the signature is missing or wrong"
_OLD = "the signed time is more than five minutes from now"


class _RefusedError(Exception):
    """The signature of a webhook does not hold. The message is for the log, and has no part of the request."""

    def __init__(self, problem: str, answer: str = _WRONG) -> None:
        super().__init__(problem)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class WebhookRoutes:
    """The call of webhooks."""

    mesh: MeshTable
    keys: WebhookKeys
    queue: WebhookQueue
    memory: WebhookMemory
    telemetry: Telemetry

    def take(self, request: Request, now: datetime) -> Response:
        """`POST /hooks/{name}`: check a webhook and send it to `x-triggers`, once.

        Raises:
            ApiError: 404 for an unknown or switched off webhook, 413, 400 for a body of another form, 503.
        """
        name = request.parameters["name"]
        trigger, webhook = self._find(name)
        check_size(request, BODY_LIMIT)
        try:
            signed = self._signed(name, webhook, request, now)
        except _RefusedError as error:
            self.telemetry.count("WebhooksRefused")
            self.telemetry.log.warning("webhook refused", trigger=name, problem=str(error))
            return Response(401, {"error": {"code": "unauthorized", "message": error.answer}})
        text = _text(request.body)
        body = _read(text, request.headers.get("content-type", ""))
        own = _own_answer(webhook, request, body)
        if own is not None:
            return own
        key = occurrence_key(webhook, signed, request.headers, text)
        return self._start(name, trigger, _delivery(webhook, request, key, text, now), now)

    def _find(self, name: str) -> tuple[Trigger, Webhook]:
        trigger = self.mesh.triggers.get(name)
        if trigger is None or trigger.webhook is None or not trigger.enabled:
            # Names are no secret, and a mistyped URL is the first mistake of a set-up. Nothing of the request comes back.
            raise ApiError(404, "not_found", "there is no webhook at this URL, or it is off")
        return trigger, trigger.webhook

    def _signed(self, name: str, webhook: Webhook, request: Request, now: datetime) -> SignedRequest:
        try:
            signed = read_signature(webhook, request.headers, request.body)
            if not (signed.is_signed_with(self.keys.get(webhook)) or signed.is_signed_with(self.keys.renewed(webhook))):
                raise _RefusedError("no key fits the signature")
            if not signed.is_recent(now):
                raise _RefusedError(_OLD, _OLD)
            self._check_own_key(name, signed)
        except UnsignedError as error:
            raise _RefusedError(str(error)) from None
        except KeysUnavailableError as error:
            raise ApiError(503, "unavailable", "the webhook cannot be checked now; send it again") from error
        return signed

    def _check_own_key(self, name: str, signed: SignedRequest) -> None:
        """Check that no other webhook has the key that signed. No scheme signs the name of the trigger.

        Raises:
            KeysUnavailableError: another webhook has it too.
        """
        for other, webhook in self.mesh.webhooks.items():
            if other == name or not self.mesh.triggers[other].enabled:
                continue
            try:
                keys = self.keys.get(webhook)
            except KeysUnavailableError:
                continue  # that webhook takes no call now
            if signed.is_signed_with(keys):
                raise KeysUnavailableError(
                    f"the webhooks {name!r} and {other!r} have one key, so a caught call of one would start the other; "
                    "give each webhook a key of its own"
                )

    def _start(self, name: str, trigger: Trigger, delivery: Delivery, now: datetime) -> Response:
        task_id = ids.occurrence_id(name, delivery.key)
        known = self._known(name, task_id, now)
        repeated = known is not None and known.is_repeated
        if not repeated:
            self._send(name, trigger, delivery)
            self.telemetry.count("WebhooksTaken")
        self.telemetry.log.info("webhook repeated" if repeated else "webhook taken", trigger=name, envelope_id=task_id)
        if trigger.webhook is not None and trigger.webhook.signature == "slack":
            return Response(200, None)  # Slack shows people the body of an answer
        has_id = known is not None and (
            known.has_task or (not repeated and self._starts(name, trigger, delivery, known))
        )
        content: dict[str, object] = {"id": task_id} if has_id else {}
        return Response(200, content | {"repeated": True}) if repeated else Response(202, content)

    def _known(self, name: str, task_id: str, now: datetime) -> KnownWebhook | None:
        """What is known about the task; None if the table does not answer. It only spares messages: a key starts one task."""
        try:
            return self.memory.read(name, task_id, now)
        except TaskStoreError as error:
            self.telemetry.log.warning("webhooks are not compared with earlier ones", problem=str(error))
            return None

    def _starts(self, name: str, trigger: Trigger, delivery: Delivery, known: KnownWebhook) -> bool:
        """Whether the webhook starts a task of its own, so that an answer may name it."""
        if trigger.has_lanes or known.is_paused:
            return False
        try:
            submission_of(trigger, webhook_occurrence(name, trigger, delivery).payload, self.mesh, validate)
        except (UnusableDeliveryError, ApiError):
            return False  # it becomes a dead letter, which operators see
        return True

    def _send(self, name: str, trigger: Trigger, delivery: Delivery) -> None:
        try:
            self.queue.send(name, delivery, may_store=not trigger.has_lanes)
        except TooLargeForLaneError:
            problem = (
                "the body is too large for a trigger with overlap, debounce or batch, which takes 1 MiB as a message"
            )
            raise ApiError(413, "too_large", problem) from None
        except (ClientError, BotoCoreError) as error:
            raise ApiError(503, "unavailable", "the webhook was not taken; send it again") from error


def _delivery(webhook: Webhook, request: Request, key: str, text: str, now: datetime) -> Delivery:
    return Delivery(
        key=key,
        body=text,
        content_type=request.headers.get("content-type", "")[:_NAME_LIMIT],
        event=_event(webhook, request)[:_NAME_LIMIT],
        received_at=format_time(now),
    )


def _event(webhook: Webhook, request: Request) -> str:
    return request.headers.get("x-github-event", "") if webhook.signature == "github" else ""


def _own_answer(webhook: Webhook, request: Request, body: object) -> Response | None:
    """The answer to a question of the sender itself, which starts nothing."""
    if _event(webhook, request) == "ping":
        return Response(200, {})
    if webhook.signature == "slack" and isinstance(body, dict) and body.get("type") == "url_verification":
        return Response(200, {"challenge": str(body.get("challenge", ""))[:_NAME_LIMIT]})
    return None


def _text(body: bytes) -> str:
    try:
        return decode_text(body)
    except UnicodeDecodeError:
        raise ApiError(400, "invalid_body", "the body is not UTF-8") from None


def _read(text: str, content_type: str) -> object:
    try:
        return read_body(text, content_type)
    except UnreadableBodyError:
        raise ApiError(400, "invalid_body", "the body is not of the form that its content type says") from None
