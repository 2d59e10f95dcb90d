"""Takes webhooks: `POST /hooks/{name}` (`protocol §16.webhooks`).

A webhook is sent to `x-triggers` first and noted second. A process that dies between the two sends it again when its sender
repeats it, and its key starts one task.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from asya.gateway.http.router import HttpRoute, Request, Response, check_size
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.sqs_limits import MESSAGE_BYTES, MESSAGE_MARGIN
from asya.protocol import ids
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import MeshTable
from asya.protocol.strict_json import NotJsonError
from asya.protocol.text_encoding import decode_text
from asya.protocol.times import format_time
from asya.protocol.triggers import Trigger, Webhook
from asya.tasks.aws.task_store import TaskStoreError
from asya.triggers.aws.webhook_keys import KeysUnavailableError, WebhookKeys
from asya.triggers.aws.webhook_queue import SentWebhooks, WebhookQueue
from asya.triggers.webhooks.bodies import UnreadableBodyError, read_body
from asya.triggers.webhooks.deliveries import Delivery, webhook_message
from asya.triggers.webhooks.signatures import SignedRequest, UnsignedError, read_signature

BODY_LIMIT = 256 * 1024
"""Bytes."""
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
    sent: SentWebhooks
    telemetry: Telemetry

    def routes(self, now: datetime) -> tuple[HttpRoute, ...]:
        """The routes at a given time."""
        return (HttpRoute("POST", "/hooks/{name}", lambda request: self.take(request, now)),)

    def take(self, request: Request, now: datetime) -> Response:
        """`POST /hooks/{name}`: check a webhook and send it to `x-triggers`, once.

        Raises:
            ApiError: 404 for an unknown or switched off webhook, 413, 400 for a body of another form, 503.
        """
        name = request.parameters["name"]
        trigger, webhook = self._find(name)
        check_size(request, BODY_LIMIT)
        try:
            signed = self._signed(webhook, request, now)
        except _RefusedError as error:
            self.telemetry.count("WebhooksRefused")
            self.telemetry.log.warning("webhook refused", trigger=name, problem=str(error))
            return Response(401, {"error": {"code": "unauthorized", "message": error.answer}})
        text = _text(request.body)
        body = _read(text, request.headers.get("content-type", ""))
        own = _own_answer(webhook, request, body)
        return (
            own if own is not None else self._start(name, trigger, _delivery(webhook, request, signed, text, now), now)
        )

    def _find(self, name: str) -> tuple[Trigger, Webhook]:
        trigger = self.mesh.triggers.get(name)
        if trigger is None or trigger.webhook is None or not trigger.enabled:
            # Names are no secret, and a mistyped URL is the first mistake of a set-up. Nothing of the request comes back.
            raise ApiError(404, "not_found", "there is no webhook at this URL, or it is off")
        return trigger, trigger.webhook

    def _signed(self, webhook: Webhook, request: Request, now: datetime) -> SignedRequest:
        try:
            signed = read_signature(webhook, request.headers, request.body)
            if not (signed.is_signed_with(self.keys.get(webhook)) or signed.is_signed_with(self.keys.renewed(webhook))):
                raise _RefusedError("no key fits the signature")
        except UnsignedError as error:
            raise _RefusedError(str(error)) from None
        except KeysUnavailableError as error:
            raise ApiError(503, "unavailable", "the webhook cannot be checked now; send it again") from error
        if not signed.is_recent(now):
            raise _RefusedError(_OLD, _OLD)
        return signed

    def _start(self, name: str, trigger: Trigger, delivery: Delivery, now: datetime) -> Response:
        repeated = self._try(lambda: self.sent.has(name, delivery.key, now)) or False
        if not repeated:
            self._send(name, delivery)
            self._try(lambda: self.sent.note(name, delivery.key, now))
            self.telemetry.count("WebhooksTaken")
        task_id = ids.occurrence_id(name, delivery.key)
        self.telemetry.log.info("webhook repeated" if repeated else "webhook taken", trigger=name, envelope_id=task_id)
        if trigger.webhook is not None and trigger.webhook.signature == "slack":
            return Response(200, None)  # Slack shows people the body of an answer
        content: dict[str, object] = {"id": task_id} if trigger.debounce is None and trigger.batch is None else {}
        return Response(200, content | {"repeated": True}) if repeated else Response(202, content)

    def _send(self, name: str, delivery: Delivery) -> None:
        try:
            message = webhook_message(name, delivery)
        except NotJsonError as error:
            raise ApiError(400, "invalid_body", str(error)) from None
        if len(message) > MESSAGE_BYTES - MESSAGE_MARGIN:
            raise ApiError(413, "too_large", "the body has too many characters outside ASCII for a message of its size")
        try:
            self.queue.send(message)
        except (ClientError, BotoCoreError) as error:
            raise ApiError(503, "unavailable", "the webhook was not taken; send it again") from error

    def _try(self, call: Callable[[], bool | None]) -> bool | None:
        """Call the table, which only spares messages: the key of the occurrence starts one task without it."""
        try:
            return call()
        except TaskStoreError as error:
            self.telemetry.log.warning("webhooks are not compared with earlier ones", problem=str(error))
            return None


def _delivery(webhook: Webhook, request: Request, signed: SignedRequest, text: str, now: datetime) -> Delivery:
    return Delivery(
        key=signed.key,
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
