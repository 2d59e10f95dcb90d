"""The message of a webhook, and the occurrence that it is."""

import json

import pytest
from msgspec.structs import replace

from asya.capabilities.triggers.messages import OtherDeploymentError, UnusableMessageError, read_occurrences
from asya.capabilities.triggers.webhooks import Delivery, webhook_message
from asya.protocol.mesh_table import MeshTable
from asya.protocol.strict_json import NotJsonError
from asya.protocol.task import StartedBy
from asya.protocol.triggers import Trigger, Webhook

TRIGGER = Trigger(route=("greet",), webhook=Webhook(secret="hook", signature="github"))
DELIVERY = Delivery(
    key="webhook abc", body='{"a": {"b": [1, "é"]}, "type": "made"}', received_at="2026-11-25T12:00:00Z"
)


def mesh(trigger: Trigger) -> MeshTable:
    return MeshTable(namespace="shop", actors={}, triggers={"hook": trigger})


@pytest.mark.rule("16.webhooks.message")
def test_16_the_message_of_a_webhook_is_its_occurrence() -> None:
    message = webhook_message("hook", DELIVERY)
    assert message.isascii()
    assert json.loads(message)["webhook"]["key"] == "webhook abc"
    [occurrence] = read_occurrences(message, mesh(TRIGGER))
    assert (occurrence.trigger, occurrence.key) == ("hook", "webhook abc")
    assert occurrence.started_by == StartedBy(kind="trigger", name="hook")
    assert json.loads(bytes(occurrence.payload)) == json.loads(DELIVERY.body)


@pytest.mark.rule("16.webhooks.message")
def test_16_characters_that_sqs_refuses_are_escaped() -> None:
    """As are all others outside ASCII."""
    message = webhook_message("hook", replace(DELIVERY, body="\ufffe\0 é 😀", content_type="text/plain"))
    assert message.isascii()
    [occurrence] = read_occurrences(message, mesh(TRIGGER))
    assert json.loads(bytes(occurrence.payload)) == {"body": "\ufffe\0 é 😀"}
    with pytest.raises(NotJsonError):
        webhook_message("hook", replace(DELIVERY, body="\ud800"))


@pytest.mark.rule("16.webhooks.payload")
@pytest.mark.parametrize(
    ("pointer", "part"), [("", {"a": {"b": [1, "é"]}, "type": "made"}), ("/a", {"b": [1, "é"]}), ("/a/b/1", "é")]
)
def test_16_the_payload_is_the_part_at_the_input(pointer: str, part: object) -> None:
    [occurrence] = read_occurrences(webhook_message("hook", DELIVERY), mesh(replace(TRIGGER, input=pointer)))
    assert json.loads(bytes(occurrence.payload)) == part


@pytest.mark.rule("16.webhooks.payload", "16.payload")
def test_16_a_template_has_the_body_the_event_and_the_time() -> None:
    template = {"all": ["{body}"], "text": "{event} at {received_at}", "event": "{event}"}
    trigger = replace(TRIGGER, payload=template)
    [told] = read_occurrences(webhook_message("hook", replace(DELIVERY, event="push")), mesh(trigger))
    assert json.loads(bytes(told.payload)) == {
        "all": [json.loads(DELIVERY.body)], "text": "push at 2026-11-25T12:00:00Z", "event": "push",
    }  # fmt: skip
    [named] = read_occurrences(webhook_message("hook", DELIVERY), mesh(trigger))
    assert json.loads(bytes(named.payload))["event"] == "made"


@pytest.mark.rule("16.failures")
@pytest.mark.parametrize(
    ("trigger", "delivery", "problem"),
    [
        (replace(TRIGGER, input="/a/c"), DELIVERY, "there is no /a/c in it"),
        (replace(TRIGGER, input="/a/b/2"), DELIVERY, "there is no"),
        (replace(TRIGGER, input="/a/b/٠"), DELIVERY, "there is no"),
        (TRIGGER, replace(DELIVERY, body="{"), "not valid JSON"),
        (TRIGGER, replace(DELIVERY, body=r'"\ud800"'), "not valid JSON"),
        (Trigger(route=("greet",), cron="0 * * * *"), DELIVERY, "has no webhook"),
        (replace(TRIGGER, payload={"x": "a {body}"}), DELIVERY, "no text"),
    ],
)
def test_16_a_webhook_without_a_payload_can_start_nothing(trigger: Trigger, delivery: Delivery, problem: str) -> None:
    with pytest.raises(UnusableMessageError, match=problem):
        read_occurrences(webhook_message("hook", delivery), mesh(trigger))


@pytest.mark.rule("16.failures.unknown")
def test_16_a_message_of_an_unknown_trigger_is_of_its_own_kind() -> None:
    """A deployment may be under way, so it may be known soon."""
    with pytest.raises(OtherDeploymentError, match="no trigger 'other'"):
        read_occurrences(webhook_message("other", DELIVERY), mesh(TRIGGER))


@pytest.mark.rule("16.webhooks.message", "16.messages")
@pytest.mark.parametrize("webhook", [None, {}, {"key": 1}, {"key": "a", "body": "{}", "received_at": "x", "more": 1}])
def test_16_a_message_of_another_form_is_unusable(webhook: object) -> None:
    with pytest.raises(UnusableMessageError):
        read_occurrences(json.dumps({"trigger": "hook", "webhook": webhook}).encode(), mesh(TRIGGER))
