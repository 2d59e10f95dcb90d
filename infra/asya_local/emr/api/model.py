"""Parses requests and encodes responses by botocore's model of EMR Serverless.

A request that violates the model is refused. A response that violates the model is a bug of the stand-in.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import botocore.session
from botocore.model import ListShape, MapShape, OperationModel, ServiceModel, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

from asya_local.emr.errors import ServiceError, validation_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from werkzeug.wrappers import Request

SERVICE = "emr-serverless"


@cache
def service_model() -> ServiceModel:
    """Return botocore's model of EMR Serverless."""
    return botocore.session.Session().get_service_model(SERVICE)


@cache
def _routes() -> Map:
    model = service_model()
    rules = []
    for name in model.operation_names:
        http = model.operation_model(name).http
        path = re.sub(r"\{(\w+)\}", r"<\1>", str(http["requestUri"]))
        rules.append(Rule(path, methods=[str(http["method"])], endpoint=name))
    return Map(rules)


@dataclass(frozen=True)
class ActionCall:
    """A valid request: its action and its parameters."""

    action: str
    parameters: dict[str, Any]


def parse_request(request: Request) -> ActionCall:
    """Route, parse and validate a request.

    Raises:
        ServiceError: The action does not exist, or its parameters violate the model.
    """
    try:
        endpoint, path_values = _routes().bind_to_environ(request.environ).match()
    except HTTPException:
        raise ServiceError("UnknownOperationException", f"No action {request.method} {request.path}", 404) from None
    action = service_model().operation_model(str(endpoint))
    parameters = {**_body(request, action), **_query(request, action), **path_values}
    if action.input_shape is not None:
        _require_token(action.input_shape, parameters)
        report = ParamValidator().validate(parameters, action.input_shape)
        if report.has_errors():
            raise validation_error(report.generate_report())
        for violation in _violations(parameters, action.input_shape, ""):
            raise validation_error(violation)
    return ActionCall(action.name, parameters)


def encode_response(operation_name: str, body: Mapping[str, Any]) -> bytes:
    """Validate and encode the body of a response.

    Raises:
        TypeError: The body violates the model.
    """
    shape = service_model().operation_model(operation_name).output_shape
    if shape is None:
        return b"{}"
    report = ParamValidator().validate(dict(body), shape)
    if report.has_errors():
        raise TypeError(f"{operation_name} response violates the model: {report.generate_report()}")
    for violation in _violations(dict(body), shape, ""):
        raise TypeError(f"{operation_name} response violates the model: {violation}")
    return json.dumps(body, default=_timestamp).encode()


def _timestamp(value: object) -> float:
    if isinstance(value, datetime):
        return round(value.timestamp(), 3)
    raise TypeError(f"{type(value).__name__} in a response")


def _body(request: Request, action: OperationModel) -> dict[str, Any]:
    raw = request.get_data()
    if not raw or action.http["method"] in {"GET", "DELETE"}:
        return {}
    try:
        body = json.loads(raw)
    except ValueError:
        raise ServiceError("SerializationException", "The body of the request is not JSON", 400) from None
    if not isinstance(body, dict):
        raise ServiceError("SerializationException", "The body of the request is not a JSON object", 400)
    return {key: value for key, value in body.items() if value is not None}


def _query(request: Request, action: OperationModel) -> dict[str, Any]:
    values: dict[str, Any] = {}
    members = action.input_shape.members if action.input_shape is not None else {}
    for name, shape in members.items():
        key = shape.serialization.get("name", name)
        if shape.serialization.get("location") != "querystring" or key not in request.args:
            continue
        if isinstance(shape, ListShape):
            values[name] = request.args.getlist(key)
        else:
            values[name] = _scalar(request.args[key], shape)
    return values


def _scalar(text: str, shape: Shape) -> Any:
    try:
        if shape.type_name in {"integer", "long"}:
            return int(text)
        if shape.type_name == "timestamp":
            return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
    except ValueError:
        raise validation_error(f"{text!r} is not a valid {shape.type_name}") from None
    return text == "true" if shape.type_name == "boolean" else text


def _require_token(shape: StructureShape, parameters: dict[str, Any]) -> None:
    for name in shape.members:
        if shape.members[name].metadata.get("idempotencyToken") and name not in parameters:
            raise validation_error(f"{name} is required")


def _violations(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Yield violations of the rules that botocore leaves to the service: maximum lengths, patterns, enumerations, ranges."""
    limits = cast("Mapping[str, Any]", shape.metadata)
    if isinstance(shape, StructureShape):
        for name in value:
            if name in shape.members:
                yield from _violations(value[name], shape.members[name], f"{path}.{name}" if path else name)
    elif isinstance(shape, ListShape):
        if len(value) > limits.get("max", len(value)):
            yield f"{path} has {len(value)} members, at most {limits['max']} are allowed"
        for member in value:
            yield from _violations(member, shape.member, f"{path}[]")
    elif isinstance(shape, MapShape):
        if len(value) > limits.get("max", len(value)):
            yield f"{path} has {len(value)} entries, at most {limits['max']} are allowed"
        for entry in value.values():
            yield from _violations(entry, shape.value, f"{path}.*")
    elif isinstance(shape, StringShape):
        yield from _string_violations(value, shape, limits, path)
    elif shape.type_name in {"integer", "long"} and value > limits.get("max", value):
        yield f"{path} is {value}, at most {limits['max']} is allowed"


def _string_violations(value: str, shape: StringShape, limits: Mapping[str, Any], path: str) -> Iterator[str]:
    if len(value) > limits.get("max", len(value)):
        yield f"{path} is {len(value)} characters long, at most {limits['max']} are allowed"
    if shape.enum and value not in shape.enum:
        yield f"{path} is {value!r}, it must be one of {', '.join(shape.enum)}"
    pattern = _pattern(str(limits.get("pattern", "")))
    if pattern is not None and not pattern.fullmatch(value):
        yield f"{path} does not match {limits['pattern']}"


@cache
def _pattern(text: str) -> re.Pattern[str] | None:
    # Some patterns have surrogate ranges of Java, which Python cannot compile. They exclude almost nothing.
    if not text or "\\uD8" in text.upper() or "\\uDB" in text.upper():
        return None
    try:
        return re.compile(text, re.DOTALL)
    except re.error:
        return None
