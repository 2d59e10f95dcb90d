"""protocol §4: references to payloads, and envelopes that are too large for their headers."""

import pytest
from msgspec import Raw
from msgspec.json import encode as encode_json

from asya.function.claim_check import read_reference, reduced_for_sump, reference_to, with_reference
from asya.function.hop import Delivery
from asya.function.sqs import MESSAGE_BYTES, is_sendable
from asya.protocol.codec import ParseError, decode
from tests.doubles.envelopes import message, status


@pytest.mark.rule("4.too-large-for-its-headers")
def test_unmanaged_headers_go_first_then_the_route_too() -> None:
    managed = {"x-asya-root": "env-0", "x-asya-pause": "p" * 5000}
    body = message(headers={"mine": "x"} | managed, other="key", status=status(attempt=2, own="y"))
    envelope = decode(body)
    first, last = reduced_for_sump(envelope, "it has 2 bytes; 1 at most")
    assert set(first.headers) == set(managed)
    assert first.route == envelope.route
    assert set(last.headers) == {"x-asya-root"}
    assert (last.route.prev, last.route.curr, last.route.next) == ((), "x-sump", ())
    assert (last.extra, last.status_extra) == ({}, {})
    for reduced in (first, last):
        assert (reduced.id, bytes(reduced.payload)) == (envelope.id, bytes(envelope.payload))
        assert reduced.status is not None
        assert (reduced.status.phase, reduced.status.reason, reduced.status.attempt) == ("failed", "RuntimeError", 2)
        assert reduced.status.error is not None
        assert reduced.status.error.message.startswith("it has 2 bytes; 1 at most; its headers")


DIGEST = "ab" * 32


def reference(key: str) -> Raw:
    return Raw(encode_json({"key": key, "size": 2, "sha256": DIGEST}))


@pytest.mark.rule("4.claim-check.readers")
def test_a_key_names_the_actor_that_gets_the_message() -> None:
    made = reference_to(b"{}", "payloads/", "infer")
    assert made.key == f"payloads/infer/{made.sha256[:2]}/{made.sha256}.json"
    assert read_reference(reference(made.key), "env-1", "infer").key == made.key


@pytest.mark.rule("4.claim-check.readers")
@pytest.mark.parametrize("prefix", ["payloads/", "inbox/"])
@pytest.mark.parametrize(
    "name", ["post/ab/x.json", "infer", "inferno/ab/x.json", f"ab/{DIGEST}", f"ab/{'AB' * 32}.json"]
)
def test_a_payload_for_another_actor_is_a_parse_error(prefix: str, name: str) -> None:
    """Its role may not read the object, so the message would come again until it is a dead letter."""
    with pytest.raises(ParseError, match="is not a payload for infer"):
        read_reference(reference(prefix + name), "env-1", "infer")
    # x-sink and x-sump get the references that others received.
    assert read_reference(reference(prefix + name), "env-1", None).key == prefix + name


@pytest.mark.rule("4.claim-check")
def test_a_header_with_a_character_that_sqs_refuses_is_sent_with_an_escape() -> None:
    """The mesh writes ids into headers, and their senders have chosen them."""
    envelope = decode(message(headers={"h": 1})).with_headers({"x-asya-root": "id-\uffff"})
    made = with_reference(
        Delivery("infer", b"", "next"), envelope, reference_to(b"1", "payloads/", "infer"), MESSAGE_BYTES
    )
    assert is_sendable(made.body)
    assert decode(made.body).header("x-asya-root") == "id-\uffff"
