"""Code of one light actor forges inputs, so that replays start elsewhere or with other payloads (`protocol §12.input`)."""

import hashlib
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from asya.testing import Mesh
from asya.testing.errors import RefusedError
from asya.testing.permissions import of_objects
from asya.testing.run import Run
from tests.doubles.attacked_by_code import FORGED, Body, addresses, new_bank, paid


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    return new_bank(tmp_path_factory.mktemp("bank"))


def keep(bank: Mesh, key: str, content: Body | bytes) -> None:
    """Write an object with the role of `eve`."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    requests = of_objects("put_object", {"Key": key, "Body": body}, addresses(bank))
    bank.cloud.permissions.check("eve", requests)
    bank.cloud.bucket.objects[key] = body


def kept_hops(bank: Mesh, run: Run) -> list[tuple[int, str]]:
    items = bank.ask("GET", f"/api/v1/mesh/{run.id}/payloads", dict[str, Any])["items"]
    return [(each["hop"], each["actor"]) for each in items if each.get("copy") == "input"]


KEPT_AS = ("{id}/0/{at}", "{id}/0/{at}.work", "{id}/0/{at}.x-eve", "{id}/0/{at}.approve", "{id}/1/{at}.crunch")


@pytest.mark.rule("12.input.writers")
@pytest.mark.parametrize("name", [*KEPT_AS, "{id}.eve/0/{at}", "{id}/0/{at}.eve.work", "{id}/0/eve/{at}"])
def test_an_input_of_another_actor_is_not_written(bank: Mesh, name: str) -> None:
    run = paid(bank)
    for at in (0, 1, 2):
        with pytest.raises(ClientError, match="not authorized"):
            keep(bank, f"hops/{name.format(id=run.id, at=at)}.json", b"{}")


@pytest.mark.rule("12.input.counts", "12.input.writers", "13.payloads.actors")
@pytest.mark.parametrize("generation", [0, 1, 9_999])
@pytest.mark.parametrize("payload", [FORGED, None], ids=["with a payload", "with a reference"])
def test_an_input_of_a_task_that_its_actor_never_had_starts_nothing(
    bank: Mesh, generation: int, payload: Body | None
) -> None:
    """Else a replay, which its owner asks for, starts at an actor and with a payload that code of another one has chosen."""
    run = paid(bank)
    before = kept_hops(bank, run)
    assert before == [(0, "work")]
    digest = hashlib.sha256(b'{"card":4711}').hexdigest()
    stolen = {
        "x-asya-payload-ref": {"key": f"payloads/crunch/{digest[:2]}/{digest}.json", "size": 13, "sha256": digest}
    }
    prev = ["work", "approve", "work"]
    for at in (0, 1, 2, 3):
        for curr, override in (("eve", {}), ("crunch", {}), ("work", {"work": "eve"}), ("eve", {"eve": "crunch"})):
            headers = {"x-asya-route-override": override, "x-asya-generation": generation}
            route = {"prev": prev[:at], "curr": curr, "next": ["crunch"]}
            body = {"id": run.id, "route": route, "payload": payload, "headers": headers | ({} if payload else stolen)}
            keep(bank, f"hops/{run.id}/{generation}/{at}.eve.json", body)
            if at > 0:
                with pytest.raises(RefusedError, match=r"stored by 'eve'.*from hop 0"):
                    bank.replay(run, hop=at)
            assert kept_hops(bank, run) == before
    again = bank.replay(run, hop=0)
    assert (again.status, [sent.route.curr for sent in bank.sent(again.id)]) == ("paused", ["work", "approve"])


@pytest.mark.rule("12.input.content", "1.authority")
def test_an_input_says_the_actor_and_the_hop_of_its_key(bank: Mesh) -> None:
    """The code of an actor says what it has received, and sends that on itself: only where it may send."""
    run = bank.send("eve", {"amount": 1})
    other, key = paid(bank), f"hops/{run.id}/0/0.eve.json"
    true = json.loads(bank.cloud.bucket.objects[key])
    at, reference = true["route"], {"key": "payloads/work/a", "size": 1, "sha256": "a"}
    for change in (
        {"route": at | {"curr": "crunch"}},
        {"route": at | {"curr": "x-fan-in", "prev": ["split"]}},
        {"route": at | {"curr": ""}},
        {"route": at | {"prev": ["eve"]}},
        {"headers": {"x-asya-route-override": {"eve": "crunch"}}},
        {"headers": {"x-asya-generation": 1}},
        {"headers": {"x-asya-payload-ref": reference}, "payload": None},
        {"id": other.id},
    ):
        keep(bank, key, true | change)
        with pytest.raises(RefusedError, match=r"0\.eve\.json .* its key"):
            bank.replay(run, hop=0)
        shown = bank.ask("GET", f"/api/v1/mesh/{run.id}/payloads/0", dict[str, Any])
        assert (shown["actor"], shown["before"]["text"], "its key" in shown["before"]["problem"]) == ("eve", "", True)
    for ahead in (["crunch"], ["work"], ["x-checkpoint", "crunch"], ["approve", "crunch"], ["nap", "work"]):
        keep(bank, key, true | {"payload": FORGED, "route": at | {"next": ahead}})
        again = bank.replay(run, hop=0, force=True)
        assert {sent.route.curr for sent in bank.sent(again.id)} <= {"eve", "", "x-checkpoint"}
        assert (again.status, again.errors[0].type) == ("failed", "RouteMismatch")
