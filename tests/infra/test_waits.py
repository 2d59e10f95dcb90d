"""protocol §11: wait actors, x-wait and the sweep in the templates, and the keys of the mesh file."""

from typing import Any

import pytest

from asya.protocol.wait import Wait
from asya_infra.mesh_file import load_mesh, to_table
from tests.infra.conftest import HERE
from tests.infra.test_permissions import resources

BUCKET = "arn:<Partition>:s3:::asya-plain-test-<AccountId>-<Region>"


def sends(plain: Any, actor: str) -> set[str]:
    """The queues that an actor may send to."""
    arns = resources(plain, actor, "sqs:SendMessage", "plain-test")
    return {arn.rpartition(":")[2].removeprefix("asya-plain-test-") for arn in arns}


def objects(plain: Any, actor: str, action: str) -> set[str]:
    """The patterns of the mesh's own bucket on which an actor may do this action."""
    return {arn.removeprefix(f"{BUCKET}/") for arn in resources(plain, actor, action, "plain-test")}


_CREW = ("x-sink", "x-sump", "x-resume")


@pytest.mark.parametrize("name", ["cool-down", "embargo", "x-wait"])
def test_wait_actors_have_a_queue_and_a_function(plain: Any, name: str) -> None:
    function = plain.one("AWS::Lambda::Function", FunctionName=f"asya-plain-test-{name}")
    assert function["MemorySize"] == (1024 if name == "cool-down" else 512)
    assert function["Environment"]["Variables"]["ASYA_ACTOR"] == name
    assert plain.one("AWS::SQS::Queue", QueueName=f"asya-plain-test-{name}")["VisibilityTimeout"] == 150


@pytest.mark.rule("8.retry.days", "4.report-queues.senders")
def test_they_send_along_their_routes_and_report_waits(plain: Any) -> None:
    assert sends(plain, "cool-down") == {"cool-down", "cool-down-dlq", "embargo", "x-reports", "x-ends", *_CREW}
    assert sends(plain, "embargo") == {"embargo", "embargo-dlq", "publish", "x-reports", "x-ends", *_CREW}
    assert sends(plain, "x-wait") == {"publish", "x-wait", "x-wait-dlq", "x-sink", "x-sump", "x-reports", "x-ends"}
    assert "x-wait" in sends(plain, "publish")
    assert "x-wait" not in sends(plain, "score")


@pytest.mark.rule("11.wait.sent", "11.wait.removed")
def test_the_sweep_may_send_back_what_waited_before_a_deployment_without_waits(shop: Any) -> None:
    """Also to actors that have become others, whose retries no longer take days, or are gone."""
    bucket = BUCKET.replace("plain-test", "shop")
    sent = {arn.rpartition(":")[2].removeprefix("asya-shop-") for arn in resources(shop, "x-clock", "sqs:SendMessage")}
    assert {"intake", "crunch", "audit", "x-resume", "x-sink", "x-sump"} <= sent
    letters = {f"{bucket}/dlq/*"}
    assert resources(shop, "x-clock", "s3:PutObject") == {f"{bucket}/waiting/*", f"{bucket}/inbox/*", *letters}
    assert resources(shop, "x-clock", "s3:GetObject") == {f"{bucket}/paused/*", f"{bucket}/waiting/*"}


@pytest.mark.rule("11.wait.kept")
@pytest.mark.parametrize(
    ("name", "prefixes"),
    [("cool-down", {"waiting/*"}), ("x-wait", {"waiting/*"}), ("embargo", {"paused/*"}), ("publish", set())],
)
def test_held_envelopes_are_the_wait_actors_own(plain: Any, name: str, prefixes: set[str]) -> None:
    assert {"waiting/*", "paused/*"} & objects(plain, name, "s3:PutObject") == prefixes


@pytest.mark.rule("11.wait.kept")
def test_held_envelopes_expire_with_payloads(plain: Any) -> None:
    (bucket,) = plain.resources("AWS::S3::Bucket")
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert {rule["ExpirationInDays"] for rule in rules if rule.get("Prefix") == "waiting/"} == {45}


def test_a_mesh_without_waits_has_no_actor_for_them(shop: Any) -> None:
    assert "x-wait" not in str(shop.resources("AWS::SQS::Queue"))


def test_the_settings_are_in_the_table() -> None:
    table = to_table(load_mesh(HERE / "mesh" / "light.yaml"))
    assert table.actors["cool-down"].wait == Wait(seconds=3 * 86400.0)
    assert table.actors["embargo"].wait == Wait(until="/publish_at", deadline="stands")
    assert [name for name, actor in table.actors.items() if actor.retries_after_days] == ["publish"]
    assert (table.actors["x-wait"].kind, table.actors["x-wait"].wait) == ("wait", None)
