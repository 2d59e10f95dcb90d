"""protocol §13 on the deployed mesh, IAM enforced: streams for programs and in a browser."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from tests.cloud import callers
from tests.cloud.browser import CHROMIUM, NO_CHROMIUM
from tests.cloud.deployed_cloud import until
from tests.cloud.gateway_tasks import start
from tests.cloud.stream_clients import (
    StreamClient,
    curl,
    follow_in_browser,
    signing_options,
    virtual_host_url,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

STEPS = ["received", "processing", "completed"]


def steps(seen: list[dict[str, Any]]) -> list[str]:
    return [each["data"]["step"] for each in seen if "step" in each["data"]]


def numbers(seen: list[dict[str, Any]]) -> list[int]:
    return [each["data"]["data"]["number"] for each in seen if each["event"] == "partial"]


def percents(seen: list[dict[str, Any]]) -> list[int]:
    return [each["data"]["progress_percent"] for each in seen if each["event"] != "partial"]


def token_of(caller: ApiCaller, task_id: str) -> Any:
    status, content = caller.call("POST", f"/api/v1/mesh/{task_id}/stream-token")
    assert status == 201, content
    return content


@pytest.mark.rule("13.stream")
def test_a_loop_of_curl_follows_a_task_to_its_end(alice: ApiCaller) -> None:
    task_id = start(alice, "talk", {"messages": 20, "seconds": 2})
    url = f"{virtual_host_url(alice)}/api/v1/mesh/{task_id}/events"
    seen: list[dict[str, Any]] = []
    rounds = 0
    while not seen or seen[-1]["event"] != "final":
        status, events = curl(url, *signing_options(alice), last_event_id=seen[-1]["id"] if seen else None)
        assert status == 200
        seen += events
        rounds += 1
    assert rounds > 1
    assert steps(seen) == STEPS
    assert numbers(seen) == list(range(20))
    assert percents(seen) == sorted(percents(seen))
    assert (seen[-1]["data"]["status"], percents(seen)[-1]) == ("succeeded", 100)
    assert curl(url, *signing_options(alice), last_event_id=seen[-1]["id"]) == (204, [])


@pytest.mark.rule("13.stream")
def test_a_browser_follows_a_task_to_its_end(gateway: DeployedCloud, alice: ApiCaller, tmp_path: Path) -> None:
    """EventSource cannot sign or set a header, is on a page of another origin, and reconnects by itself."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    task_id = start(alice, "talk", {"messages": 20, "seconds": 4})
    with follow_in_browser(token_of(alice, task_id)["url"], tmp_path) as told:
        until(
            lambda: told if told and told[-1]["event"] == "closed" else None, "the browser to see the end and stay away"
        )
    seen = [each for each in told if each["event"] != "closed"]
    assert steps(seen) == STEPS
    assert numbers(seen) == list(range(20))
    assert [each["event"] for each in seen].count("final") == 1
    assert seen[-1]["data"]["status"] == "succeeded"
    assert seen[-1]["opened"] > 1


@pytest.mark.rule("13.stream-token")
def test_a_token_opens_one_stream_and_nothing_else(gateway: DeployedCloud, alice: ApiCaller, bob: ApiCaller) -> None:
    ours, other = start(alice, "echo"), start(alice, "echo")
    assert bob.call("POST", f"/api/v1/mesh/{ours}/stream-token")[0] == 404
    assert bob.call("GET", f"/api/v1/mesh/{ours}/events")[0] == 404
    token = token_of(alice, ours)["token"]
    stranger = f"{callers.anonymous(gateway).url}/api/v1/mesh"
    assert curl(f"{stranger}/{ours}/stream?token={token}")[0] == 200
    for refused in (f"{other}/stream?token={token}", f"{ours}/stream", f"{ours}/events?token={token}"):
        assert curl(f"{stranger}/{refused}")[0] == 403


@pytest.mark.rule("7.FLY.clients")
def test_partials_arrive_while_the_handler_runs(alice: ApiCaller) -> None:
    """Across connections. `pytest -rP` shows the latency, which depends on the machine."""
    client = StreamClient(alice, start(alice, "talk", {"messages": 12, "seconds": 0, "every": 0.3}))
    waited: list[float] = []
    goes_on = True
    while goes_on:
        before = len(client.events)
        goes_on = client.connect()
        now = time.time()
        waited += [
            now - each["data"]["data"]["said_at"] for each in client.events[before:] if each["event"] == "partial"
        ]
    assert numbers(client.events) == list(range(12))
    assert client.connections > 3
    print(f"seen {median(waited):.2f} s after it was said, at most {max(waited):.2f} s")
