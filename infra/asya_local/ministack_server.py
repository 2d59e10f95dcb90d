"""MiniStack with the parts of AWS that it lacks: TLS, checks of keys, tokens and permissions, replaced functions.

Runs in `.venv-cloud`, started by `asya_local.servers`. It imports nothing of this project.

TLS: the buckets refuse requests without TLS (`aws:SecureTransport`), and loopback has none. The wrapper adds the headers of a
TLS-terminating proxy to each request. Calls of HTTP APIs keep `http`, because the gateway makes links of it.

Keys: MiniStack accepts the access key `test`, or any 12 digits, as root's without a signature. The wrapper refuses these keys
where IAM is enforced.

Tokens (JWT): the wrapper replaces MiniStack's signature check, which accepts tokens without an expiry.

Source accounts: roles may be assumed by AWS services for this account only (`aws:SourceAccount`). MiniStack takes root for any
service, and the wrapper adds the account that a service would name.

Actions: AWS authorizes a batch of SQS messages as the action for a single one. MiniStack has an action of its own for it.

Attributes: AWS knows which attributes a BatchGetItem of DynamoDB names (`dynamodb:Attributes`). MiniStack does not.

Functions: `function_workers.py` and `code_cache.py` replace parts of the Lambda runtime.
"""

import asyncio
import dataclasses
import json
import os
import re
import resource
import runpy
from itertools import chain
from pathlib import Path
from typing import Any

import jwt
from hypercorn.asyncio import serve  # type: ignore[import-not-found,unused-ignore]
from hypercorn.config import Config  # type: ignore[import-not-found,unused-ignore]
from ministack.app import AUTH, app
from ministack.core import iam_actions, iam_evaluator, lambda_runtime
from ministack.services import apigateway, lambda_svc

_WELL_KNOWN_KEY = re.compile(rb"Credential=(test|\d{12})/")
_REFUSAL = (
    b'{"__type": "InvalidClientTokenId", "message": "The security token included in the request is invalid: '
    b'the local cloud enforces IAM and accepts only its own keys; use those of local.json."}'
)

_BATCH_ACTIONS = {
    f"{action}Batch": action for action in ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
}
_extract_iam_action = iam_actions.extract_iam_action
_dynamodb_service_context = iam_actions.dynamodb_service_context
_evaluate_trust_policy = iam_evaluator.evaluate_trust_policy


def extract_iam_action(*request: Any) -> str | None:
    """Return the IAM action of a request as AWS names it; None if it needs no permission."""
    action: str | None = _extract_iam_action(*request)
    return _BATCH_ACTIONS.get(action, action) if action is not None else None


def dynamodb_service_context(body: bytes) -> dict[str, Any]:
    """Return the condition keys of a DynamoDB request; a batch of reads names what each of its tables' reads names."""
    contexts = [_dynamodb_service_context(json.dumps(read).encode()) for read in _batched_reads(body)]
    if not contexts:
        return dict(_dynamodb_service_context(body))
    reads = [context.get("dynamodb:Attributes") for context in contexts]
    if any(attributes is None for attributes in reads):
        return {"dynamodb:Select": "ALL_ATTRIBUTES"}
    return {"dynamodb:Attributes": sorted({*chain(*reads)}), "dynamodb:Select": "SPECIFIC_ATTRIBUTES"}


def _batched_reads(body: bytes) -> list[dict[str, Any]]:
    if b'"RequestItems"' not in body:
        return []
    try:
        tables = json.loads(body)["RequestItems"]
        return [read for read in tables.values() if "Keys" in read]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # DynamoDB refuses it


def has_valid_signature(token: str, key: dict[str, Any]) -> bool:
    """Return whether the issuer's key (JWK) signed the token with RS256 and the token has an expiry.

    MiniStack checks issuer, audience and scopes afterwards.
    """
    options: Any = {"require": ["exp"], "enforce_minimum_key_length": True}
    options |= {"verify_aud": False, "verify_sub": False, "verify_jti": False}
    try:
        jwt.decode(token, jwt.PyJWK(key, "RS256"), algorithms=["RS256"], options=options)
    except jwt.PyJWTError:
        return False
    return True


def evaluate_trust_policy(document: Any, caller_arn: str, context: Any = None) -> bool:
    """Return whether a role's trust policy admits the caller. Root stands for an AWS service, which names its account."""
    if context is not None and caller_arn.endswith(":root"):
        source = {"aws:sourceaccount": context.principal_account}
        context = dataclasses.replace(context, service_context={**context.service_context, **source})
    return bool(_evaluate_trust_policy(document, caller_arn, context))


async def behind_tls(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve MiniStack's ASGI application behind the headers of a proxy; refuse well-known keys."""
    if scope["type"] != "http":
        await app(scope, receive, send)
        return
    headers = [(name, value) for name, value in scope["headers"] if not name.lower().startswith(b"x-forwarded-p")]
    authorization = next((value for name, value in headers if name.lower() == b"authorization"), b"")
    if AUTH and _WELL_KNOWN_KEY.search(authorization):
        start = {"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"application/json")]}
        await send(start)
        await send({"type": "http.response.body", "body": _REFUSAL})
        return
    host = next((value for name, value in headers if name.lower() == b"host"), b"")
    if scope["path"].startswith("/_aws/execute-api/") or b".execute-api." in host:
        proxy = [(b"x-forwarded-proto", b"http"), (b"x-forwarded-port", os.environ["GATEWAY_PORT"].encode())]
    else:
        proxy = [(b"x-forwarded-proto", b"https")]
    await app({**scope, "headers": [*headers, *proxy]}, receive, send)


def _patch_ministack() -> None:
    iam_actions.extract_iam_action = extract_iam_action
    iam_actions.dynamodb_service_context = dynamodb_service_context
    apigateway._verify_rs256_signature = has_valid_signature
    iam_evaluator.evaluate_trust_policy = evaluate_trust_policy
    _module("code_cache")["install"](lambda_runtime)
    _module("function_workers")["install"](lambda_runtime, lambda_svc)


def _module(name: str) -> dict[str, Any]:
    """Run a module of this folder; without the project, it cannot be imported."""
    return runpy.run_path(str(Path(__file__).with_name(f"{name}.py")))


def main() -> None:
    """Serve on BIND_HOST and GATEWAY_PORT until SIGTERM."""
    _patch_ministack()
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    config = Config()
    config.bind = [f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = os.environ.get("LOG_LEVEL", "INFO")
    asyncio.run(serve(behind_tls, config))


if __name__ == "__main__":
    main()
