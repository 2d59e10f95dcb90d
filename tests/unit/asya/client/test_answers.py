"""Which error an answer of the gateway becomes."""

import json

import pytest

from asya.client.answers import decode, refusal
from asya.client.errors import AccessDeniedError, ConflictError, MeshError, RefusedError, UnavailableError
from asya.tasks.view import TaskView


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RefusedError),
        (403, AccessDeniedError),
        (409, ConflictError),
        (413, ConflictError),
        (429, UnavailableError),
        (500, UnavailableError),
        (503, UnavailableError),
    ],
)
def test_an_error_keeps_what_the_gateway_says(status: int, kind: type[RefusedError]) -> None:
    answer = json.dumps({"error": {"code": "some_code", "message": "no", "field": "arguments.total"}}).encode()
    error = refusal(status, answer)
    assert type(error) is kind
    assert (error.status, error.code, error.field) == (status, "some_code", "arguments.total")
    assert error.problem.endswith("no")


@pytest.mark.parametrize("answer", [b'{"message":"Forbidden"}', b"<html>"])
@pytest.mark.parametrize("status", [302, 403, 409, 502])
def test_an_answer_of_api_gateway_itself_is_shown(status: int, answer: bytes) -> None:
    error = refusal(status, answer)
    assert error.problem == f"the gateway answered {status}: {answer.decode()}"
    assert (error.status, error.code, error.field) == (status, "", None)


@pytest.mark.parametrize("kind", [TaskView, dict])
def test_a_result_that_is_nested_too_deeply_is_an_error_for_people(kind: type) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(MeshError, match="nested too deeply for Python 3"):
        decode(b'{"id":"t","status":"succeeded","result":%s}' % deep, kind)
