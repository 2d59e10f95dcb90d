"""x-triggers may start the routes of triggers, and nothing else."""

import pytest

from asya.protocol.mesh_table import Actor, MeshTable, Tool
from asya.protocol.triggers import Schedule, Trigger
from asya_infra.addresses import Addresses
from asya_infra.permissions import gateway
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.triggers import start

PLACE = Addresses(namespace="shop", partition="aws", region="eu-west-1", account="1", url_suffix="amazonaws.com")
ACTORS = {name: Actor(kind="handler") for name in ("check", "bill", "ship", "secret")}
TABLE = MeshTable(
    namespace="shop",
    actors=ACTORS,
    tools={"order": Tool(description="", route=("check", "bill"))},
    triggers={
        "nightly": Trigger(tool="order", schedule=Schedule(cron="0 2 * * *")),
        "hourly": Trigger(route=("ship", "secret"), schedule=Schedule(cron="0 * * * *")),
    },
)


def queues(grants: list[Grant]) -> set[str]:
    """The queues that may be sent to."""
    arns = {arn for grant in grants if "sqs:SendMessage" in grant.actions for arn in grant.resources}
    return {arn.rpartition(":asya-shop-")[2] for arn in arns}


@pytest.mark.rule("16.start.route")
def test_16_it_sends_to_the_first_actors_alone() -> None:
    """Besides its own dead-letter queue. Large payloads lie below the inboxes of these actors."""
    grants = start(PLACE, TABLE)
    assert queues(grants) == {"check", "ship", "x-triggers-dlq"}
    keys = {arn.partition("/")[2] for grant in grants if "s3:PutObject" in grant.actions for arn in grant.resources}
    assert keys == {"inbox/check/*", "inbox/ship/*"}


@pytest.mark.rule("16.due")
def test_16_the_sweep_sends_slots_only_if_there_are_schedules() -> None:
    """A mesh without triggers grants nothing more than before."""
    assert queues(gateway.sweep(PLACE, TABLE)) == {"x-triggers"}
    assert queues(gateway.sweep(PLACE, MeshTable(namespace="shop", actors=ACTORS))) == set()
