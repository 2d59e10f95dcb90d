"""The events of API Gateway and the rendering of responses (`protocol §13`)."""

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asya.function.aws.telemetry import Telemetry
from asya.gateway.call_table import CALLS
from asya.gateway.http.router import HttpRoute, Request, Responder, Response, TextBody, answer
from tests.doubles.gateway_functions import ALICE, route_event
from tests.doubles.tasks import at

LOG = Telemetry("flights", "test").log
HEALTH = next(call for call in CALLS if call.route == "GET /health")
# What a decoder replaces by one U+FFFD, which has three bytes, too.
THREE_FOR_THREE = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{2}|\xed[\xa0-\xbf][\x80-\xbf]")
BODIES = st.binary() | st.lists(
    st.binary(min_size=1, max_size=3) | st.text(max_size=3).map(str.encode) | st.just("\ufffd".encode())
).map(b"".join)


def taken(event: dict[str, Any]) -> bytes | str:
    """Return the body that the responder of a call gets, or the code of the refusal."""
    bodies: list[bytes] = []

    def take(request: Request, _now: object) -> Response:
        bodies.append(request.body)
        return Response(200, None)

    response = answer(route_event("GET /health", ALICE) | event, [HttpRoute(HEALTH, take)], at(0), LOG)
    return bodies[0] if bodies else str(json.loads(response["body"])["error"]["code"])


@pytest.mark.rule("13.bytes")
@given(BODIES)
@example(b'{"payload": {"a": "\xe9\xff"}}')
@example("\ufffd".encode())
def test_13_no_body_is_taken_that_is_evidently_not_what_was_sent(sent: bytes) -> None:
    text, headers = sent.decode("utf-8", "replace"), {"Content-Length": str(len(sent))}
    got = taken({"headers": headers, "body": text})
    if text.encode() == sent:
        assert got == sent
    elif not THREE_FOR_THREE.search(sent):
        assert got == "invalid_body"
    encoded = base64.b64encode(sent).decode()
    assert taken({"headers": headers, "body": encoded, "isBase64Encoded": True}) == sent


@pytest.mark.rule("13.bytes")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_13_another_encoding_that_arrives_as_text_is_refused(encoding: str) -> None:
    sent = '{"who": "Zoë ÿ"}'.encode(encoding)
    assert (
        taken({"headers": {"content-length": str(len(sent))}, "body": sent.decode("utf-8", "replace")})
        == "invalid_body"
    )


@pytest.mark.parametrize("length", [{}, {"content-length": "many"}, {"content-length": "5"}])
def test_a_text_is_taken_as_it_is_without_a_sign_that_it_was_changed(length: dict[str, str]) -> None:
    assert taken({"headers": length, "body": "Zoë"}) == "Zoë".encode()
    if "5" not in length.values():
        assert taken({"headers": length, "body": "\ufffd"}) == "\ufffd".encode()


def test_a_text_body_is_unchanged_and_other_content_is_json() -> None:
    def answered(content: object) -> tuple[str, str]:
        action: Responder = lambda *_: Response(200, content)  # noqa: E731
        response = answer(route_event("GET /health", ALICE), [HttpRoute(HEALTH, action)], at(0), LOG)
        return response["headers"]["content-type"], response["body"]

    assert answered(TextBody("text/event-stream", ": hello\n\n")) == ("text/event-stream", ": hello\n\n")
    assert answered({"status": "ok"}) == ("application/json", '{"status":"ok"}')
