"""Every id that a sender may choose is reached by every call about a task, and every other one is refused where it enters."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given

from asya.gateway.call_table import CALLS
from asya.protocol import ids
from asya.protocol.keys import safe_segment, task_of_key
from asya.protocol.names import queue_name
from asya.testing import Mesh
from asya.testing.deployment import TEST_USER
from tests.fuzz.envelope_ids import REFUSED, REFUSED_EXAMPLES, SELECTED, USABLE
from tests.fuzz.sizes import examples

MESH = """
namespace: shop
code: handlers
operators: ["arn:aws:iam::*:user/test"]
actors:
  note: {handler: shop.note, keep_input: true, can_send_to: [approve]}
  approve: {kind: pause, can_send_to: [note], pause: {prompt: "Go on?", fields: [{name: ok, type: boolean}]}}
"""
HANDLER = """


def note(payload):
    return payload
"""
OF_A_TASK = [call for call in CALLS if call.path.startswith("/api/v1/mesh/{id}") and call.function == "x-gateway-api"]


class Shop:
    """A mesh whose operator makes calls about tasks by their ids."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh

    def send(self, envelope_id: str, *, then: tuple[str, ...] = ("approve", "note")) -> None:
        body = {"id": envelope_id, "route": {"prev": [], "curr": "note", "next": [*then]}, "payload": {}}
        self.mesh.cloud.queues.send(queue_name("shop", "note"), json.dumps(body), sender=None, by="AIDAEVE")
        self.mesh.cloud.run_until_idle()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.mesh.cloud.request(method, path, content, {}, user_arn=TEST_USER, user_id="AIDATEST")
        self.mesh.cloud.finish()
        self.mesh.cloud.run_until_idle()
        text = answer.get("body") or "null"
        return answer["statusCode"], json.loads(text) if text.startswith(("{", "[", "n")) else text

    def about(self, method: str, envelope_id: str, more: str = "", body: Any = None) -> tuple[int, Any]:
        return self.call(method, f"/api/v1/mesh/{quote(envelope_id, safe='')}{more}", body)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    path = tmp_path_factory.mktemp("shop")
    (path / "handlers").mkdir()
    (path / "handlers" / "shop.py").write_text(HANDLER)
    (path / "mesh.yaml").write_text(MESH)
    return Shop(Mesh(path / "mesh.yaml"))


def check_reached(shop: Shop, envelope_id: str) -> None:
    if shop.about("GET", envelope_id)[0] == 200:
        return  # an id of another example
    shop.send(envelope_id)
    status, task = shop.about("GET", envelope_id)
    assert (status, task["id"], task["status"]) == (200, envelope_id, "paused")
    for call in OF_A_TASK:
        if call.method == "GET" and "{hop}" not in call.path:
            status, answer = shop.about("GET", envelope_id, call.path.removeprefix("/api/v1/mesh/{id}"))
            assert status == 200 or "not_found" not in str(answer) or call.path.endswith("/set"), (call.route, answer)
    assert shop.about("GET", envelope_id, "/payloads/0")[0] == 200
    path = f"/api/v1/operations/logs/{quote(envelope_id, safe='')}"
    assert shop.call("GET", path)[0] == 200
    assert shop.about("POST", envelope_id, "/resume", {"input": {"ok": True}})[0] == 202
    assert shop.about("GET", envelope_id)[1]["status"] == "succeeded"
    key = f"results/succeeded/{safe_segment(envelope_id)}.json"
    assert key in shop.mesh.objects
    assert task_of_key(key.removeprefix("results/")) == envelope_id
    status, replay = shop.about("POST", envelope_id, "/replay", {"hop": 0})
    assert (status, replay["replay_of"]) == (201, envelope_id)
    assert shop.about("DELETE", replay["id"])[0] in (200, 204)
    assert shop.about("DELETE", envelope_id)[0] == 204  # it has ended


@pytest.mark.slow
@pytest.mark.rule("1.id.characters", "13.doors.paths")
@pytest.mark.parametrize("envelope_id", SELECTED)
def test_a_selected_id_is_reached_by_every_call(shop: Shop, envelope_id: str) -> None:
    check_reached(shop, envelope_id)


@pytest.mark.slow
@pytest.mark.rule("1.id.characters", "13.doors.paths")
@examples(12, 400)
@given(USABLE)
def test_an_id_of_any_characters_is_reached_by_every_call(shop: Shop, envelope_id: str) -> None:
    check_reached(shop, envelope_id)


def check_refused(shop: Shop, envelope_id: str) -> None:
    before = {key for key in shop.mesh.objects if "/sump/" in key}
    shop.send(envelope_id)
    [key] = {key for key in shop.mesh.objects if "/sump/" in key} - before
    kept = json.loads(shop.mesh.objects[key])
    assert (kept["status"]["phase"], kept["status"]["reason"]) == ("failed", "ParseError")
    assert ids.is_reserved(kept["id"])
    problem = kept["status"]["error"]["message"]
    assert problem == f"Failed to parse message: id {ids.problem_of(envelope_id)}"
    status, task = shop.about("GET", kept["id"])
    assert (status, task["status"]) == (200, "failed")
    assert not any(envelope_id == item.get("id") for item in shop.call("GET", "/api/v1/mesh?limit=100")[1]["items"])


@pytest.mark.slow
@pytest.mark.rule("1.id.characters")
@pytest.mark.parametrize("envelope_id", REFUSED_EXAMPLES, ids=map(ascii, REFUSED_EXAMPLES))
def test_a_selected_id_is_refused(shop: Shop, envelope_id: str) -> None:
    check_refused(shop, envelope_id)


@pytest.mark.slow
@pytest.mark.rule("1.id.characters")
@examples(12, 400)
@given(REFUSED)
def test_an_id_with_what_paths_and_commands_read_otherwise_is_refused(shop: Shop, envelope_id: str) -> None:
    check_refused(shop, envelope_id)
