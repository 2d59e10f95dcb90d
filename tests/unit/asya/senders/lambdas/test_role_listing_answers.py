"""The answer to CloudFormation about a custom resource."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
import urllib3

from asya.senders.lambdas.role_listing import send_answer
from asya.senders.roles import ListRequest, read_request
from tests.unit.asya.senders.test_roles import request

RECEIVED: list[tuple[str | None, Any]] = []


@pytest.fixture
def asked() -> Iterator[ListRequest]:
    """A request whose answer goes to a server of this test; the path has the statuses that it answers."""
    RECEIVED.clear()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            RECEIVED.append((self.headers.get("content-type"), json.loads(body)))
            statuses = [int(each) for each in self.path[1:].split(",")]
            self.send_response(statuses[min(len(RECEIVED), len(statuses)) - 1])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield read_request(request("Create", {}) | {"ResponseURL": f"http://127.0.0.1:{server.server_address[1]}/200"})
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(("problem", "status"), [(None, "SUCCESS"), ("the table is gone", "FAILED")])
def test_the_answer_names_the_request_and_the_problem(asked: ListRequest, problem: str | None, status: str) -> None:
    send_answer(asked, "ListedRoles", problem)
    ((media_type, answer),) = RECEIVED
    assert not media_type  # the URL is signed for an empty one
    assert answer == {
        "Status": status,
        "Reason": problem or "",
        "PhysicalResourceId": "ListedRoles",
        "StackId": asked.stack_id,
        "RequestId": "r-1",
        "LogicalResourceId": "ListedRoles",
    }


def test_a_long_problem_fits_into_an_answer(asked: ListRequest) -> None:
    send_answer(asked, "ListedRoles", "x" * 9000)
    assert len(json.dumps(RECEIVED[0][1])) < 4096


def test_an_answer_that_is_not_taken_is_an_error(asked: ListRequest) -> None:
    refused = read_request(request("Create", {}) | {"ResponseURL": asked.response_url.removesuffix("200") + "403"})
    with pytest.raises(urllib3.exceptions.HTTPError, match="answered 403"):
        send_answer(refused, "ListedRoles", None)


@pytest.mark.rule("4.roles.order")
def test_an_answer_that_s3_did_not_take_is_sent_again_by_the_same_call(asked: ListRequest) -> None:
    later = read_request(request("Create", {}) | {"ResponseURL": asked.response_url.removesuffix("200") + "503,200"})
    send_answer(later, "ListedRoles", None)
    assert [answer["Status"] for _, answer in RECEIVED] == ["SUCCESS"] * 2
