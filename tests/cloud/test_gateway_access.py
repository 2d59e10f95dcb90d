"""Who may call the gateway (protocol §13) on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from asya.protocol import names
from asya.protocol.table_keys import STATE_ATTRIBUTES
from asya.tasks.reporting.aws.gateway_client import address_of
from asya_local.account import ACCOUNT_ID
from tests.cloud import callers
from tests.cloud.deployed_cloud import until
from tests.cloud.gateway_tasks import TERMINAL, start, wait_for_end

if TYPE_CHECKING:
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud


@pytest.mark.rule("13.owner")
def test_the_task_of_another_owner_is_not_found(alice: ApiCaller, bob: ApiCaller) -> None:
    task_id = start(alice, "echo")
    path = f"/api/v1/mesh/{task_id}"
    for method, suffix in (
        ("GET", ""), ("GET", "/timeline"), ("GET", "/children"), ("GET", "/events"), ("DELETE", ""), ("POST", "/resume"),
        ("POST", "/replay"), ("POST", "/stream-token"),
    ):  # fmt: skip
        assert bob.call(method, path + suffix, {} if method == "POST" else None)[0] == 404, method + suffix
    assert bob.call("GET", f"/envelopes/{task_id}")[0] == bob.call("GET", f"/jobs/{task_id}")[0] == 404
    assert bob.call("POST", path + "/events", {"status": "succeeded"})[0] == 403
    assert bob.call("POST", "/api/v1/mesh/redrive?actor=echo&message_id=m-1", {})[0] == 403
    assert wait_for_end(alice, task_id)["status"] == "succeeded"


@pytest.mark.rule("13.signed")
def test_unsigned_calls_are_refused_except_public_ones(gateway: DeployedCloud, alice: ApiCaller) -> None:
    anonymous = callers.anonymous(gateway)
    document = alice.call("GET", "/openapi.json")[1]
    for path, operations in document["paths"].items():
        for method in operations:
            expected = 200 if path in ("/health", "/.well-known/agent-card.json") else 403
            body: object = {} if method == "post" else None
            assert anonymous.call(method.upper(), path.replace("{id}", "some-id"), body)[0] == expected, path


@pytest.mark.rule("13.signed")
def test_a_call_that_only_names_a_key_is_unsigned(gateway: DeployedCloud) -> None:
    caller = callers.anonymous(gateway)
    for key in ("test", ACCOUNT_ID):
        credential = f"{key}/20260101/{caller.region}/execute-api/aws4_request"
        for header, query in (
            ("Bearer x", ""),
            ("", f"X-Amz-Credential={credential}"),
            ("Bearer x", f"X-Amz-Credential={credential}"),
            ("Bearer x", f"AWSAccessKeyId={key}"),
            (f"AWS {key}:x", ""),
            (f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature={'0' * 64}", ""),
        ):
            headers = {"authorization": header} if header else {}
            url = address_of(f"{caller.url}/api/v1/mesh?{query}")
            assert caller.pool.request("GET", url, headers=headers, timeout=60.0).status == 403, (header, query)


@pytest.mark.rule("13.roles")
def test_an_actors_role_may_call_nothing(gateway: DeployedCloud, alice: ApiCaller) -> None:
    calls = [
        ["GET", "/api/v1/mesh"],
        ["GET", "/api/v1/mesh/some-id"],
        ["POST", "/api/v1/mesh?actor=echo"],
        ["POST", "/tools/call"],
        ["DELETE", "/api/v1/mesh/some-id"],
        ["POST", "/api/v1/mesh/events"],
    ]
    task_id = start(alice, "probe", {"calls": calls})
    statuses = [status for _, _, status in wait_for_end(alice, task_id)["result"]["results"]]
    assert statuses == [403, 403, 403, 403, 403, 403]


@pytest.mark.rule("13.states")
def test_an_actors_role_reads_the_state_of_a_record_and_nothing_else(alice: ApiCaller, bob: ApiCaller) -> None:
    theirs = start(bob, "echo", {"secret": "salary"})
    assert wait_for_end(bob, theirs)["status"] == "succeeded"
    reads: list[list[str]] = [[*STATE_ATTRIBUTES], ["status"], ["status", "owner"], ["result"], []]
    payload = {"table": names.table_name("gateway", "tasks"), "task": theirs, "kind": "record", "reads": reads}
    results = wait_for_end(alice, start(alice, "read-records", payload))["result"]["results"]
    state = sorted({*STATE_ATTRIBUTES} - {"pause_epoch", "resumed_epoch"})
    assert results == [state, ["status"], *(["AccessDeniedException"] * 3)]


@pytest.mark.rule("4.claim-check.readers", "4.claim-check.writers", "6.buffered.readers", "12.input.writers")
def test_an_actors_role_reaches_no_objects_of_other_actors(gateway: DeployedCloud, alice: ApiCaller) -> None:
    """The actor `reach` may send to `echo`, and to no other actor of the user. It keeps its inputs."""
    bucket, s3, digest = gateway.mesh.connection.data.bucket, gateway.client("s3"), "ab" * 32
    theirs = [f"{prefix}/echo/ab/{digest}.json" for prefix in ("payloads", "inbox")]
    theirs += [
        "buffered/echo/order-7/0/0.json",
        "hops/order-7/0/0.echo.json",
        "hops/order-7/0/0.json",
        "slices/a-set/000001-ab.json",
    ]
    own = [f"{prefix}/reach/ab/{digest}.json" for prefix in ("payloads", "inbox")]
    own += ["buffered/reach/order-7/0/0.json"]
    kept = "hops/order-7/0/0.reach.json"
    for key in (*theirs, *own):
        s3.put_object(Bucket=bucket, Key=key, Body=b"{}")
    allowed = [
        *(("get_object", key) for key in own),
        *(("list_objects_v2", f"{key.split('/')[0]}/reach/") for key in own),
        ("put_object", theirs[0]),
        ("put_object", f"payloads/x-sink/ab/{digest}.json"),
        ("put_object", kept),
    ]
    denied = [
        *(("get_object", key) for key in (*theirs, kept)),
        *(("list_objects_v2", f"{key.split('/')[0]}/") for key in (*theirs, *own)),
        *(("list_objects_v2", prefix) for prefix in ("", "payloads/echo/", "slices/", "results/")),
        *(("put_object", key) for key in theirs[1:]),
        ("put_object", f"payloads/slow/ab/{digest}.json"),
    ]
    payload = {"bucket": bucket, "calls": [*allowed, *denied, ("get_object", "payloads/reach/ab/missing.json")]}
    results = wait_for_end(alice, start(alice, "reach", payload))["result"]["results"]
    expected = [*(["done"] * len(allowed)), *(["AccessDenied"] * len(denied)), "NoSuchKey"]
    assert list(zip(payload["calls"], results, strict=True)) == list(zip(payload["calls"], expected, strict=True))


def test_a_forged_callback_gets_no_request_and_no_credential(gateway: DeployedCloud, operator: ApiCaller) -> None:
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(str(self.headers))
            self.send_error(500)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Writes no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        forged = f"http://127.0.0.1:{server.server_port}"
        for url in (
            forged,
            f"{forged}/",
            f"http://user@127.0.0.1:{server.server_port}",
            "https://example.com@" + forged[7:],
        ):
            task_id = str(uuid4())
            route = {"prev": [], "curr": "echo", "next": []}
            headers = {"x-asya-gateway-url": url}
            gateway.send_raw("echo", json.dumps({"id": task_id, "route": route, "headers": headers, "payload": 1}))
            task = until(
                lambda task_id=task_id: (
                    content  # type: ignore[misc]
                    if (content := operator.call("GET", f"/api/v1/mesh/{task_id}")[1]).get("status") in TERMINAL
                    else None
                ),
                "the task to end at its own gateway",
            )
            assert task["status"] == "succeeded"
    finally:
        server.shutdown()
        server.server_close()
    assert requests == []
