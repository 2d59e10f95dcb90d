"""Signatures of webhooks: the published examples of each scheme's owner, and requests that nobody has signed."""

import base64
import hmac
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asya.capabilities.triggers.webhooks import UnsignedError, read_keys, read_signature
from asya.protocol.triggers import Signature, Webhook

# https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
GITHUB_KEY = b"It's a Secret to Everybody"
GITHUB_BODY = b"Hello, World!"
GITHUB = {
    "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
}
# https://docs.slack.dev/authentication/verifying-requests-from-slack
SLACK_KEY = b"8f742231b10e8888abcd99yyyzzz85a5"
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
    b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121."
    b"803a0bc887a14d10d2c447fce8b6703c"
)
SLACK_TIME = 1531420618
SLACK = {
    "x-slack-request-timestamp": str(SLACK_TIME),
    "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
}
# https://github.com/standard-webhooks/standard-webhooks, the example of its libraries
STANDARD_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD_TIME = 1614265330
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(STANDARD_TIME),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
# https://github.com/stripe/stripe-dotnet, src/StripeTests: EventUtilityTest and Resources/event_test_signature.json
STRIPE_KEY = b"webhook_secret"
STRIPE_BODY = b"""{
  "id": "evt_123",
  "object": "event",
  "account": "acct_123",
  "api_version": "2017-05-25",
  "created": 1533204620,
  "data": {
    "object": {
      "id": "cus_123",
      "object": "customer",
      "created": 123456789,
      "email": "test@stripe.com",
      "livemode": false,
      "metadata": {}
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {
    "id": "req_123",
    "idempotency_key": "idempotency-key-123"
  },
  "type": "customer.created"
}
"""
STRIPE_TIME = 1533204620
_STRIPE_DIGEST = "2220f87ef101a04665f11cdf770523143f875572008577fa0f20882ddb9cc3c7"
_STRIPE_OLD = "63f3a72374a733066c4be69ed7f8e5ac85c22c9f0a6a612ab9a025a9e4ee7eef"
STRIPE = {"stripe-signature": f"t={STRIPE_TIME},v1={_STRIPE_DIGEST},v0={_STRIPE_OLD}"}
# https://en.wikipedia.org/wiki/HMAC#Examples
PLAIN_KEY = b"key"
PLAIN_BODY = b"The quick brown fox jumps over the lazy dog"
_PLAIN_DIGEST = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
PLAIN = {"x-signature-256": f"sha256={_PLAIN_DIGEST}"}

Published = tuple[Signature, Mapping[str, str], bytes, bytes]
EXAMPLES: list[Published] = [
    ("github", GITHUB, GITHUB_BODY, GITHUB_KEY),
    ("stripe", STRIPE, STRIPE_BODY, STRIPE_KEY),
    ("slack", SLACK, SLACK_BODY, SLACK_KEY),
    ("standard-webhooks", STANDARD, STANDARD_BODY, read_keys(STANDARD_KEY, "standard-webhooks")[0]),
    ("hmac-sha256", PLAIN, PLAIN_BODY, PLAIN_KEY),
]
each_scheme = pytest.mark.parametrize("example", EXAMPLES, ids=[signature for signature, *_ in EXAMPLES])


def webhook(signature: Signature) -> Webhook:
    return Webhook(secret="hook", signature=signature)


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


@pytest.mark.rule("16.webhooks.signature")
@each_scheme
def test_16_the_published_example_of_each_scheme_is_signed(example: Published) -> None:
    signature, headers, body, key = example
    signed = read_signature(webhook(signature), headers, body)
    assert signed.is_signed_with([key])
    assert signed.is_signed_with([b"a key before the rotation", key])
    assert not signed.is_signed_with([b"another key"])
    assert not signed.is_signed_with([])


@pytest.mark.rule("16.webhooks.signature")
@each_scheme
def test_16_a_changed_body_is_not_signed(example: Published) -> None:
    """Changed, cut, longer, in other Unicode or with other line ends: the bytes count, not what they mean."""
    signature, headers, body, key = example
    for other in (body[:-1], body + b" ", body + b"\r\n", b"", b"\xff" + body, body.decode().encode("utf-16")):
        assert not read_signature(webhook(signature), headers, other).is_signed_with([key])


@pytest.mark.rule("16.webhooks.signature")
@each_scheme
def test_16_every_header_of_a_scheme_is_needed(example: Published) -> None:
    signature, headers, body, _ = example
    for name in headers:
        without = {key: value for key, value in headers.items() if key != name}
        with pytest.raises(UnsignedError, match="is missing"):
            read_signature(webhook(signature), without, body)


@pytest.mark.rule("16.webhooks.signature")
@pytest.mark.parametrize(
    ("signature", "headers"),
    [
        ("github", {"x-hub-signature-256": "sha1=757107ea"}),
        ("github", {"x-hub-signature-256": GITHUB["x-hub-signature-256"][:-1]}),
        ("github", {"x-hub-signature-256": ""}),
        ("github", {"x-hub-signature-256": "sha256=" + "é" * 64}),
        ("stripe", {"stripe-signature": f"t={STRIPE_TIME}"}),
        ("stripe", {"stripe-signature": f"v1={_STRIPE_DIGEST}"}),
        ("stripe", {"stripe-signature": f"t=1,t={STRIPE_TIME},v1={_STRIPE_DIGEST}"}),
        ("stripe", {"stripe-signature": f"t={STRIPE_TIME},v0={_STRIPE_DIGEST}"}),
        ("stripe", {"stripe-signature": f"t=-1,v1={_STRIPE_DIGEST}"}),
        ("stripe", {"stripe-signature": f"t=١٢,v1={_STRIPE_DIGEST}"}),
        ("slack", SLACK | {"x-slack-signature": SLACK["x-slack-signature"].replace("v0", "v1")}),
        ("slack", SLACK | {"x-slack-request-timestamp": "9" * 400}),
        ("slack", SLACK | {"x-slack-request-timestamp": "1531420618.5"}),
        ("standard-webhooks", STANDARD | {"webhook-id": ""}),
        ("standard-webhooks", STANDARD | {"webhook-id": "msg.1"}),
        ("standard-webhooks", STANDARD | {"webhook-id": "msg.1.2"}),
        ("standard-webhooks", STANDARD | {"webhook-id": "mśg"}),
        ("standard-webhooks", STANDARD | {"webhook-id": "x" * 256}),
        ("standard-webhooks", STANDARD | {"webhook-signature": "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}),
        ("standard-webhooks", STANDARD | {"webhook-signature": "v1,g0hM"}),
        ("standard-webhooks", STANDARD | {"webhook-signature": "v1,é"}),
        ("hmac-sha256", {"x-signature-256": "no digest"}),
    ],
)
def test_16_a_signature_of_another_form_is_none(signature: Signature, headers: Mapping[str, str]) -> None:
    with pytest.raises(UnsignedError):
        read_signature(webhook(signature), headers, b"{}")


@pytest.mark.rule("16.webhooks.signature")
def test_16_one_of_several_digests_has_to_be_right() -> None:
    """Stripe and Standard Webhooks sign with the old and the new key while the secret rotates."""
    other = "0" * 64
    stripe = {"stripe-signature": f"t={STRIPE_TIME}, v1={other}, v1={_STRIPE_DIGEST}"}
    assert read_signature(webhook("stripe"), stripe, STRIPE_BODY).is_signed_with([STRIPE_KEY])
    wrong = base64.b64encode(bytes(32)).decode()
    standard = STANDARD | {"webhook-signature": f"v1a,{wrong} v1,{wrong} {STANDARD['webhook-signature']}"}
    keys = read_keys(STANDARD_KEY, "standard-webhooks")
    assert read_signature(webhook("standard-webhooks"), standard, STANDARD_BODY).is_signed_with(keys)


@pytest.mark.rule("16.webhooks.signature")
@pytest.mark.parametrize("form", ["hex", "prefixed", "base64", "upper"])
def test_16_a_plain_digest_has_the_header_and_form_of_its_sender(form: str) -> None:
    digest = bytes.fromhex(_PLAIN_DIGEST)
    texts = {"hex": _PLAIN_DIGEST, "prefixed": f"sha256={_PLAIN_DIGEST}", "upper": _PLAIN_DIGEST.upper()}
    text = texts.get(form, base64.b64encode(digest).decode())
    own = Webhook(secret="hook", signature="hmac-sha256", header="Linear-Signature")
    assert read_signature(own, {"linear-signature": text}, PLAIN_BODY).is_signed_with([PLAIN_KEY])


@pytest.mark.rule("16.webhooks.age")
def test_16_a_signed_time_is_five_minutes_from_now_at_most() -> None:
    for signature, headers, body, signed_at in (
        ("stripe", STRIPE, STRIPE_BODY, STRIPE_TIME),
        ("slack", SLACK, SLACK_BODY, SLACK_TIME),
        ("standard-webhooks", STANDARD, STANDARD_BODY, STANDARD_TIME),
    ):
        signed = read_signature(Webhook(secret="hook", signature=signature), headers, body)  # type: ignore[arg-type]
        assert [signed.is_recent(at(signed_at + seconds)) for seconds in (-301, -300, 0, 300, 301)] == [
            False, True, True, True, False,
        ]  # fmt: skip
    for signature, headers, body, _ in (EXAMPLES[0], EXAMPLES[4]):
        assert read_signature(webhook(signature), headers, body).is_recent(at(0))


@pytest.mark.rule("16.webhooks.age")
def test_16_another_time_than_the_signed_one_is_not_signed() -> None:
    """Who has caught a webhook cannot make it younger."""
    stripe = {"stripe-signature": STRIPE["stripe-signature"].replace(str(STRIPE_TIME), str(STRIPE_TIME + 1000))}
    assert not read_signature(webhook("stripe"), stripe, STRIPE_BODY).is_signed_with([STRIPE_KEY])
    slack = SLACK | {"x-slack-request-timestamp": str(SLACK_TIME + 1000)}
    assert not read_signature(webhook("slack"), slack, SLACK_BODY).is_signed_with([SLACK_KEY])
    key, body, old = b"0123456789abcdef", b"{}", "1614265330"
    signed = f"v1,{base64.b64encode(hmac.digest(key, f'm.{old}.'.encode() + body, 'sha256')).decode()}"
    whole = {"id": "m", "timestamp": old, "signature": signed}
    for younger in product((old, "1614266330", None), repeat=2):
        # A time in the headers of one dialect beside the signature in those of the other one.
        headers = {
            f"{prefix}-{name}": time if name == "timestamp" else value
            for prefix, time in zip(("webhook", "svix"), younger, strict=True)
            for name, value in whole.items()
            if time is not None or name != "timestamp"
        }
        with suppress(UnsignedError):
            read = read_signature(webhook("standard-webhooks"), headers, body)
            assert not (read.is_signed_with([key]) and read.is_recent(datetime.fromtimestamp(1614266330, UTC)))


@pytest.mark.rule("16.webhooks.signature")
def test_16_the_parts_of_a_signed_text_cannot_be_split_elsewhere() -> None:
    """Else one message of Standard Webhooks would be another one with a later time, under the same digest."""
    key, body = b"0123456789abcdef", b"1614265330.{}"
    digest = base64.b64encode(hmac.digest(key, b"msg.17." + body, "sha256")).decode()
    moved = {"webhook-id": "msg.17", "webhook-timestamp": "1614265330", "webhook-signature": f"v1,{digest}"}
    with pytest.raises(UnsignedError):
        read_signature(webhook("standard-webhooks"), moved, b"{}")


@pytest.mark.rule("16.webhooks.signature")
@given(
    texts=st.lists(
        st.text(max_size=120) | st.sampled_from(("t=1,v1=", "sha256=", "v0=", "v1, v1,x", "1")), min_size=7, max_size=7
    ),
    body=st.binary(max_size=40),
)
def test_16_no_header_makes_the_check_fail(texts: list[str], body: bytes) -> None:
    names = (*GITHUB, *STRIPE, *SLACK, *STANDARD, *PLAIN)
    headers = dict(zip(names, texts, strict=False))
    for signature, *_ in EXAMPLES:
        with suppress(UnsignedError):
            assert not read_signature(webhook(signature), headers, body).is_signed_with([b"a key of nobody's"])


_IDS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255).filter(
    lambda text: not re.search(r"[.][0-9]{1,11}([.]|$)", text)
)
_ALPHABETS = st.sampled_from([base64.b64encode, base64.urlsafe_b64encode])


@pytest.mark.rule("16.webhooks.dialects")
@given(
    identity=_IDS,
    key=st.binary(min_size=16, max_size=64),
    body=st.binary(max_size=60),
    prefix=st.sampled_from(["webhook", "svix"]),
    marks=st.sampled_from(["", "whsec_", "v1,whsec_"]),
    encoding=_ALPHABETS,
    is_padded=st.booleans(),
    others=st.lists(st.sampled_from(["v1a,AAAA", f"v1,{'A' * 43}=", "v2,x"]), max_size=2),
    separator=st.sampled_from([" ", ",", ", "]),
)
def test_16_each_dialect_of_standard_webhooks_is_taken(
    identity: str,
    key: bytes,
    body: bytes,
    prefix: str,
    marks: str,
    encoding: Callable[[bytes], bytes],
    is_padded: bool,
    others: list[str],
    separator: str,
) -> None:
    """Names of headers, marks and padding of the secret, alphabet and padding of the digest, and several digests."""

    def text(data: bytes) -> str:
        return encoding(data).decode() if is_padded else encoding(data).decode().rstrip("=")

    digest = text(hmac.digest(key, f"{identity}.1614265330.".encode() + body, "sha256"))
    headers = {
        f"{prefix}-id": identity,
        f"{prefix}-timestamp": "1614265330",
        f"{prefix}-signature": separator.join([*others, f"v1,{digest}"]),
    }
    keys = read_keys(f"{marks}{text(key)}", "standard-webhooks")
    assert keys == (key,)
    signed = read_signature(webhook("standard-webhooks"), headers, body)
    assert signed.is_signed_with(keys)
    assert signed.identity == identity.encode()
    assert not signed.is_signed_with([b"a key of nobody's"])


@pytest.mark.rule("16.webhooks.signature")
@given(first=_IDS, second=_IDS, times=st.tuples(st.integers(0, 10**11 - 1), st.integers(0, 10**11 - 1)), rest=st.text())
def test_16_no_two_messages_have_one_signed_text(first: str, second: str, times: tuple[int, int], rest: str) -> None:
    """The body of the one would begin within the id of the other."""
    text = f"{first}.{times[0]}.{second}.{times[1]}.{rest}".encode()
    longer = f"{first}.{times[0]}.{second}"
    headers = {"webhook-id": longer, "webhook-timestamp": str(times[1]), "webhook-signature": f"v1,{'A' * 43}"}
    with pytest.raises(UnsignedError):
        read_signature(webhook("standard-webhooks"), headers, text[len(longer) :])


@pytest.mark.rule("16.webhooks.signature")
@given(key=st.binary(min_size=16, max_size=40), body=st.binary(max_size=60), is_padded=st.booleans())
def test_16_a_plain_digest_needs_no_padding(key: bytes, body: bytes, is_padded: bool) -> None:
    digest = base64.b64encode(hmac.digest(key, body, "sha256")).decode()
    headers = {"x-signature-256": digest if is_padded else digest.rstrip("=")}
    assert read_signature(webhook("hmac-sha256"), headers, body).is_signed_with([key])
