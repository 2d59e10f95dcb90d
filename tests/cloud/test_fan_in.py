"""protocol §9 on the deployed mesh, IAM enforced: sets of any width, nested, failing, late; one end each."""

from __future__ import annotations

import base64
import json
import random
from typing import Any
from uuid import uuid4

import pytest

from asya.protocol import ids, names
from tests.cloud.deployed_cloud import DeployedCloud, until

pytestmark = pytest.mark.cloud


def start(cloud: DeployedCloud, payload: dict[str, Any], *ahead: str) -> str:
    """Start a task at split; the id of it."""
    envelope_id = str(uuid4())
    route = {"prev": [], "curr": "split", "next": list(ahead) or [payload.get("at", "x-fan-in"), "publish"]}
    cloud.send_raw("split", json.dumps({"id": envelope_id, "route": route, "payload": payload}))
    return envelope_id


def succeeded(cloud: DeployedCloud, envelope_id: str) -> Any:
    """The payload that a task ended with."""
    task = cloud.ended(envelope_id)
    assert (task.status, task.error) == ("succeeded", None)
    envelope = cloud.envelope(task)
    assert "x-asya-fan-in" not in envelope.get("headers", {})
    return envelope["payload"]


def failed(cloud: DeployedCloud, envelope_id: str) -> tuple[str | None, str]:
    """Why a task failed, and the message of its error."""
    task = cloud.ended(envelope_id)
    assert task.status == "failed"
    assert task.error is not None
    return task.reason, task.error.message


def child(origin: str, index: int, position: int = 0) -> str:
    return ids.child_id(origin, 0, position, index)


def numbers(count: int) -> list[Any]:
    return [{"n": n} for n in range(count)]


def scores(count: int) -> list[Any]:
    return [{"scored": n * 10, "text": ""} for n in range(count)]


COUNTS = (0, 1, 2, 10, 50, 200)
LATE = {"items": [{"n": 1}, {"seconds": 12}]}


@pytest.fixture(scope="module")
def sent(paths: DeployedCloud) -> dict[int, str]:
    """A set of each size, all at once."""
    return {count: start(paths, {"items": numbers(count), "kept": True}) for count in COUNTS}


@pytest.fixture(scope="module")
def late(paths: DeployedCloud) -> dict[str, str]:
    """Two sets that do not become whole in time. With others on the way even the slice that is quick might be late."""
    return {at: start(paths, LATE | {"at": at}) for at in ("hurry", "hurry-partial")}


@pytest.mark.parametrize("count", COUNTS)
def test_items_come_back_in_their_order(paths: DeployedCloud, sent: dict[int, str], count: int) -> None:
    origin = sent[count]
    payload = succeeded(paths, origin)
    assert payload["results"] == scores(count)
    assert payload["kept"] is True
    for index in {1, count} & set(range(1, count + 1)):
        task = paths.ended(child(origin, index))
        assert (task.status, task.parent_id) == ("succeeded", origin)


def test_many_sets_at_once_do_not_mix(paths: DeployedCloud) -> None:
    payloads = [{"items": [{"n": n, "text": f"set {index}"} for n in range(4)], "index": index} for index in range(8)]
    origins = [start(paths, payload) for payload in payloads]
    for index, origin in enumerate(origins):
        payload = succeeded(paths, origin)
        assert payload["index"] == index
        assert [item["text"] for item in payload["results"]] == [f"set {index}"] * 4


def test_two_sets_of_one_origin(paths: DeployedCloud) -> None:
    origin = start(paths, {"items": numbers(3)}, "x-fan-in", "split", "x-fan-in", "publish")
    task = paths.ended(origin)
    assert paths.envelope(task)["route"]["prev"] == ["split", "x-fan-in", "split", "x-fan-in", "publish"]
    assert succeeded(paths, origin)["results"] == scores(3)


def test_sets_nest(paths: DeployedCloud) -> None:
    inner = {"items": numbers(2)}
    payload = succeeded(paths, start(paths, {"items": [{"n": 7}, inner, inner | {"at": "gather"}]}))
    assert payload["results"][0]["scored"] == 70
    assert [payload["results"][index]["results"] for index in (1, 2)] == [scores(2), scores(2)]


def test_large_slices_and_a_merged_envelope_larger_than_a_message(paths: DeployedCloud) -> None:
    texts = [letter * 300_000 for letter in "abcd"]
    origin = start(paths, {"items": [{"letter": text[0], "n": 1, "text": text} for text in texts[:2]] + numbers(1)})
    payload = succeeded(paths, origin)
    assert [item["text"] for item in payload["results"][:2]] == texts[:2]
    task = paths.ended(child(origin, 1))
    assert task.result_uri is not None


def test_a_failing_slice_fails_the_origin(paths: DeployedCloud) -> None:
    origin = start(paths, {"items": [{"n": 1}, {"fail": "no such airport"}, {"n": 3}]})
    assert failed(paths, origin) == ("SliceFailed", "no such airport")
    assert failed(paths, child(origin, 2))[1] == "no such airport"
    assert paths.ended(child(origin, 3)).status == "succeeded"


def test_a_partial_set_has_null_in_its_place(paths: DeployedCloud) -> None:
    payload = succeeded(paths, start(paths, {"items": [{"n": 1}, {"fail": "x"}, {"n": 3}], "at": "gather"}))
    assert [item and item["scored"] for item in payload["results"]] == [10, None, 30]


def test_without_its_quorum_a_partial_set_fails(paths: DeployedCloud) -> None:
    assert failed(paths, start(paths, {"items": [{"fail": "x"}], "at": "gather"})) == ("SliceFailed", "x")


def test_an_inner_failure_is_a_failed_slice_of_the_outer_set(paths: DeployedCloud) -> None:
    inner = {"items": [{"n": 1}, {"fail": "deep inside"}]}
    origin = start(paths, {"items": [{"n": 7}, inner]})
    assert failed(paths, origin) == ("SliceFailed", "deep inside")
    assert failed(paths, child(origin, 2)) == ("SliceFailed", "deep inside")
    borne = succeeded(paths, start(paths, {"items": [{"n": 7}, inner], "at": "gather"}))
    assert borne["results"][1] is None


def test_a_slice_that_is_late_ends_its_set_and_then_only_itself(paths: DeployedCloud, late: dict[str, str]) -> None:
    origin = late["hurry"]
    reason, message = failed(paths, origin)
    assert (reason, message) == ("FanInTimeout", "1 of 3 slices did not arrive in time: 2")
    assert paths.ended(child(origin, 2)).status == "succeeded"
    assert paths.ended(origin).status == "failed"


def test_a_partial_set_goes_on_when_its_time_is_up(paths: DeployedCloud, late: dict[str, str]) -> None:
    payload = succeeded(paths, late["hurry-partial"])
    assert [item and item["scored"] for item in payload["results"]] == [10, None]


def test_what_is_no_slice_may_not_come(paths: DeployedCloud) -> None:
    envelope = {"id": str(uuid4()), "route": {"prev": [], "curr": "x-fan-in", "next": []}, "payload": {}}
    paths.send_raw("x-fan-in", json.dumps(envelope))
    reason, message = failed(paths, str(envelope["id"]))
    assert reason == "RouteMismatch"
    assert "fan_out" in message


def by_hand(origin: str, set_id: str, count: int, index: int, said: str | int) -> str:
    """The message that a slice is when it comes to x-fan-in."""
    header = {"actor": "x-fan-in", "set_id": set_id, "origin_id": origin, "slice_count": count, "aggregation_key": "/r"}
    envelope = {
        "id": origin if index == 0 else f"{origin}-{index}",
        "route": {"prev": ["split"], "curr": "x-fan-in", "next": ["publish"] if index == 0 else []},
        "headers": {"x-asya-fan-in": header | {"slice_index": index}},
        "payload": {"said": said},
    }
    return json.dumps(envelope)


def in_order(how: str, count: int) -> list[int]:
    """The slices of a set, as they come."""
    indices = list(range(count))
    match how:
        case "the last first":
            indices.reverse()
        case "the origin last":
            indices = [*indices[1:], 0]
        case "in any order":
            random.Random(50).shuffle(indices)
    return indices


@pytest.mark.parametrize("how", ["the last first", "the origin last", "in any order"])
def test_fifty_slices_may_come_as_they_like(paths: DeployedCloud, how: str) -> None:
    origin, count = str(uuid4()), 51
    sqs = paths.client("sqs")
    url = sqs.get_queue_url(QueueName=names.queue_name("paths", "x-fan-in"))["QueueUrl"]
    bodies = [by_hand(origin, f"set-{origin}", count, index, index) for index in in_order(how, count)]
    for start_at in range(0, count, 10):
        ten = bodies[start_at : start_at + 10]
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(ten)]
        assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == len(ten)
    assert succeeded(paths, origin) == {"said": 0, "r": [{"said": number} for number in range(1, count)]}


def test_duplicates_of_slices_change_nothing(paths: DeployedCloud) -> None:
    origin, set_id = str(uuid4()), f"by-hand-{uuid4()}"

    def send(index: int, said: str) -> None:
        paths.send_raw("x-fan-in", by_hand(origin, set_id, 3, index, said))

    send(2, "first")
    until(lambda: paths.task(f"{origin}-2"), "the first to be stored")
    send(2, "second")
    send(0, "origin")
    send(1, "one")
    send(1, "one")
    send(0, "origin")
    assert succeeded(paths, origin) == {"said": "origin", "r": [{"said": "one"}, {"said": "first"}]}


def test_the_sweep_may_read_the_index_and_counts_the_open_sets(paths: DeployedCloud) -> None:
    set_id, envelope_id = f"open-{uuid4()}", str(uuid4())
    header = {"actor": "x-fan-in", "set_id": set_id, "origin_id": "nobody", "slice_index": 1, "slice_count": 2}
    envelope = {
        "id": envelope_id,
        "route": {"prev": [], "curr": "x-fan-in", "next": []},
        "headers": {"x-asya-fan-in": header | {"aggregation_key": "/r"}},
        "payload": 1,
    }
    paths.send_raw("x-fan-in", json.dumps(envelope))
    paths.ended(envelope_id)
    answer = paths.client("lambda").invoke(FunctionName="asya-paths-x-fan-in-sweep", LogType="Tail", Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()
    said = base64.b64decode(answer["LogResult"]).decode()
    counts = {
        metric["actor"]: metric["FanInOpen"][0]
        for metric in map(json.loads, filter(lambda line: line.startswith("{"), said.splitlines()))
        if "FanInOpen" in metric
    }
    assert counts["x-fan-in"] >= 1
    assert counts["gather"] == 0
