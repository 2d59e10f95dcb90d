"""protocol §9 on the deployed mesh, IAM enforced: sets of any width, nested, failing, late; one end each."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from asya.protocol import ids, names
from asya_cli.connection import read_local
from asya_cli.mesh_client import MeshClient
from infra.local.accounts import aws_client
from infra.local.cloud import UpOptions, down, up
from infra.local.folder import StateFolder
from infra.local.keys import read_keys
from tests.cloud.deployed_cloud import DeployedCloud, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya.protocol.task_view import TaskView

pytestmark = pytest.mark.cloud

MESH = Path(__file__).parent / "meshes" / "slices" / "mesh.yaml"


@pytest.fixture(scope="module")
def slices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """A mesh of light actors and fan-in actors only."""
    state = tmp_path_factory.mktemp("slices")
    try:
        up(MESH, state, UpOptions(auth=True))
        cloud = DeployedCloud(MeshClient(read_local(state)), state)
        yield cloud
        for actor in ("split", "score", "publish", "gather", "hurry", "hurry-partial", *CREW):
            assert not cloud.messages(names.dlq_name("slices", actor)), f"dead letters of {actor}"
    finally:
        down(state)


CREW = ("x-fan-in", "x-sink", "x-sump")


def start(cloud: DeployedCloud, payload: dict[str, Any], *ahead: str) -> str:
    """Start a task at split; the id of it."""
    envelope_id = str(uuid4())
    route = {"prev": [], "curr": "split", "next": list(ahead) or [payload.get("at", "x-fan-in"), "publish"]}
    cloud.send_raw("split", json.dumps({"id": envelope_id, "route": route, "payload": payload}))
    return envelope_id


def result(cloud: DeployedCloud, task: TaskView) -> Any:
    """What x-sink wrote: the envelope."""
    assert task.result_uri is not None
    body = cloud.mesh.fetch(task.result_uri)
    assert body is not None
    return json.loads(body)


def succeeded(cloud: DeployedCloud, envelope_id: str) -> Any:
    """The payload that a task ended with."""
    task = cloud.ended(envelope_id)
    assert (task.status, task.error) == ("succeeded", None)
    envelope = result(cloud, task)
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


@pytest.mark.parametrize("count", [0, 1, 2, 10, 50, 200])
def test_items_come_back_in_their_order(slices: DeployedCloud, count: int) -> None:
    origin = start(slices, {"items": numbers(count), "kept": True})
    payload = succeeded(slices, origin)
    assert payload["results"] == scores(count)
    assert payload["kept"] is True
    for index in {1, count} & set(range(1, count + 1)):
        task = slices.ended(child(origin, index))
        assert (task.status, task.parent_id) == ("succeeded", origin)


def test_many_sets_at_once_do_not_mix(slices: DeployedCloud) -> None:
    payloads = [{"items": [{"n": n, "text": f"set {index}"} for n in range(4)], "index": index} for index in range(8)]
    origins = [start(slices, payload) for payload in payloads]
    for index, origin in enumerate(origins):
        payload = succeeded(slices, origin)
        assert payload["index"] == index
        assert [item["text"] for item in payload["results"]] == [f"set {index}"] * 4


def test_two_sets_of_one_origin(slices: DeployedCloud) -> None:
    origin = start(slices, {"items": numbers(3)}, "x-fan-in", "split", "x-fan-in", "publish")
    task = slices.ended(origin)
    assert result(slices, task)["route"]["prev"] == ["split", "x-fan-in", "split", "x-fan-in", "publish"]
    assert succeeded(slices, origin)["results"] == scores(3)


def test_sets_nest(slices: DeployedCloud) -> None:
    inner = {"items": numbers(2)}
    payload = succeeded(slices, start(slices, {"items": [{"n": 7}, inner, inner | {"at": "gather"}]}))
    assert payload["results"][0]["scored"] == 70
    assert [payload["results"][index]["results"] for index in (1, 2)] == [scores(2), scores(2)]


def test_large_slices_and_a_merged_envelope_larger_than_a_message(slices: DeployedCloud) -> None:
    texts = [letter * 300_000 for letter in "abcd"]
    origin = start(slices, {"items": [{"letter": text[0], "n": 1, "text": text} for text in texts[:2]] + numbers(1)})
    payload = succeeded(slices, origin)
    assert [item["text"] for item in payload["results"][:2]] == texts[:2]
    task = slices.ended(child(origin, 1))
    assert task.result_uri is not None


def test_a_failing_slice_fails_the_origin(slices: DeployedCloud) -> None:
    origin = start(slices, {"items": [{"n": 1}, {"fail": "no such airport"}, {"n": 3}]})
    assert failed(slices, origin) == ("SliceFailed", "no such airport")
    assert failed(slices, child(origin, 2))[1] == "no such airport"
    assert slices.ended(child(origin, 3)).status == "succeeded"


def test_a_partial_set_has_null_in_its_place(slices: DeployedCloud) -> None:
    payload = succeeded(slices, start(slices, {"items": [{"n": 1}, {"fail": "x"}, {"n": 3}], "at": "gather"}))
    assert [item and item["scored"] for item in payload["results"]] == [10, None, 30]


def test_without_its_quorum_a_partial_set_fails(slices: DeployedCloud) -> None:
    assert failed(slices, start(slices, {"items": [{"fail": "x"}], "at": "gather"})) == ("SliceFailed", "x")


def test_an_inner_failure_is_a_failed_slice_of_the_outer_set(slices: DeployedCloud) -> None:
    inner = {"items": [{"n": 1}, {"fail": "deep inside"}]}
    origin = start(slices, {"items": [{"n": 7}, inner]})
    assert failed(slices, origin) == ("SliceFailed", "deep inside")
    assert failed(slices, child(origin, 2)) == ("SliceFailed", "deep inside")
    borne = succeeded(slices, start(slices, {"items": [{"n": 7}, inner], "at": "gather"}))
    assert borne["results"][1] is None


def test_a_slice_that_is_late_ends_its_set_and_then_only_itself(slices: DeployedCloud) -> None:
    origin = start(slices, {"items": [{"n": 1}, {"seconds": 12}], "at": "hurry"})
    reason, message = failed(slices, origin)
    assert (reason, message) == ("FanInTimeout", "1 of 3 slices did not arrive in time: 2")
    assert slices.ended(child(origin, 2)).status == "succeeded"
    assert slices.ended(origin).status == "failed"


def test_a_partial_set_goes_on_when_its_time_is_up(slices: DeployedCloud) -> None:
    origin = start(slices, {"items": [{"n": 1}, {"seconds": 12}], "at": "hurry-partial"})
    payload = succeeded(slices, origin)
    assert [item and item["scored"] for item in payload["results"]] == [10, None]


def test_what_is_no_slice_may_not_come(slices: DeployedCloud) -> None:
    envelope = {"id": str(uuid4()), "route": {"prev": [], "curr": "x-fan-in", "next": []}, "payload": {}}
    slices.send_raw("x-fan-in", json.dumps(envelope))
    reason, message = failed(slices, str(envelope["id"]))
    assert reason == "RouteMismatch"
    assert "fan_out" in message


def test_duplicates_of_slices_change_nothing(slices: DeployedCloud) -> None:
    origin, set_id = str(uuid4()), f"by-hand-{uuid4()}"
    header = {"actor": "x-fan-in", "set_id": set_id, "origin_id": origin, "slice_count": 3, "aggregation_key": "/r"}

    def send(index: int, text: str) -> None:
        rest = ["publish"] if index == 0 else []
        envelope = {
            "id": origin if index == 0 else f"{origin}-{index}",
            "route": {"prev": ["split"], "curr": "x-fan-in", "next": rest},
            "headers": {"x-asya-fan-in": header | {"slice_index": index}},
            "payload": {"said": text},
        }
        slices.send_raw("x-fan-in", json.dumps(envelope))

    send(2, "first")
    until(lambda: slices.mesh.task(f"{origin}-2"), "the first to be stored")
    send(2, "second")
    send(0, "origin")
    send(1, "one")
    send(1, "one")
    send(0, "origin")
    assert succeeded(slices, origin) == {"said": "origin", "r": [{"said": "one"}, {"said": "first"}]}


def test_the_sweep_may_read_the_index_and_counts_the_open_sets(slices: DeployedCloud) -> None:
    set_id, envelope_id = f"open-{uuid4()}", str(uuid4())
    header = {"actor": "x-fan-in", "set_id": set_id, "origin_id": "nobody", "slice_index": 1, "slice_count": 2}
    envelope = {
        "id": envelope_id,
        "route": {"prev": [], "curr": "x-fan-in", "next": []},
        "headers": {"x-asya-fan-in": header | {"aggregation_key": "/r"}},
        "payload": 1,
    }
    slices.send_raw("x-fan-in", json.dumps(envelope))
    slices.ended(envelope_id)
    functions = aws_client(
        "lambda", str(slices.mesh.connection.endpoint_url), read_keys(StateFolder.at(slices.state).keys)["deployer"]
    )
    answer = functions.invoke(FunctionName="asya-slices-x-fan-in-sweep", LogType="Tail", Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()
    said = base64.b64decode(answer["LogResult"]).decode()
    counts = {
        metric["actor"]: metric["FanInOpen"][0]
        for metric in map(json.loads, filter(lambda line: line.startswith("{"), said.splitlines()))
        if "FanInOpen" in metric
    }
    assert counts["x-fan-in"] >= 1
    assert counts["gather"] == 0
