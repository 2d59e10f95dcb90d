"""protocol §4, claim check: a message above the limit leaves its payload in the mesh's own bucket."""

import hashlib
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.function.aws.claim_check import ClaimCheck
from asya.function.hop import Delivery
from asya.protocol.codec import ParseError, decode, encode
from asya.testing.services.clients import Bucket
from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import message, status

LIMIT = 2000


def make(s3: MemoryS3, limit: int = LIMIT) -> ClaimCheck:
    return ClaimCheck(s3, "mesh-bucket", limit)  # type: ignore[arg-type]


def delivery(**members: Any) -> Delivery:
    return Delivery("post", message(**members), "next", delay=7, group="acme")


def reference(**changes: Any) -> dict[str, Any]:
    text = b'{"big":1}'
    known = {"key": "payloads/ab/object.json", "size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    return known | changes


def refused(s3: MemoryS3, header: Any) -> ParseError:
    with pytest.raises(ParseError) as caught:
        make(s3).redeem(decode(message(payload=None, headers={"x-asya-payload-ref": header})))
    return caught.value


@pytest.mark.rule("4.claim-check")
def test_a_small_message_is_left_alone() -> None:
    s3 = MemoryS3()
    small = delivery()
    assert make(s3).offload(small) is small
    envelope = decode(small.body)
    assert make(s3).redeem(envelope) is envelope
    assert s3.calls == []


@pytest.mark.rule("3.payload-ref", "4.claim-check")
def test_a_large_payload_travels_by_reference_and_comes_back_byte_for_byte() -> None:
    s3 = MemoryS3()
    text = '{ "a" : 1.50, "text": "' + "ü" * LIMIT + '" }'
    body = message(payload=None).replace(b'"payload":null', b'"payload":' + text.encode())
    offloaded = make(s3).offload(Delivery("post", body, "next", delay=7, group="acme"))
    assert (offloaded.actor, offloaded.kind, offloaded.delay, offloaded.group) == ("post", "next", 7, "acme")
    assert len(offloaded.body) <= LIMIT
    assert json.loads(offloaded.body)["payload"] is None
    (key,) = s3.keys("payloads/")
    assert key.startswith("payloads/post/")
    assert s3.content(key) == text.encode()
    back = make(s3).redeem(decode(offloaded.body))
    assert back == decode(body)
    assert "x-asya-payload-ref" not in back.headers


@pytest.mark.rule("4.claim-check.reference")
def test_offloading_again_writes_the_same_object() -> None:
    s3 = MemoryS3()
    large = delivery(payload="x" * LIMIT)
    assert make(s3).offload(large) == make(s3).offload(large)
    assert len(s3.objects) == 1


def test_characters_that_sqs_refuses_travel_by_reference_too() -> None:
    s3 = MemoryS3()
    body = '{"id":"e","route":{"prev":[],"curr":"post","next":[]},"payload":"\uffff"}'.encode()
    offloaded = make(s3).offload(Delivery("post", body, "next"))
    assert offloaded.body.isascii()
    assert make(s3).redeem(decode(offloaded.body)) == decode(body)


@pytest.mark.rule("4.claim-check.readers")
def test_an_actor_restores_its_own_payloads_and_fetches_no_other() -> None:
    s3 = MemoryS3()
    body = make(s3).offload(delivery(payload="x" * LIMIT)).body
    s3.calls.clear()
    mine, others = (ClaimCheck(s3, "mesh-bucket", reader=reader) for reader in ("post", "infer"))  # type: ignore[arg-type]
    with pytest.raises(ParseError, match="is not a payload for infer"):
        others.redeem(decode(body))
    assert s3.calls == []
    assert mine.redeem(decode(body)).payload == make(s3).redeem(decode(body)).payload


@pytest.mark.rule("4.too-large-for-its-headers")
def test_an_envelope_too_large_for_its_headers_goes_to_x_sump_without_them() -> None:
    s3 = MemoryS3()
    headers = {"mine": "h" * LIMIT, "x-asya-root": "env-0"}
    offloaded = make(s3).offload(delivery(headers=headers, payload={"kept": True}))
    assert (offloaded.actor, offloaded.kind, offloaded.delay) == ("x-sump", "sump", 0)
    envelope = make(s3).redeem(decode(offloaded.body))
    assert set(envelope.headers) == {"x-asya-root"}
    assert json.loads(bytes(envelope.payload)) == {"kept": True}
    assert envelope.status is not None
    assert envelope.status.phase == "failed"
    assert envelope.status.error is not None
    assert f"{LIMIT} at most can be sent; its headers were dropped" in envelope.status.error.message


def test_an_envelope_too_large_for_its_route_loses_that_too() -> None:
    route = {"prev": [], "curr": "post", "next": ["post"] * LIMIT}
    s3 = MemoryS3()
    offloaded = make(s3).offload(delivery(route=route, status=status(own="x" * LIMIT)))
    envelope = make(s3).redeem(decode(offloaded.body))
    assert offloaded.actor == "x-sump"
    assert envelope.route.curr == "x-sump"


ERROR = {"type": "ValueError", "message": "no", "mro": [], "traceback": ""}
CHARACTERS = ("a", '"', "é", "あ", "\ufffe")


def placed(text: str) -> dict[str, dict[str, Any]]:
    """Members of a failed envelope that a sender has written, with the text in one place of each."""
    parts = [text[:100]] * (len(text) // 130)
    return {
        **{
            f"error.{name}": {"status": status(phase="failed", reason="Timeout", error=ERROR | {name: value})}
            for name, value in (("message", text), ("type", text), ("traceback", text), ("mro", parts))
        },
        **{name: {"status": status(phase="failed", **{name: text})} for name in ("actor", "reason", "own")},
        "prev": {"route": {"prev": [text], "curr": "infer", "next": []}},
        "next": {"route": {"prev": [], "curr": "infer", "next": parts}},
        "header": {"headers": {"mine": text}},
        "managed": {"headers": {"x-asya-root": text}},
        "many managed": {"headers": {f"x-asya-{number}": text[:1000] for number in range(len(text) // 1100)}},
        "many names": {"headers": {f"x-asya-{text[:300]}{number}": 1 for number in range(len(text) // 330)}},
        "unknown key": {"other": text},
        "parent": {"parent_id": text},
    }


@pytest.mark.rule("4.too-large-for-its-headers")
@pytest.mark.parametrize("character", CHARACTERS)
@pytest.mark.parametrize("place", placed(""))
def test_an_end_that_sqs_has_brought_is_sent_on(place: str, character: str) -> None:
    """Its sender wrote UTF-8, and what the mesh writes is ASCII."""
    most = 256 * 1024
    members = placed(character * ((most - 3000) // len(character.encode())))[place]
    received = decode(json.dumps(json.loads(message(**members)), ensure_ascii=False).encode())
    offloaded = make(MemoryS3(), most).offload(Delivery("x-sink", encode(received), "sink"))
    assert len(offloaded.body) <= most
    sent = decode(offloaded.body)
    assert sent.id == received.id
    assert sent.status is not None
    if place.startswith("error."):
        assert (offloaded.actor, sent.status.reason, sent.route) == ("x-sink", "Timeout", received.route)
        assert sent.status.error is not None
        assert sent.status == received.status or sent.status.error.message.endswith("; the error was cut)")


@pytest.mark.rule("4.claim-check.trouble")
def test_a_refusal_of_s3_keeps_the_message() -> None:
    s3 = MemoryS3(fails=lambda action, key: True)
    with pytest.raises(ClientError):
        make(s3).offload(delivery(payload="x" * LIMIT))
    with pytest.raises(ClientError):
        make(s3).redeem(decode(message(payload=None, headers={"x-asya-payload-ref": reference()})))


@pytest.mark.rule("4.claim-check.bad-reference")
@pytest.mark.parametrize(
    "key",
    [
        "runs/x",
        "other/payloads/x",
        "payloads/../runs/x",
        "/payloads/x",
        "s3://other/payloads/x",
        "",
        "payloads",
        "inbox/..",
    ],
)
def test_a_reference_to_anywhere_else_is_a_parse_error(key: str) -> None:
    s3 = MemoryS3()
    error = refused(s3, reference(key=key))
    assert "headers.x-asya-payload-ref" in str(error)
    assert error.envelope_id == "env-1"
    assert s3.calls == []


@pytest.mark.rule("4.claim-check.reference")
@pytest.mark.parametrize(
    "header",
    [
        "payloads/x",
        5,
        None,
        [],
        {"key": "payloads/x"},
        reference(bucket="other"),
        reference(size=-1),
        reference(size="9"),
    ],
)
def test_a_malformed_reference_is_a_parse_error(header: Any) -> None:
    assert "x-asya-payload-ref" in str(refused(MemoryS3(), header))


@pytest.mark.rule("4.claim-check.bad-reference")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "does not exist"),
        (b'{"big":2}', "does not match the size or hash"),
        (b'{"big":1} and more', "does not match the size or hash"),
        (b"", "does not match the size or hash"),
    ],
)
def test_a_missing_or_another_object_is_a_parse_error(content: bytes | None, problem: str) -> None:
    objects = {"payloads/ab/object.json": content} if content is not None else {}
    assert problem in str(refused(MemoryS3(bucket=Bucket(name="mesh-bucket", objects=objects)), reference()))


@pytest.mark.parametrize("content", [b"no json", b"[1,", b'"\xff"', b"[" * 100_000])
def test_an_object_that_is_not_json_is_a_parse_error(content: bytes) -> None:
    digest = hashlib.sha256(content).hexdigest()
    s3 = MemoryS3(bucket=Bucket(name="mesh-bucket", objects={"inbox/x": content}))
    assert "is not JSON" in str(refused(s3, reference(key="inbox/x", size=len(content), sha256=digest)))


def test_a_payload_that_only_contains_the_name_of_the_header_is_left_alone() -> None:
    envelope = decode(message(payload="x-asya-payload-ref"))
    assert make(MemoryS3()).redeem(envelope) is envelope


@pytest.mark.rule("4.claim-check.memory")
def test_a_function_that_reads_for_all_reads_no_payload_that_it_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender names the size. An object of 700 MB would end x-sink, and delay what came with it."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
    s3 = MemoryS3(bucket=Bucket(name="mesh-bucket", objects={"payloads/ab/object.json": b'{"big":1}'}))
    error = refused(s3, reference(size=700_000_000))
    assert "700,000,000 bytes, and this function has memory for 87,241,523" in str(error)
    assert make(s3).redeem(decode(message(payload=None, headers={"x-asya-payload-ref": reference()})))
    crew = ClaimCheck(s3, "mesh-bucket", reader="ab")  # type: ignore[arg-type]
    with pytest.raises(ParseError, match="has memory for"):
        crew.redeem(decode(message(payload=None, headers={"x-asya-payload-ref": reference(size=700_000_000)})))
    own = ClaimCheck(s3, "mesh-bucket", reader="ab", is_bounded=False)  # type: ignore[arg-type]
    with pytest.raises(ParseError, match="does not match"):  # an actor has the memory that its author gave it
        own.redeem(decode(message(payload=None, headers={"x-asya-payload-ref": reference(size=700_000_000)})))


@pytest.mark.rule("4.claim-check.bad-reference")
@pytest.mark.parametrize("form", [{"StorageClass": "GLACIER"}, {"SSECustomerAlgorithm": "AES256"}])
def test_an_object_that_nobody_can_read_is_a_parse_error(form: dict[str, str]) -> None:
    """Its sender may store it in any form; the message would come back for hours, and then be a dead letter."""
    s3 = MemoryS3()
    s3.put_object(Bucket="mesh-bucket", Key="payloads/ab/object.json", Body=b'{"big":1}', **form)
    assert "is archived, or encrypted with a key that S3 does not keep" in str(refused(s3, reference()))
