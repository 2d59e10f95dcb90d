"""Decides whether IAM and the service read the same call. Pure.

MiniStack lets IAM read a call, and then a service. Each has a parser of its own: IAM takes the action from the URL, and the service
from the form; IAM takes the last segment of a QueueUrl, and the service its path. So a call could be judged as one and served as
another. The local cloud takes calls with one reading, which SDKs make.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

REST = frozenset({"s3", "lambda", "apigateway"})
"""The services whose calls are named by method and path, and by nothing else."""

_FORM = "x-www-form-urlencoded"
_ENCODED = re.compile(rb"[A-Za-z0-9%+.*_~=&-]*")
_QUEUE_URL = re.compile(r"https?://[A-Za-z0-9.:-]+/\d+/[A-Za-z0-9_.-]+", re.ASCII)
_QUEUE_PATH = re.compile(r"/\d+/[A-Za-z0-9_.-]+", re.ASCII)

Parameters = Mapping[str, list[str]]


def has_one_reading(service: str, path: str, headers: Mapping[str, str], body: bytes, parameters: Parameters) -> bool:
    """Return whether a call names its action, each parameter and its queue once.

    Args:
        service: The service that gets the call.
        path: The decoded path.
        headers: By lower-case name.
        body: The body, not compressed.
        parameters: Those of the URL, over those of a form in the body.
    """
    target = headers.get("x-amz-target", "")
    is_form = _FORM in headers.get("content-type", "").lower()
    given = {name: value for name, value in parameters.items() if not name.lower().startswith("x-amz-")}
    if not target and (service in REST or ("Action" not in given and "Action" not in _form(body))):
        return True  # the path names the call, or nothing does
    if given or is_form if target else not _is_named_once(given, body, is_form=is_form):
        return False
    if service != "sqs":
        return path == "/"
    queue = _json_object(body).get("QueueUrl") if target else next(iter(given.get("QueueUrl", ())), None)
    if queue is None:
        return path == "/" or _QUEUE_PATH.fullmatch(path) is not None
    is_url = isinstance(queue, str) and _QUEUE_URL.fullmatch(queue) is not None
    return is_url and path in ("/", urlsplit(str(queue)).path)


def _is_named_once(given: Parameters, body: bytes, *, is_form: bool) -> bool:
    """Whether all parameters are in the URL, or all in a form that is nothing else, such as JSON."""
    if body and not (is_form and _ENCODED.fullmatch(body) and given == _form(body)):
        return False
    return all(len(values) == 1 for values in given.values())


def _form(body: bytes) -> dict[str, list[str]]:
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


def _json_object(body: bytes) -> dict[str, object]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}  # the service refuses it
    return value if isinstance(value, dict) else {}
