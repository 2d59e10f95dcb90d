"""The HTTP face of EMR Serverless, read from botocore's own model of the service.

Requests are routed, parsed and checked, and answers checked and written, by the model that every boto3 client
speaks. What the model does not allow is refused (requests) or is a mistake of ours (answers).
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
    """The model of EMR Serverless in botocore."""
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
class OperationCall:
    """One request: the operation it names and its parameters, checked against the model."""

    operation: str
    parameters: dict[str, Any]


def parse_request(request: Request) -> OperationCall:
    """Route and parse a request.

    Raises:
        ServiceError: No such operation, or parameters that the model does not allow.
    """
    try:
        endpoint, path_values = _routes().bind_to_environ(request.environ).match()
    except HTTPException:
        raise ServiceError("UnknownOperationException", f"No operation {request.method} {request.path}", 404) from None
    operation = service_model().operation_model(str(endpoint))
    parameters = {**_body(request, operation), **_query(request, operation), **path_values}
    if operation.input_shape is not None:
        _require_token(operation.input_shape, parameters)
        report = ParamValidator().validate(parameters, operation.input_shape)
        if report.has_errors():
            raise validation_error(report.generate_report())
        for violation in _violations(parameters, operation.input_shape, ""):
            raise validation_error(violation)
    return OperationCall(operation.name, parameters)


def encode_response(operation_name: str, answer: Mapping[str, Any]) -> bytes:
    """The body of an answer, checked against the model (a TypeError is a mistake in this stand-in)."""
    shape = service_model().operation_model(operation_name).output_shape
    if shape is None:
        return b"{}"
    report = ParamValidator().validate(dict(answer), shape)
    if report.has_errors():
        raise TypeError(f"{operation_name} answered what its model does not allow: {report.generate_report()}")
    for violation in _violations(dict(answer), shape, ""):
        raise TypeError(f"{operation_name} answered what its model does not allow: {violation}")
    return json.dumps(answer, default=_timestamp).encode()


def _timestamp(value: object) -> float:
    if isinstance(value, datetime):
        return round(value.timestamp(), 3)
    raise TypeError(f"{type(value).__name__} in an answer")


def _body(request: Request, operation: OperationModel) -> dict[str, Any]:
    raw = request.get_data()
    if not raw or operation.http["method"] in {"GET", "DELETE"}:
        return {}
    try:
        body = json.loads(raw)
    except ValueError:
        raise ServiceError("SerializationException", "The request's body is not JSON", 400) from None
    if not isinstance(body, dict):
        raise ServiceError("SerializationException", "The request's body is not a JSON object", 400)
    return {key: value for key, value in body.items() if value is not None}


def _query(request: Request, operation: OperationModel) -> dict[str, Any]:
    values: dict[str, Any] = {}
    members = operation.input_shape.members if operation.input_shape is not None else {}
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


def _violations(value: Any, shape: Shape, where: str) -> Iterator[str]:
    """What the model demands and botocore leaves to the service: longest lengths, patterns, enumerations, ranges."""
    limits = cast("Mapping[str, Any]", shape.metadata)
    if isinstance(shape, StructureShape):
        for name in value:
            if name in shape.members:
                yield from _violations(value[name], shape.members[name], f"{where}.{name}" if where else name)
    elif isinstance(shape, ListShape):
        if len(value) > limits.get("max", len(value)):
            yield f"{where} has {len(value)} members, at most {limits['max']} are allowed"
        for member in value:
            yield from _violations(member, shape.member, f"{where}[]")
    elif isinstance(shape, MapShape):
        if len(value) > limits.get("max", len(value)):
            yield f"{where} has {len(value)} entries, at most {limits['max']} are allowed"
        for entry in value.values():
            yield from _violations(entry, shape.value, f"{where}.*")
    elif isinstance(shape, StringShape):
        yield from _string_violations(value, shape, limits, where)
    elif shape.type_name in {"integer", "long"} and value > limits.get("max", value):
        yield f"{where} is {value}, at most {limits['max']} is allowed"


def _string_violations(value: str, shape: StringShape, limits: Mapping[str, Any], where: str) -> Iterator[str]:
    if len(value) > limits.get("max", len(value)):
        yield f"{where} is {len(value)} characters long, at most {limits['max']} are allowed"
    if shape.enum and value not in shape.enum:
        yield f"{where} is {value!r}, it must be one of {', '.join(shape.enum)}"
    pattern = _pattern(str(limits.get("pattern", "")))
    if pattern is not None and not pattern.fullmatch(value):
        yield f"{where} does not match {limits['pattern']}"


@cache
def _pattern(text: str) -> re.Pattern[str] | None:
    # Surrogate ranges in some patterns are Java's; Python's re cannot read them, and they exclude almost nothing.
    if not text or "\\uD8" in text.upper() or "\\uDB" in text.upper():
        return None
    try:
        return re.compile(text, re.DOTALL)
    except re.error:
        return None
