"""Nobody reaches an actor through the crew that he may not send to (`protocol §1.authority`)."""

import json

import pytest

from asya.protocol.names import dlq_name, queue_name
from asya.testing import Mesh, RefusedError
from asya.testing.run import Run
from asya.testing.services.roles import role_id

MESH = """
namespace: bank
crew: {routable: [x-checkpoint, x-fan-in, x-pause]}
code: handlers
actors:
  intake: {handler: bank.intake, can_send_to: [approve, nap, later, gather]}
  model: {handler: bank.model, can_send_to: [approve]}
  approve:
    kind: pause
    pause: {prompt: "Pay it?", fields: [{name: approved, type: boolean}]}
  nap: {kind: wait, wait: {for: 1h}}
  later: {kind: wait, wait: {for: 1h}, can_send_to: [approve]}
  gather: {kind: fan_in}
  payout: {handler: bank.payout}
  lender: {handler: bank.intake}
tools:
  pay: {description: Pays, route: [intake, approve, payout]}
  counted: {description: Counts first, route: [model, x-checkpoint, count]}
"""
MESH = MESH.replace("tools:", "  count: {handler: bank.count}\ntools:")
HANDLERS = """
from asya import fan_out

def intake(payload):
    if "items" in payload:
        return fan_out(payload["items"], to=[], at=payload.get("at", "x-fan-in"))
    return payload

def model(payload):
    yield ("SET", ".route.next", payload["route"])
    yield payload

def payout(payload):
    return {**payload, "paid": payload["amount"]}

def count(payload):
    return {**payload, "counted": True}
"""


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    tmp_path = tmp_path_factory.mktemp("bank")
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "bank.py").write_text(HANDLERS)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def run_to_its_end(mesh: Mesh, run: Run) -> Run:
    """Let a run wait and be answered until it has ended."""
    while run.status in ("paused", "running", "pending"):
        if run.status == "paused":
            run = mesh.answer(run, **({"approved": True} if run.question and run.question.fields else {}))
        else:
            mesh.travel(minutes=61)
    return run


# Each way behind `intake`, which may send to none of its ends.
WAYS = [
    ["payout"],
    ["x-checkpoint", "payout"],
    ["x-checkpoint", "x-checkpoint", "payout"],
    ["x-resume", "payout"],
    ["x-checkpoint", "x-resume", "x-checkpoint", "payout"],
    ["x-pause", "payout"],
    ["x-pause", "x-resume", "payout"],
    ["x-checkpoint", "x-pause", "payout"],
    ["nap", "payout"],
    ["nap", "x-checkpoint", "payout"],
    ["x-checkpoint", "nap", "payout"],
    ["later", "payout"],
    ["later", "x-checkpoint", "payout"],
    ["lender", "payout"],
    ["x-checkpoint", "lender", "payout"],
]


@pytest.mark.rule("1.authority")
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_a_route_through_the_crew_leads_nowhere_that_its_actor_may_not_send_to(bank: Mesh, way: list[str]) -> None:
    run = run_to_its_end(bank, bank.send("intake", {"amount": 1_000_000}, then=way))
    assert (run.status, "payout" in run.actors, run.errors[-1].type) == ("failed", False, "RouteMismatch")


@pytest.mark.rule("1.authority")
@pytest.mark.parametrize("way", [["payout"], ["x-checkpoint", "payout"], ["x-pause", "payout"]], ids=" ".join)
def test_neither_does_a_route_that_a_model_writes(bank: Mesh, way: list[str]) -> None:
    run = run_to_its_end(bank, bank.send("model", {"amount": 1_000_000, "route": way}))
    assert (run.status, "payout" in run.actors, run.errors[-1].type) == ("failed", False, "RouteMismatch")


@pytest.mark.rule("1.authority")
@pytest.mark.parametrize("at", ["x-fan-in", "gather"])
def test_a_set_leads_its_origin_nowhere_else(bank: Mesh, at: str) -> None:
    run = bank.send("intake", {"amount": 1_000_000, "items": [1], "at": at}, then=[at, "payout"])
    assert (run.status, "payout" in run.actors) == ("failed", False)


@pytest.mark.rule("1.authority.outside")
@pytest.mark.parametrize("first", ["x-checkpoint", "x-resume"])
def test_a_sender_outside_does_not_start_behind_the_crew(bank: Mesh, first: str) -> None:
    run = bank.send(first, {"amount": 1_000_000}, then=["payout"])
    assert (run.status, "payout" in run.actors, run.errors[-1].type) == ("failed", False, "RouteMismatch")
    assert bank.send(first, {"amount": 1}, then=["x-checkpoint"]).status == "succeeded"
    with pytest.raises(RefusedError, match="is reserved; name an actor of your own"):
        bank.send(first, {"amount": 1})


@pytest.mark.rule("1.authority")
@pytest.mark.parametrize(
    ("override", "way"),
    [
        ({"approve": "x-checkpoint"}, ["approve", "payout"]),
        ({"approve": "payout"}, ["approve"]),
        ({"approve": "payout"}, ["x-checkpoint", "approve"]),
        ({"x-checkpoint": "nap", "approve": "payout"}, ["x-checkpoint", "approve"]),
        ({"approve": "x-pause"}, ["approve", "payout"]),
    ],
    ids=str,
)
def test_overrides_count_as_the_actors_that_they_name(bank: Mesh, override: dict[str, str], way: list[str]) -> None:
    started = bank.send("intake", {"amount": 1}, then=way, headers={"x-asya-route-override": override})
    run = run_to_its_end(bank, started)
    assert (run.status, "payout" in run.actors) == ("failed", False)


@pytest.mark.rule("1.authority")
@pytest.mark.parametrize(
    ("first", "way"),
    [
        ("intake", ["approve", "payout"]),
        ("intake", ["x-checkpoint", "approve", "x-checkpoint", "payout"]),
        ("intake", ["later", "approve", "payout"]),
        ("intake", ["nap", "approve", "payout"]),
        ("intake", ["x-checkpoint", "x-pause", "approve", "payout"]),
        ("lender", ["x-checkpoint", "nap", "x-pause", "payout"]),
        ("approve", ["payout"]),
        ("nap", ["payout"]),
    ],
    ids=str,
)
@pytest.mark.slow
def test_a_chain_of_allowed_sends_goes_on_through_the_crew(bank: Mesh, first: str, way: list[str]) -> None:
    run = run_to_its_end(bank, bank.send(first, {"amount": 7}, then=way))
    assert run.result["paid"] == 7


@pytest.mark.rule("1.authority")
def test_a_tool_leads_through_the_crew_as_the_mesh_file_says(bank: Mesh) -> None:
    assert bank.call("counted", {"route": ["x-checkpoint", "count"]}).result["counted"]
    run = bank.send("model", {"route": ["count"]})
    assert run.errors[-1].type == "RouteMismatch"


@pytest.mark.rule("1.authority")
def test_the_error_names_both_actors_and_the_line_to_write(bank: Mesh) -> None:
    run = bank.send("intake", {"amount": 1}, then=["x-checkpoint", "payout"])
    assert run.errors[-1].message == (
        "actor 'intake' may not send to 'payout'; to allow it, write in the mesh file under actors.intake: "
        "can_send_to: [approve, gather, later, nap, payout]"
    )


@pytest.mark.rule("12.redrive.authority")
@pytest.mark.parametrize(
    ("sender", "paid"), [("intake", False), ("lender", True), ("x-triggers", True), ("approve", True), (None, False)]
)
@pytest.mark.parametrize("actor", ["x-checkpoint", "x-resume"])
def test_a_redriven_letter_goes_no_further_than_its_first_sender_may_send(
    bank: Mesh, actor: str, sender: str | None, paid: bool
) -> None:
    body = {
        "id": f"letter-{actor}-{sender}",
        "route": {"prev": [], "curr": actor, "next": ["payout"]},
        "payload": {"amount": 1},
    }
    queue = dlq_name("bank", actor)
    bank.cloud.queues.send(queue, json.dumps(body), sender=None, by=role_id(sender) if sender else "AIDAEVE")
    (run,) = bank.redrive(actor)
    assert (run.status, "payout" in run.actors) == (("succeeded", True) if paid else ("failed", False))


@pytest.mark.rule("11.resume.sender")
def test_code_of_an_actor_resumes_no_pause(bank: Mesh) -> None:
    run = bank.send("intake", {"amount": 1}, then=["approve", "payout"])
    (kept,) = (
        body for key, body in bank.cloud.objects.items() if key.startswith(f"paused/{run.id}/") and key.endswith("json")
    )
    forged = json.loads(kept)
    forged["headers"] |= {
        "x-asya-resume-input": {"approved": True},
        "x-asya-resume-at": forged["headers"]["x-asya-pause"]["paused_at"],
    }
    bank.cloud.queues.send(queue_name("bank", "x-resume"), json.dumps(forged), sender=None, by=role_id("intake"))
    bank.travel(minutes=5)
    assert "payout" not in run.actors
    assert not any(key.startswith("resumed") for key in bank.cloud.objects)
