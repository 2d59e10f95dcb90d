"""MiniStack with the parts of AWS that it lacks: TLS, authentication, checks of tokens and permissions, replaced functions.

Runs in `.venv-cloud`, started by `asya_local.servers`. Of this project it imports `asya_local.authentication` only.

TLS: the buckets refuse requests without TLS (`aws:SecureTransport`), and loopback has none. The wrapper adds the headers of a
TLS-terminating proxy to each request. Calls of HTTP APIs keep `http`, because the gateway makes links of it.

Authentication: MiniStack takes root for the access key `test`, any 12 digits and its configured key, without a signature, and
serves some paths to everybody. The wrapper admits a request by `asya_local.authentication`, checks its signature, and tells
MiniStack whose it is. MiniStack's own check of signatures is off. Calls of HTTP APIs reach no other service, and no path that
MiniStack serves at every host, such as `/health`.

Patterns: `*` and `?` of a policy match a line feed, as on AWS. MiniStack's do not.

Tokens (JWT): the wrapper replaces MiniStack's signature check, which accepts tokens without an expiry.

Source accounts: roles may be assumed by AWS services for this account only (`aws:SourceAccount`). MiniStack takes root for any
service, and the wrapper adds the account that a service would name.

Actions: AWS authorizes a batch of SQS messages as the action for a single one. MiniStack has an action of its own for it. MiniStack
lacks calls of Lambda, allows what it does not recognize, and believes a parameter or header about calls of REST.

Log groups: AWS authorizes a search of a log group for `log-group:NAME:*`, and MiniStack for `log-group:NAME`.

Attributes: AWS knows which attributes a BatchGetItem of DynamoDB names (`dynamodb:Attributes`). MiniStack does not.

Keys: AWS knows the partition keys that a request of DynamoDB names (`dynamodb:LeadingKeys`), and judges each item of a transaction
by its own. MiniStack does not.

Keys of buckets: `bucket_keys.py` refuses objects whose KMS key the caller may not use. MiniStack asks for no key.

Senders: `sender_ids.py` names the senders of messages.

Names: `fixed_ids.py` derives access keys and the ids of HTTP APIs from the cloud's secret.

Bodies: `exact_bodies.py` passes bytes that are no UTF-8 to the functions of HTTP APIs as they were sent.

Paths: `greedy_paths.py` lets a greedy variable match a path that ends with a slash.

Log streams: `log_streams.py` names those of shared log groups, and reads searches in pages, with an id for each event.

State: `snapshot.py` saves the state of all services, and a new process may start with it.

Functions: `function_workers.py`, `code_cache.py` and `function_credentials.py` replace parts of the Lambda runtime.
"""

import asyncio
import base64
import dataclasses
import functools
import importlib.util
import json
import os
import re
import resource
import runpy
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, quote

import jwt
import ministack.app as front
from hypercorn.asyncio import serve  # type: ignore[import-not-found,unused-ignore]
from hypercorn.config import Config  # type: ignore[import-not-found,unused-ignore]
from ministack.core import iam_actions, iam_evaluator, lambda_runtime, persistence
from ministack.core.responses import get_account_id
from ministack.core.router import detect_service
from ministack.core.sigv4 import decode_header_value
from ministack.services import apigateway, cloudwatch_logs, dynamodb, iam, lambda_svc, s3, sqs, sts


def _own_package() -> ModuleType:
    """Return `asya_local`. The project is not on the path here, and its other packages must not be."""
    folder = Path(__file__).parent.parent
    found = importlib.util.spec_from_file_location(
        "asya_local", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert found is not None
    return importlib.util.module_from_spec(found)


sys.modules.setdefault("asya_local", _own_package())
from asya_local.authentication import function_credentials  # noqa: E402
from asya_local.authentication.admission import (  # noqa: E402
    CALLER_PATH,
    SECRET_VARIABLE,
    SNAPSHOT_PATH,
    Entry,
    Refusal,
    admit,
    authenticate,
    body_limit,
)
from asya_local.authentication.readings import has_one_reading  # noqa: E402
from asya_local.authentication.signatures import HttpCall, Signature  # noqa: E402

_UNKNOWN_KEY = Refusal("UnrecognizedClientException", "The security token included in the request is invalid.")
_BATCH_ACTIONS = {
    f"{action}Batch": action for action in ("sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
}
_LAMBDA_ACTIONS = {
    "Invoke": "InvokeFunction",
    "InvokeAsync": "InvokeFunction",
    "InvokeWithResponseStream": "InvokeFunction",
    "GetLayerVersionByArn": "GetLayerVersion",
}
"""The calls of Lambda whose action has another name."""
_UNKNOWN, _AMBIGUOUS = "UnknownCall", "AmbiguousCall"
_RPC = re.compile(r"/service/\w+/\w+/(\w+)", re.ASCII)
"""The path of a call in the protocol `smithy-rpc-v2-cbor`, which CloudWatch takes."""
_extract_iam_action = iam_actions.extract_iam_action
_extract_resource_arn = iam_actions.extract_resource_arn
_QUERY = ("KeyConditionExpression", "KeyConditions")
_EQUAL = re.compile(r"([#\w.-]+)\s*=\s*(:\w+)")
_dynamodb_service_context = iam_actions.dynamodb_service_context
_dynamodb_transaction_checks = iam_actions.dynamodb_transaction_checks
_enforce = iam_evaluator.enforce
_evaluate_trust_policy = iam_evaluator.evaluate_trust_policy
_handle_special_data_plane_request = front._handle_special_data_plane_request
_handle_pre_body_request = front._handle_pre_body_request
_handle_post_body_shortcuts = front._handle_post_body_shortcuts
_enforce_execute_api = front._enforce_execute_api


def extract_iam_action(  # noqa: PLR0917 - as MiniStack calls it
    service: str, method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
) -> str:
    """Return the IAM action of a request as AWS names it.

    MiniStack takes a call that it does not recognize as one that needs no permission. Here it needs an action that no policy
    names, so only those who may do everything may make it. So does a call that its service could read differently.
    """
    namespace = iam_actions.SERVICE_TO_IAM_NAMESPACE.get(service, service)
    if not has_one_reading(service, path, headers, body, query):
        return f"{namespace}:{_AMBIGUOUS}"
    # A call of REST is named by its method and path. MiniStack would believe a parameter `Action` or a header.
    if service == "s3":
        found = iam_actions._s3_action(method, path, query)
        action = f"s3:{found}" if found else None
    elif service == "lambda":
        call: str | None = iam_actions._match_rest_action(service, method, path, query)
        action = f"lambda:{_LAMBDA_ACTIONS.get(call, call)}" if call else None
    elif rpc := _RPC.fullmatch(path):
        action = f"{namespace}:{rpc[1]}"
    else:
        action = _extract_iam_action(service, method, path, headers, body, query)
    if action is None:
        return f"{namespace}:{_UNKNOWN}"
    return _BATCH_ACTIONS.get(action, action)


def extract_resource_arn(*request: Any) -> str:
    """Return the ARN that a request is authorized for; that of a log group ends with `:*`."""
    arn: str = _extract_resource_arn(*request)
    return f"{arn}:*" if ":log-group:" in arn and not arn.endswith(":*") else arn


def dynamodb_service_context(body: bytes) -> dict[str, Any]:
    """Return the condition keys of a DynamoDB request; a batch of reads names what each of its tables' reads names."""
    request = _json_object(body)
    leading = _leading_keys(request)
    keys = {"dynamodb:LeadingKeys": leading} if leading else {}
    contexts = [_dynamodb_service_context(json.dumps(read).encode()) for read in _batched_reads(request)]
    if not contexts:
        return dict(_dynamodb_service_context(body)) | keys
    reads = [context.get("dynamodb:Attributes") for context in contexts]
    if any(attributes is None for attributes in reads):
        return {"dynamodb:Select": "ALL_ATTRIBUTES"} | keys
    return {"dynamodb:Attributes": sorted({*chain(*reads)}), "dynamodb:Select": "SPECIFIC_ATTRIBUTES"} | keys


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body or b"{}")
    except ValueError:
        return {}  # DynamoDB refuses it
    return content if isinstance(content, dict) else {}


def _batched_reads(request: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return [read for read in request.get("RequestItems", {}).values() if "Keys" in read]
    except (TypeError, AttributeError):
        return []


def _leading_keys(request: dict[str, Any]) -> list[str]:
    """Return the partition keys that a request names; none of a scan, of a transaction, and of what DynamoDB refuses.

    IAM judges each item of a transaction by itself (`dynamodb_transaction_checks`).
    """
    try:
        if any(name in request for name in _QUERY):
            return _queried_keys(request)
        table = request.get("TableName", "")
        items = [(table, request[name]) for name in ("Key", "Item") if name in request]
        for table, each in request.get("RequestItems", {}).items():
            if "Keys" in each:
                items += [(table, key) for key in each["Keys"]]
            else:
                items += [(table, _item(write)) for call in each for write in call.values()]
        return sorted({_text(item[_partition(table)]) for table, item in items})
    except (TypeError, AttributeError, KeyError, ValueError):
        return []


def _queried_keys(request: dict[str, Any]) -> list[str]:
    """Return the partition key that a query asks for, in either of the forms of DynamoDB."""
    partition = _partition(request["TableName"], request.get("IndexName"))
    if "KeyConditionExpression" not in request:
        condition = request["KeyConditions"][partition]
        return [_text(value) for value in condition["AttributeValueList"]]
    names, values = request.get("ExpressionAttributeNames", {}), request["ExpressionAttributeValues"]
    equal = _EQUAL.findall(request["KeyConditionExpression"])
    return sorted({_text(values[value]) for name, value in equal if names.get(name, name) == partition})


def _partition(table: str, index: str | None = None) -> str:
    """Return the name of the partition key of a table, or of an index. Each table of the mesh has `pk`."""
    known = dynamodb._tables.get(table.rpartition("/")[2]) or {}
    indexes = chain(known.get("GlobalSecondaryIndexes", []), known.get("LocalSecondaryIndexes", []))
    schemas = [each["KeySchema"] for each in indexes if each["IndexName"] == index] if index else []
    for key in schemas[0] if schemas else known.get("KeySchema", []):
        if key["KeyType"] == "HASH":
            return str(key["AttributeName"])
    return "pk"


def _item(write: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = write["Key"] if "Key" in write else write["Item"]
    return item


def _text(value: dict[str, str]) -> str:
    """Return a key as conditions compare it: texts and numbers as they are, and bytes as DynamoDB transfers them."""
    (content,) = value.values()
    return str(content)


class _ArnOfItem(str):
    """The ARN of the table of an item of a transaction, with the partition key of the item."""

    __slots__ = ("leading",)
    leading: list[str]


def dynamodb_transaction_checks(action: str, body: bytes, region: str, account: str) -> list[tuple[str, str]]:
    """Return the action and the ARN that each item of a transaction is authorized for."""
    checks: list[tuple[str, str]] = []
    items = _json_object(body).get("TransactItems")
    for item in items if isinstance(items, list) else []:
        single = json.dumps({"TransactItems": [item]}).encode()
        for checked, arn in _dynamodb_transaction_checks(action, single, region, account):
            known = _ArnOfItem(arn)
            known.leading = _leading_keys(item[checked.partition(":")[2].removesuffix("Item")])
            checks.append((checked, known))
    return checks


def enforce(*request: Any, **more: Any) -> Any:
    """Return the refusal of a request, or None. Conditions see the partition key of each item of a transaction.

    Who may reach an object must be able to use the key of its bucket, too.
    """
    arn = more.get("resource_arn")
    if isinstance(arn, _ArnOfItem) and arn.leading:
        more["service_context"] = {**more["service_context"], "dynamodb:LeadingKeys": arn.leading}
    refusal = _enforce(*request, **more)
    if refusal is not None or arn is None:
        return refusal
    access_key, action, service, region = request
    if service != "s3":
        return None
    call = bucket_keys["ObjectCall"](access_key or "", get_account_id(), region, action, arn)
    return bucket_keys["BucketKeys"](iam_evaluator, s3, _enforce).refused(call)


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


def pin_signed_request(*_: object) -> None:
    """Check no signature: the wrapper has checked it before MiniStack reads the request."""


def enforce_execute_api(api_id: str, stage: str, method: str, path: str, *request: Any, **more: Any) -> Any:
    """Return the refusal of a call of an HTTP API, or None. MiniStack takes root for a call without a key.

    A route that needs IAM takes signed calls only.
    """
    is_signed = bool(iam_evaluator._verified_key.get())
    if not is_signed and front._execute_api_authorization_type(api_id, stage, method, path) == "AWS_IAM":
        return _api_error(403, "Forbidden")
    return _enforce_execute_api(api_id, stage, method, path, *request, **more)


async def handle_special_data_plane_request(*request: Any, **more: Any) -> Any:
    """Serve a request that MiniStack routes by its host or path. A call of an HTTP API reaches no other service."""
    method, path, headers, body, query, request_id = request
    host = headers.get("host", "")
    if front._parse_execute_api_url(host, path) is None:
        return await _handle_special_data_plane_request(*request, **more)
    raw = {name: more[name] for name in ("raw_path", "raw_query_string")}
    response = await front._handle_execute_api_request(host, path, method, headers, body, query, **raw)
    return front._with_data_plane_headers(response or _api_error(404, "Not Found"), request_id, wildcard_cors=False)


async def handle_pre_body_request(method: str, path: str, headers: dict[str, str], *request: Any) -> Any:
    """Serve a path of MiniStack's own, such as its health. An HTTP API has no such paths: each is one of its routes."""
    if _is_of_api(headers, path):
        return None
    return await _handle_pre_body_request(method, path, headers, *request)


async def handle_post_body_shortcuts(method: str, path: str, headers: dict[str, str], *request: Any) -> Any:
    """Serve a call that MiniStack knows by its path, as `handle_pre_body_request` does."""
    if _is_of_api(headers, path):
        return None
    return await _handle_post_body_shortcuts(method, path, headers, *request)


def _is_of_api(headers: Mapping[str, str], path: str) -> bool:
    return front._parse_execute_api_url(headers.get("host", ""), path) is not None


@functools.lru_cache(maxsize=10_000)
def compiled_pattern(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    """Return the expression for a pattern of IAM: `*` is any text and `?` any character, line feeds too."""
    parts = ({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    return re.compile("".join(parts) + r"\Z", re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG))


async def behind_tls(scope: dict[str, Any], receive: Any, send: Any, *, secret: str = "") -> None:
    """Serve MiniStack's ASGI application, behind the headers of a proxy, to the requests that may enter."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    elif scope["type"] != "http":
        await front.app(scope, receive, send)
    else:
        await _serve_call(_http_call(scope), scope, receive, send, secret)


async def _serve_call(call: HttpCall, scope: dict[str, Any], receive: Any, send: Any, secret: str) -> None:
    path = scope["path"]
    is_api = _is_of_api(call.headers, path)
    answer: Entry | Signature | Refusal = admit(call, path, secret, is_api=is_api)
    if answer is Entry.SIGNATURE:
        answer = authenticate(call, None, _secret_key, datetime.now(UTC))
    if isinstance(answer, Signature) or answer is Entry.NONE:
        # A stranger's body is not kept: what the headers prove is checked before it, and the rest has a limit.
        signature = answer if isinstance(answer, Signature) else None
        read = await _buffered(receive, call, body_limit(call, signature, is_api=is_api))
        if read is None:
            await _respond(send, _api_error(413, "Request Too Long"))
            return
        body, receive = read
        if signature is not None:
            answer = authenticate(call, body, _secret_key, datetime.now(UTC))
    if isinstance(answer, Refusal):
        await _respond(send, _forbidden(answer, call, path, is_api=is_api))
        return
    if answer is Entry.SECRET and path == CALLER_PATH:
        read = await _buffered(receive, call, None)
        assert read is not None, "the body has no limit"
        await _respond(send, _json(200, _caller(json.loads(read[0]))))
        return
    if answer is Entry.SECRET and path == SNAPSHOT_PATH:
        await asyncio.to_thread(snapshot["save"], snapshot_folder(), front, persistence, s3)
        await _respond(send, _json(200, {}))
        return
    access_key = answer.access_key if isinstance(answer, Signature) else ""
    iam_evaluator._verified_key.set(access_key)
    iam_evaluator._anonymous.set(not access_key)
    if is_api:
        proxy = [(b"x-forwarded-proto", b"http"), (b"x-forwarded-port", os.environ["GATEWAY_PORT"].encode())]
    else:
        proxy, send = [(b"x-forwarded-proto", b"https")], _without_cors(send)
    headers = [(name, value) for name, value in scope["headers"] if not name.lower().startswith(b"x-forwarded-p")]
    await front.app({**scope, "headers": [*headers, *proxy]}, receive, send)


def _http_call(scope: dict[str, Any]) -> HttpCall:
    headers: dict[str, str] = {}
    for raw_name, value in scope["headers"]:
        name, text = raw_name.decode("latin-1").lower(), decode_header_value(value)
        headers[name] = f"{headers[name]},{text}" if name in headers else text
    raw_path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope["query_string"].decode("utf-8", "replace")
    return HttpCall(scope["method"], raw_path.decode("latin-1"), query, headers)


async def _buffered(receive: Any, call: HttpCall, limit: int | None) -> tuple[bytes, Any] | None:
    """Return the body of a request, and a channel that yields its messages again; None if the body has more bytes."""
    told = call.headers.get("content-length", "")
    if limit is not None and told.isdecimal() and int(told) > limit:
        return None
    messages = [await receive()]
    size = len(messages[-1].get("body", b""))
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body", False):
        messages.append(await receive())
        size += len(messages[-1].get("body", b""))
        if limit is not None and size > limit:
            return None
    body = b"".join(message.get("body", b"") for message in messages)
    messages.reverse()

    async def again() -> Any:
        return messages.pop() if messages else await receive()

    return body, again


def _secret_key(signature: Signature) -> str | Refusal:
    credential = _credential(signature)
    return credential if isinstance(credential, Refusal) else str(credential.secret_access_key)


def _credential(signature: Signature) -> Any:
    """Return the credential of an access key; of root's keys only the one of this cloud has one."""
    key = signature.access_key
    if iam_evaluator.is_root_access_key(key) and key != os.environ["AWS_ACCESS_KEY_ID"]:
        return _UNKNOWN_KEY
    found = iam_evaluator.resolve_credential(key, os.environ["MINISTACK_ACCOUNT_ID"], signature.token)
    if isinstance(found, iam_evaluator.CredentialResolutionError):
        return Refusal(found.code, found.message)
    return found


def _caller(request: dict[str, Any]) -> dict[str, Any]:
    """Return the caller of a request to another server of this cloud."""
    raw_path, _, query = request["target"].partition("?")
    call = HttpCall(request["method"], raw_path, query, request["headers"])
    signature = authenticate(call, base64.b64decode(request["body"]), _secret_key, datetime.now(UTC))
    credential = signature if isinstance(signature, Refusal) else _credential(signature)
    if isinstance(credential, Refusal) or isinstance(signature, Refusal):
        return dataclasses.asdict(credential)
    call = request["call"]
    allowed = not call or _may(credential, **call)
    return {"arn": credential.principal_arn, "service": signature.service, "allowed": allowed}


def _may(credential: Any, action: str, resource: str, context: dict[str, Any]) -> bool:
    """Return whether a caller may make a call to another server of this cloud, with its boundary and its session policies."""
    account = os.environ["MINISTACK_ACCOUNT_ID"]
    principal = iam_evaluator.resolve_principal(credential.access_key_id, account, credential)
    if isinstance(principal, iam_evaluator.AuthError) or principal.policies is None:
        return not isinstance(principal, iam_evaluator.AuthError)
    call = iam_evaluator.EvalContext(
        principal_arn=principal.arn,
        principal_type=principal.type,
        principal_account=principal.account,
        action=action,
        resource_arn=resource,
        region=os.environ["MINISTACK_REGION"],
        service_context=context,
        principal_keys=principal.keys,
    )
    decision = iam_evaluator.evaluate(call, principal.policies, *principal.limits).decision
    return bool(decision == "Allow")


def _forbidden(refusal: Refusal, call: HttpCall, path: str, *, is_api: bool) -> Any:
    """Return the refusal in the format of the service that the request is for."""
    if is_api:
        return _api_error(403, "Forbidden")
    service = detect_service(call.method, path, call.headers, parse_qs(call.query, keep_blank_values=True))
    return front._credential_failure(service, "", str(uuid.uuid4()), refusal, call.headers)


def _api_error(status: int, message: str) -> Any:
    return _json(status, {"message": message})


def _json(status: int, content: dict[str, Any]) -> Any:
    return status, {"content-type": "application/json"}, json.dumps(content).encode()


async def _respond(send: Any, response: Any) -> None:
    status, headers, body = response
    pairs = [(name.lower().encode(), str(value).encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _without_cors(send: Any) -> Any:
    """Remove the headers that let any web page read a response. HTTP APIs have CORS rules of their own."""

    async def filtered(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = [
                (name, value) for name, value in message["headers"] if not name.lower().startswith(b"access-control-")
            ]
            message = {**message, "headers": headers}
        await send(message)

    return filtered


def snapshot_folder() -> Path:
    """Return the folder of the saved state."""
    return Path(os.environ["STATE_DIR"])


def _patch_ministack(secret: str) -> None:
    # The calls of Lambda by their paths, from the SDK's model; MiniStack's own list lacks some.
    iam_actions._BOTOCORE_SERVICE_MAP["lambda"] = ["lambda"]
    iam_actions.extract_iam_action = extract_iam_action
    iam_actions.extract_resource_arn = extract_resource_arn
    iam_actions.dynamodb_service_context = dynamodb_service_context
    iam_actions.dynamodb_transaction_checks = dynamodb_transaction_checks
    iam_evaluator.enforce = enforce
    iam_evaluator._fnmatch_compile = compiled_pattern
    apigateway._verify_rs256_signature = has_valid_signature
    iam_evaluator.evaluate_trust_policy = evaluate_trust_policy
    front.pin_signed_request = pin_signed_request
    front._enforce_execute_api = enforce_execute_api
    front._handle_special_data_plane_request = handle_special_data_plane_request
    front._handle_pre_body_request = handle_pre_body_request
    front._handle_post_body_shortcuts = handle_post_body_shortcuts
    function_credentials.install(lambda_runtime, lambda_svc, sts)
    _module("code_cache")["install"](lambda_runtime)
    _module("function_workers")["install"](lambda_runtime, lambda_svc)
    _module("sender_ids")["install"](sqs, lambda_svc, iam_evaluator, iam)
    _module("fixed_ids")["install"](iam, apigateway, secret)
    _module("exact_bodies")["install"](apigateway)
    _module("greedy_paths")["install"](apigateway)
    _module("log_streams")["install"](lambda_svc, cloudwatch_logs)


def _module(name: str) -> dict[str, Any]:
    """Run a module of this folder; without the project, it cannot be imported."""
    return runpy.run_path(str(Path(__file__).with_name(f"{name}.py")))


snapshot = _module("snapshot")
bucket_keys = _module("bucket_keys")


def main() -> None:
    """Serve on BIND_HOST and GATEWAY_PORT until SIGTERM."""
    secret = os.environ.pop(SECRET_VARIABLE)  # functions inherit the environment
    _patch_ministack(secret)
    if os.environ.pop(snapshot["RESTORE_VARIABLE"]):
        snapshot["restore"](snapshot_folder(), front, persistence, s3)
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    config = Config()
    config.bind = [f"{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = os.environ.get("LOG_LEVEL", "INFO")
    asyncio.run(serve(functools.partial(behind_tls, secret=secret), config))


if __name__ == "__main__":
    main()
