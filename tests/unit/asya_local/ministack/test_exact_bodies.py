"""MiniStack passes the bodies of calls of HTTP APIs as they were sent."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from typing import Any

import pytest

from tests.paths import PROJECT

CLOUD_PYTHON = PROJECT / ".venv-cloud" / "bin" / "python"
PROGRAM = """
import asyncio, base64, json, runpy, sys
server = runpy.run_path(sys.argv[1])
server["_patch_ministack"]("secret")
apigateway, lambda_svc = server["apigateway"], server["lambda_svc"]
events = []
lambda_svc._get_func_record_for_ref_in_scope = lambda *_, **__: ({}, {}, "function")
lambda_svc._execution_record_for_config = lambda *_: {}
lambda_svc._execute_function_with_config_scope = lambda _, event: events.append(event)
lambda_svc.lambda_execute_result_to_api_proxy_response = lambda _: ({"body": ""}, None)
async def call(kind, body):
    headers = {"content-type": kind} if kind else {}
    await apigateway._invoke_lambda_proxy({}, "api", "$default", "/", "POST", headers, base64.b64decode(body), {})
async def call_all():
    for kind, body in json.load(sys.stdin):
        await call(kind, body)
asyncio.run(call_all())
print(json.dumps([[event.get("body"), event["isBase64Encoded"]] for event in events]))
"""
TEXT_TYPES = ("application/json", "application/json; charset=utf-8", "text/plain", "text/csv", "application/xml")
OTHER_TYPES = ("", "application/octet-stream", "application/x-www-form-urlencoded", "application/vnd.x+json")


def events(calls: list[tuple[str, bytes]]) -> list[tuple[str | None, bool]]:
    """Return the body and its encoding in the event of each call."""
    program = PROJECT / "infra" / "asya_local" / "ministack" / "server.py"
    given = json.dumps([(kind, base64.b64encode(body).decode()) for kind, body in calls])
    done = subprocess.run(
        [CLOUD_PYTHON, "-c", PROGRAM, program], input=given, capture_output=True, text=True, check=True, cwd=PROJECT
    )
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return [(body, encoded) for body, encoded in found]


def bodies() -> list[bytes]:
    """Return bodies in encodings, and broken ones: each text with some bytes changed, cut or put in."""
    chance = random.Random(13)
    text = '{"payload": {"who": "Zoë 東京 \U0001f600 \ufffd"}}'
    whole = [text.encode(encoding) for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-32-be")]
    broken = []
    for _ in range(200):
        content = bytearray(chance.choice(whole[:2]))
        at = chance.randrange(len(content))
        content[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
        broken.append(bytes(content))
    return [*whole, '{"a": "é"}'.encode("latin-1"), b'{"a": "\xed\xa0\x80"}', b"\xf0\x9f\x98", *broken]


@pytest.mark.rule("13.bytes")
def test_13_no_byte_of_a_body_is_lost_under_any_type() -> None:
    calls = [(kind, body) for kind in (*TEXT_TYPES, *OTHER_TYPES) for body in bodies()]
    for (kind, sent), (body, encoded) in zip(calls, events(calls), strict=True):
        assert body is not None
        assert (base64.b64decode(body) if encoded else body.encode()) == sent
        assert not encoded or kind in OTHER_TYPES or sent.decode("utf-8", "ignore").encode() != sent


def test_a_text_arrives_as_text_and_no_body_as_none() -> None:
    kinds = [("application/json", "{é}".encode()), ("application/json", b"")]
    assert events(kinds) == [("{é}", False), (None, False)]
