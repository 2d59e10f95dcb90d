"""Every call of the deployed gateway answers as its OpenAPI document says (protocol §13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.cloud.gateway_tasks import create_record

if TYPE_CHECKING:
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

STREAM_SUFFIXES = ("/events", "/stream")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.rule("13.openapi")
def test_every_call_answers_as_documented(gateway: DeployedCloud, operator: ApiCaller) -> None:
    """Makes valid and invalid calls of every operation with schemathesis."""
    status, document = operator.call("GET", "/openapi.json")
    assert status == 200
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=operator.url)
    running, canceled = create_record(gateway), create_record(gateway)
    assert operator.call("DELETE", f"/api/v1/mesh/{canceled}")[0] == 204
    count = 0
    for result in schema.get_all_operations():
        operation = result.ok()  # type: ignore[union-attr]

        @settings(
            max_examples=4,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def make_calls(case: Any) -> None:
            nonlocal count
            count += 1
            if case.path_parameters and count % 2:
                # The stream of a running task stays open, so streams get the canceled one.
                case.path_parameters["id"] = canceled if case.path.endswith(STREAM_SUFFIXES) else running
            case.call_and_validate(auth=RequestSigner(operator), checks=CHECKS, timeout=60)

        given(case=schema[operation.path][operation.method.upper()].as_strategy())(make_calls)()
    assert count > 80


class RequestSigner:
    """Signs a request before it is sent."""

    def __init__(self, caller: ApiCaller) -> None:
        self._caller = caller

    def __call__(self, request: Any) -> Any:
        body = request.body or b""
        data = body if isinstance(body, bytes) else body.encode()
        request.headers.update(self._caller.signed(request.method, request.url, data))
        return request
