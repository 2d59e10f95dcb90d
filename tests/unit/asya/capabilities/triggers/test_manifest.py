"""x-triggers may start the routes of triggers, and nothing else."""

import pytest
from msgspec.structs import replace

from asya.protocol.mesh_table import Actor, MeshTable, Tool
from asya.protocol.triggers import EventSource, Trigger
from asya.protocol.wait import Wait
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import Place, function_grants

PLACE = Addresses(namespace="shop", partition="aws", region="eu-west-1", account="1", url_suffix="amazonaws.com")
ACTORS = {name: Actor(kind="handler") for name in ("check", "bill", "ship", "secret")}
TABLE = MeshTable(
    namespace="shop",
    actors=ACTORS,
    tools={"order": Tool(description="", route=("check", "bill"))},
    triggers={
        "nightly": Trigger(tool="order", cron="0 2 * * *"),
        "hourly": Trigger(route=("ship", "secret"), cron="0 * * * *"),
    },
)


def grants(function: str, table: MeshTable) -> list[Grant]:
    """The permissions that the manifest of a function declares."""
    return function_grants(function, Place(addresses=PLACE, table=table))


def queues(allowed: list[Grant]) -> set[str]:
    """The queues that may be sent to."""
    arns = {arn for grant in allowed if "sqs:SendMessage" in grant.actions for arn in grant.resources}
    return {arn.rpartition(":asya-shop-")[2] for arn in arns}


@pytest.mark.rule("16.start.route")
def test_16_it_sends_to_the_first_actors_alone() -> None:
    """Besides its own dead-letter queue. Large payloads lie below the inboxes of these actors."""
    allowed = grants("x-triggers", TABLE)
    assert queues(allowed) == {"check", "ship", "x-triggers-dlq"}
    keys = {arn.partition("/")[2] for grant in allowed if "s3:PutObject" in grant.actions for arn in grant.resources}
    assert keys == {"inbox/check/*", "inbox/ship/*"}


@pytest.mark.rule("16.due")
def test_16_the_sweep_sends_slots_only_if_there_are_schedules() -> None:
    """A mesh without triggers grants nothing more than before."""
    assert queues(grants("x-task-sweep", TABLE)) == {"x-triggers"}
    assert queues(grants("x-task-sweep", MeshTable(namespace="shop", actors=ACTORS))) == set()


@pytest.mark.rule("16.ends", "16.lane.repair")
def test_16_those_who_write_ends_may_tell_the_function() -> None:
    """The API may send to every queue with dead letters anyway. The sweep finds the lanes by their index."""
    assert queues(grants("x-reports", TABLE)) == {"x-triggers"}
    assert "x-triggers" in queues(grants("x-gateway-api", TABLE))
    indexes = {arn.rpartition("/")[2] for grant in grants("x-task-sweep", TABLE) for arn in grant.resources}
    assert "waiting" in indexes
    assert queues(grants("x-reports", MeshTable(namespace="shop", actors=ACTORS))) == set()


@pytest.mark.rule("16.window.close", "16.overlap.cancel-previous")
def test_16_only_windows_and_cancellations_need_more() -> None:
    """A window closes by a message to the function itself. A cancellation ends pauses and job runs, as `DELETE` does."""
    event = EventSource(source=("shop",))
    trigger = Trigger(route=("ship",), event=event, debounce=30.0)
    mesh = replace(TABLE, triggers={"orders": trigger})
    assert queues(grants("x-triggers", mesh)) == {"ship", "x-triggers", "x-triggers-dlq"}
    canceling = replace(mesh, triggers={"orders": replace(trigger, debounce=None, overlap="cancel-previous")})
    assert queues(grants("x-triggers", canceling)) == {"ship", "x-triggers-dlq"}
    kinds = {"ask": Actor(kind="pause"), "report": Actor(kind="spark")}
    canceling = replace(canceling, actors={**ACTORS, **kinds})
    assert queues(grants("x-triggers", canceling)) == {"ship", "x-triggers-dlq", "x-sink", "x-resume", "x-completion"}
    timer = {"cool-down": Actor(kind="wait", wait=Wait(seconds=60.0, deadline="stands"))}
    canceling = replace(canceling, actors={**ACTORS, **timer})
    assert queues(grants("x-triggers", canceling)) == {"ship", "x-triggers-dlq", "x-sink", "x-resume"}
