"""What names a webhook: the same in each repetition, and another one for each other webhook."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.triggers.webhooks import SignedRequest, occurrence_key
from asya.protocol.triggers import Signature, Webhook

EVENT = {"id": "evt_1", "object": "event", "pending_webhooks": 1}
SIGNED = SignedRequest(b"signed", (b"digest",), b"identity", 1)


def key(
    signature: Signature,
    body: Any,
    headers: Mapping[str, str] | None = None,
    named: str | None = None,
    signed: str = "",
) -> str:
    """The key of a webhook; without a text of its own, its scheme signs the body as JSON."""
    content = (signed or json.dumps(body)).encode()
    webhook = Webhook(secret="hook", signature=signature, id=named)
    return occurrence_key(webhook, SignedRequest(content, (b"digest",), content), headers or {}, json.dumps(body))


@pytest.mark.rule("16.webhooks.once", "16.webhooks.id")
def test_16_a_repetition_with_a_new_time_has_the_same_key() -> None:
    """Schemes sign each attempt with its own time, which is no part of what names the webhook."""
    for signature in ("github", "stripe", "slack", "standard-webhooks", "hmac-sha256"):
        webhook = Webhook(secret="hook", signature=signature)  # type: ignore[arg-type]
        first = occurrence_key(webhook, SignedRequest(b"1.a", (b"x",), b"a", 1), {}, "a")
        assert occurrence_key(webhook, SignedRequest(b"2.a", (b"y",), b"a", 2), {}, "a") == first
        assert occurrence_key(webhook, SignedRequest(b"1.b", (b"x",), b"b", 1), {}, "b") != first


@pytest.mark.rule("16.webhooks.id")
def test_16_stripe_names_its_events_in_the_body() -> None:
    """A retry tells how many webhooks are pending by then."""
    assert key("stripe", EVENT) == key("stripe", EVENT | {"pending_webhooks": 2})
    assert key("stripe", EVENT) != key("stripe", EVENT | {"id": "evt_2"})
    assert key("stripe", EVENT, named="/object") == key("stripe", {"object": "event"}, named="/object")


@pytest.mark.rule("16.webhooks.id")
@pytest.mark.parametrize("body", [{"object": "event"}, {"id": ""}, {"id": None}, [1], "text", 5, None])
def test_16_a_webhook_without_the_id_is_known_by_what_is_signed(body: Any) -> None:
    assert key("stripe", body, signed="one") != key("stripe", body, signed="two")
    assert key("stripe", body, signed="one") == key("github", body, signed="one")


@pytest.mark.rule("16.webhooks.id")
def test_16_a_header_names_a_webhook() -> None:
    named = "X-GitHub-Delivery"
    first = key("github", {"a": 1}, {"x-github-delivery": "72d3162e"}, named)
    assert key("github", {"a": 2}, {"x-github-delivery": "72d3162e"}, named) == first
    assert key("github", {"a": 1}, {"x-github-delivery": "e2713d27"}, named) != first
    assert key("github", {"a": 1}, {}, named) == key("github", {"a": 1}) != first
    assert key("github", {"a": 1}, {"x-github-delivery": "72d3162e"}) == key("github", {"a": 1})


@pytest.mark.rule("16.webhooks.id")
@given(
    one=st.text() | st.integers() | st.booleans(),
    other=st.text() | st.integers() | st.booleans(),
    name=st.text(),
    rest=st.dictionaries(st.text(), st.integers()),
)
def test_16_ids_of_any_form_are_told_apart(one: Any, other: Any, name: str, rest: dict[str, int]) -> None:
    """Two webhooks are one if their ids are equal, with their types, and whatever else the bodies have."""
    pointer = "/" + name.replace("~", "~0").replace("/", "~1")
    first = key("hmac-sha256", {**rest, name: one}, named=pointer)
    second = key("hmac-sha256", {name: other}, named=pointer)
    if one not in ("",) and other not in ("",):
        assert (first == second) is (json.dumps(one) == json.dumps(other))
