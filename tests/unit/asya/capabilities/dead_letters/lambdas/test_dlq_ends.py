"""protocol §11: the end that a dead letter gives its task, against claims, pauses and real ends."""

import json
from dataclasses import replace
from typing import Any

import pytest

from asya.ends.aws.end_claims import Claim, EndClaims
from asya.ends.lambdas.wiring import build_sink
from asya.protocol import ids
from asya.protocol.events import COUNT_LIMIT
from asya.protocol.mesh_table import Actor
from asya.protocol.task_merge import merge
from tests.doubles.dead_letters import MESH, DlqWorld
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import sqs_event


def claimed(dlq_world: DlqWorld, envelope_id: str = "env-1") -> dict[str, Any]:
    """The phase of the claim that holds, and whether it is provisional."""
    item = dlq_world.world.dynamodb.get_item(
        TableName="asya-shop-sink", Key={"pk": {"S": envelope_id}, "sk": {"S": "claim"}}
    )["Item"]
    return {"phase": item["phase"]["S"], "provisional": item["provisional"]["BOOL"]}


def finish_at_sink(dlq_world: DlqWorld, **members: Any) -> None:
    """The envelope reaches x-sink, after SQS has sent the dead letter to its queue again."""
    body = message(**({"status": status(phase="succeeded"), "route": DONE, "payload": 42} | members))
    build_sink(dlq_world.world.services("x-sink", MESH)).process(sqs_event(body))


SLICE = {"actor": "x-fan-in", "set_id": "s", "origin_id": "o", "slice_index": 2, "slice_count": 3} | {
    "aggregation_key": "/results"
}
DONE = {"prev": ["prep", "infer", "post"], "curr": "", "next": []}


@pytest.mark.rule("11.dlq.provisional")
def test_the_end_of_a_dead_letter_is_provisional_and_gives_way_to_its_real_end(dlq_world: DlqWorld) -> None:
    dlq_world.put("infer", "m-1", message())
    dlq_world.scan()
    (guess,) = dlq_world.world.gateway.events
    assert (guess.status, guess.data.provisional) == ("failed", True)
    assert claimed(dlq_world) == {"phase": "failed", "provisional": True}
    finish_at_sink(dlq_world)
    end = dlq_world.world.gateway.events[-1]
    assert (end.status, end.data.provisional, end.data.result_uri is not None) == ("succeeded", False, True)
    assert claimed(dlq_world) == {"phase": "succeeded", "provisional": False}
    assert dlq_world.world.s3.keys("results/") == ["results/succeeded/env-1.json"]
    assert merge(merge(None, guess), end).status == "succeeded"


@pytest.mark.rule("11.dlq.provisional")
def test_a_cancellation_loses_to_the_end_of_a_dead_letter_and_is_kept(dlq_world: DlqWorld) -> None:
    dlq_world.put("infer", "m-1", message())
    dlq_world.scan()
    finish_at_sink(dlq_world, status=status(phase="canceled", reason="Canceled"))
    assert [each.status for each in dlq_world.world.gateway.events] == ["failed"]
    (key,) = dlq_world.world.s3.keys("results/")
    assert key.startswith("results/superseded/env-1/0/3-canceled-")


@pytest.mark.rule("11.sink.canceled")
def test_the_dead_letter_of_a_canceled_slice_tells_its_set_and_nobody_else(dlq_world: DlqWorld) -> None:
    claims = EndClaims(dlq_world.world.dynamodb, "asya-shop-sink", 60)  # type: ignore[arg-type]
    claims.take(Claim("env-1", 0, "canceled", "canceled/env-1.json", COUNT_LIMIT, is_by_call=True), epoch_seconds=0)
    dlq_world.put("infer", "m-1", message(headers={"x-asya-fan-in": SLICE}))
    dlq_world.scan()
    (told,) = dlq_world.world.messages("x-fan-in")
    assert (json.loads(told.body)["phase"], json.loads(told.body)["slice_index"]) == ("canceled", 2)
    assert (dlq_world.world.targets, dlq_world.world.gateway.events) == (["x-fan-in"], [])
    assert dlq_world.world.s3.keys("dlq/") == ["dlq/env-1/0/1.json"]


@pytest.mark.rule("11.sink.failed-child", "11.sink.superseded")
@pytest.mark.parametrize("gives_one_frame", [False, True])
def test_a_dead_letter_whose_task_has_ended_is_a_failed_child_unless_its_hop_gives_one_frame(
    dlq_world: DlqWorld, gives_one_frame: bool
) -> None:
    actor = Actor(kind="handler", handler="handlers.infer", gives_one_frame=gives_one_frame)
    dlq_world.services = dlq_world.world.services("x-dlq", mesh({"infer": actor}))
    finish_at_sink(dlq_world)
    dlq_world.put("infer", "m-1", message())
    for _ in range(2):
        dlq_world.scan()
    _, *events = dlq_world.world.gateway.events
    child = ids.child_id("env-1", 0, 1, "error")
    expected = [] if gives_one_frame else [(child, "env-1", "failed", True)]
    assert [(each.id, each.parent_id, each.status, each.data.provisional) for each in events] == expected
    assert dlq_world.world.s3.keys("dlq/") == ["dlq/env-1/0/1.json"]


@pytest.mark.rule("11.sink.failed-child")
def test_a_failed_child_is_reported_again_if_its_report_was_not_taken(dlq_world: DlqWorld) -> None:
    child = ids.child_id("env-1", 0, 1, "error")
    finish_at_sink(dlq_world)
    dlq_world.put("infer", "m-1", message())
    dlq_world.world.gateway.item_status[child, "failed"] = 503
    dlq_world.scan()
    dlq_world.world.gateway.item_status.clear()
    dlq_world.scan()
    dlq_world.scan()
    assert [each.id for each in dlq_world.world.gateway.events] == ["env-1", child, child]


@pytest.mark.rule("11.sink.stale", "11.sink.failed-child")
@pytest.mark.parametrize(
    ("gives_one_frame", "pause_generation", "is_child"), [(True, 0, False), (False, 0, True), (False, 1, False)]
)
def test_a_dead_letter_from_before_the_pause_ends_no_task_but_that_of_its_missing_frames(
    dlq_world: DlqWorld, gives_one_frame: bool, pause_generation: int, is_child: bool
) -> None:
    actor = Actor(kind="handler", handler="handlers.infer", gives_one_frame=gives_one_frame)
    dlq_world.services = dlq_world.world.services("x-dlq", mesh({"infer": actor}))
    claims = EndClaims(dlq_world.world.dynamodb, "asya-shop-sink", keep_seconds=60)  # type: ignore[arg-type]
    assert claims.note_pause("env-1", pause_generation, 1, epoch_seconds=0) is None
    dlq_world.put("infer", "m-1", message())
    for _ in range(2):
        dlq_world.scan()
    child = ids.child_id("env-1", 0, 1, "error")
    assert dlq_world.reported == ([(child, "DeliveryExhausted")] if is_child else [])
    assert dlq_world.world.s3.keys("dlq/") == ["dlq/env-1/0/1.json"]


@pytest.mark.rule("11.pause.ends")
def test_the_dead_letter_of_a_pause_actor_ends_a_task_whose_pause_was_never_reported(dlq_world: DlqWorld) -> None:
    """The pause actor noted its pause, and died before each report. A paused record would refuse the end."""
    claims = EndClaims(dlq_world.world.dynamodb, "asya-shop-sink", keep_seconds=60)  # type: ignore[arg-type]
    assert claims.note_pause("env-1", 0, 1, epoch_seconds=0) is None
    at_pause = message(route={"prev": ["prep"], "curr": "approve", "next": []})
    dlq_world.put("approve", "m-1", at_pause)
    pausing = mesh({"approve": Actor(kind="pause")})
    watch = replace(dlq_world.watch(), services=dlq_world.world.services("x-dlq", pausing))
    watch.scan(["approve"])
    assert dlq_world.reported == [("env-1", "DeliveryExhausted")]
    assert (dlq_world.world.gateway.events[0].position, dlq_world.world.gateway.events[0].data.provisional) == (1, True)


@pytest.mark.rule("11.pause.ends")
def test_an_unreadable_dead_letter_ends_a_task_that_has_paused(dlq_world: DlqWorld) -> None:
    claims = EndClaims(dlq_world.world.dynamodb, "asya-shop-sink", keep_seconds=60)  # type: ignore[arg-type]
    assert claims.note_pause("env-1", 0, 5, epoch_seconds=0) is None
    dlq_world.put("infer", "m-1", b'{"id":"env-1","route":7}')
    dlq_world.scan()
    assert dlq_world.reported == [("env-1", "DeliveryExhausted")]
    assert dlq_world.world.gateway.events[0].data.route is None
