"""Ten things that go wrong in a shop of twelve actors, for a reader who finds cause and repair of each.

`python -m tests.cloud.planted_failures FOLDER` deploys the shop to a local cloud in a folder, plants all ten, and leaves the cloud
to a reader: with the console (`asya ui --state FOLDER`) or with the command alone.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya.protocol import names
from asya_local.cloud import down, up
from tests.cloud.deployed_cloud import DeployedCloud, until
from tests.cloud.unread_queues import unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MESH = Path(__file__).parent / "meshes" / "shop" / "mesh.yaml"
COUNTRIES = ("NO", "DK", "DE")


@dataclass(frozen=True)
class Planted:
    """Something that went wrong.

    Attributes:
        tasks: the ids of the tasks that suffer from it.
        cause: what a reader must find.
        repair: what makes it good.
    """

    tasks: tuple[str, ...]
    cause: str
    repair: str


@dataclass(frozen=True)
class Shop:
    """The deployed shop, and what was planted in it by name."""

    cloud: DeployedCloud
    planted: Mapping[str, Planted]


@contextmanager
def shop(state: Path) -> Iterator[Shop]:
    """Deploy the shop to a local cloud in a folder, and plant everything. What is planted stays until the end."""
    try:
        up(MESH, state)
        cloud = DeployedCloud(MeshClient(read_local(state)), state)
        with ExitStack() as stack:
            yield Shop(cloud, _plant(cloud, stack))
    finally:
        down(state)


def call(cloud: DeployedCloud, tool: str, **arguments: object) -> str:
    """Start a task of a tool; return its id."""
    return cloud.mesh.call_tool(tool, json.dumps(arguments).encode())


def _plant(cloud: DeployedCloud, stack: ExitStack) -> dict[str, Planted]:
    slow_totals = call(cloud, "totals", shops=2400, seconds_per_shop=1)
    _let_good_tasks_run(cloud)
    found = {
        "country": _country(cloud),
        "driver": _driver(cloud),
        "circuit": _circuit(cloud),
        "unknown actor": Planted(
            (call(cloud, "transfer", department="wherehouse"),),
            "The handler of forward sends the envelope to the actor `wherehouse`, which does not exist.",
            "Send the order again with another department, or correct the handler and replay the task.",
        ),
        "deadline": Planted(
            (call(cloud, "quote", customer="slow"),),
            "quote takes 12 s for this customer, and the tool has a timeout of 5 s.",
            "Give the tool more time in the mesh file, deploy, and call it again.",
        ),
        "pause": _pause(cloud),
        "permission": _permission(cloud),
        "canceled": _canceled(cloud),
        "slow job": Planted(
            (slow_totals,),
            "One partition of the job sleeps a second for each of 2,400 shops, so one task of Spark does all the work.",
            "Repartition in the job; or wait: 40 minutes are less than the time limit of an hour.",
        ),
    }
    return {**found, "slice": _slice(cloud, stack)}


def _let_good_tasks_run(cloud: DeployedCloud) -> None:
    tasks = [call(cloud, "order", country=COUNTRIES[number % 3], total=number) for number in range(12)]
    tasks += [call(cloud, "labels", parcels=[{"parcel": f"p-{part}", "weight": 2} for part in range(3)])]
    for task in tasks:
        assert cloud.wait_for_end(task).status == "succeeded"


def _country(cloud: DeployedCloud) -> Planted:
    tasks = tuple(call(cloud, "order", country="SE", total=number) for number in range(7))
    for task in tasks:
        assert cloud.wait_for_end(task).status == "failed"
    return Planted(
        tasks,
        "bill has no VAT rate for the country SE: KeyError 'SE' in RATES.",
        "Add the rate in shop.py, deploy, and replay the seven failed tasks.",
    )


def _driver(cloud: DeployedCloud) -> Planted:
    tasks = [call(cloud, "risk", customer=f"c-{number}") for number in (11, 12, 13, 14)]
    ends = [cloud.wait_for_end(task).status for task in tasks]
    assert ends == ["succeeded", "succeeded", "failed", "succeeded"]
    return Planted(
        (tasks[2],),
        "The job ends its process (exit code 137) for the customer c-13; the envelope was charged when it ran alone.",
        "Correct shop_jobs.risk for this customer, deploy, and replay the task.",
    )


def _circuit(cloud: DeployedCloud) -> Planted:
    failed = [call(cloud, "restock", article=f"a-{number}") for number in range(3)]
    for task in failed:
        assert cloud.wait_for_end(task).status == "failed"
    waiting = [call(cloud, "restock", article=f"a-{number}") for number in range(3, 8)]
    return Planted(
        (*failed, *waiting),
        "The warehouse does not answer, so the circuit of stock is open and envelopes wait for a probe.",
        "Bring the warehouse back (`shop/warehouse.json` in the data of the mesh); those that wait go on by themselves; "
        "replay the failed ones.",
    )


def _pause(cloud: DeployedCloud) -> Planted:
    task = call(cloud, "publish", catalog="spring")
    until(lambda: (cloud.mesh.task(task) or _NONE).status == "paused" or None, "the pause")
    return Planted((task,), "Nobody has answered `Publish the catalog?` of approve.", "Answer it.")


def _permission(cloud: DeployedCloud) -> Planted:
    """Somebody has changed the policy of a queue by hand."""
    sqs, queue = cloud.client("sqs"), names.queue_name(cloud.mesh.connection.namespace, "ship")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    statement = {
        "Sid": "closed-by-hand",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "sqs:SendMessage",
        "Resource": sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    task = call(cloud, "deliver", country="NO", total=3)
    until(lambda: (cloud.mesh.task(task) or _NONE).problem, "the problem of the delivery")
    return Planted(
        (task,),
        "check may not send to the queue of ship: AccessDenied by a Deny in the policy of the queue.",
        "Remove the statement `closed-by-hand`, or deploy; then the message goes on, or redrive it from the DLQ of check.",
    )


def _canceled(cloud: DeployedCloud) -> Planted:
    task = call(cloud, "publish", catalog="summer")
    until(lambda: (cloud.mesh.task(task) or _NONE).status == "paused" or None, "the pause")
    cloud.mesh.cancel(task)
    return Planted((task,), "An operator has canceled the task while it was paused.", "Replay it from its first hop.")


def _slice(cloud: DeployedCloud, stack: ExitStack) -> Planted:
    """Somebody has stopped the reading of a queue, and nobody has started it again."""
    stack.enter_context(unread(cloud, "label"))
    parcels = [{"parcel": f"q-{number}", "weight": number} for number in range(4)]
    task = call(cloud, "labels", parcels=parcels)
    until(lambda: cloud.message_count(names.queue_name("shop", "label")) == len(parcels) or None, "the slices")
    return Planted(
        (task,),
        "The slices wait on the queue of label, whose event source mapping is disabled.",
        "Enable the mapping, or deploy.",
    )


@dataclass(frozen=True)
class _Missing:
    status: str = ""
    problem: None = None


_NONE = _Missing()


def main(folder: str) -> None:
    """Leave the shop to a reader until Enter, and then print what was planted."""
    with shop(Path(folder)) as found:
        input(f"The shop is open: --state {folder}. Enter ends it and tells what was planted.\n")
        for name, each in found.planted.items():
            print(f"{name}: {each.cause}\n  {each.repair}\n  {' '.join(each.tasks)}")


if __name__ == "__main__":
    main(sys.argv[1])
