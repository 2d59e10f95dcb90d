"""The items of shares, with crashes and AWS failures (`protocol §13.a2a.push.shares`)."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from asya.capabilities.a2a.aws.push_items import PushShares
from asya.capabilities.a2a.push import ShareUsedError
from asya.function.aws.table import Table
from asya.tasks.aws.task_store import TaskStoreError
from tests.doubles.dynamo import emulated_tasks
from tests.doubles.streams import FakeClock
from tests.doubles.tasks import at

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "UpdateItem")


@pytest.fixture
def client() -> "Iterator[DynamoDBClient]":
    with emulated_tasks() as client:
        yield client


class World:
    """Shares, and a clock that advances while a notification is sent."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.clock = FakeClock(0.0)
        self.logged: list[str] = []
        self.shares = PushShares(Table(client, "tasks"), self.clock, 10.0, self.logged.append)

    def send(self, host: str, owner: str | None, *, takes: float, second: float = 0.0) -> None:
        with self.shares.hold(host, owner, at(second)):
            self.clock.seconds += takes

    def sent(self, host: str, owner: str, *, takes: float, tries: int = 100) -> int:
        """How many notifications are sent before the first one that waits."""
        for number in range(tries):
            try:
                self.send(host, owner, takes=takes)
            except ShareUsedError:
                return number
        return tries

    def used(self) -> list[float]:
        return sorted(float(item["seconds_used"]["N"]) for item in self.client.scan(TableName="tasks")["Items"])


@pytest.fixture
def world(client: "DynamoDBClient") -> World:
    return World(client)


@pytest.mark.rule("13.a2a.push.shares")
def test_13_a2a_push_shares_a_slow_host_gets_two_minutes_of_each(world: World) -> None:
    assert world.sent("slow.example", "ALICE", takes=10.0) == 12
    with pytest.raises(ShareUsedError, match=r"to host slow\.example take more than 120 s in 60 s"):
        world.send("slow.example", "ALICE", takes=1.0)
    world.send("other.example", "ALICE", takes=1.0)
    world.send("slow.example", "ALICE", takes=1.0, second=60.0)


@pytest.mark.rule("13.a2a.push.shares")
@pytest.mark.slow
def test_13_a2a_push_shares_no_owner_holds_up_another_at_the_same_host(world: World) -> None:
    assert world.sent("hooks.example", "EVE", takes=10.0) == 12
    assert world.sent("hooks.example", "ALICE", takes=0.1, tries=50) == 50


@pytest.mark.rule("13.a2a.push.shares")
@pytest.mark.slow
def test_13_a2a_push_shares_an_owner_with_many_slow_hosts_gets_four_minutes(world: World) -> None:
    for number in range(24):
        world.send(f"slow-{number}.example", "ALICE", takes=10.0)
    with pytest.raises(ShareUsedError, match="of this owner take more than 240 s"):
        world.send("fresh.example", "ALICE", takes=1.0)
    world.send("fresh.example", "BOB", takes=1.0)


@pytest.mark.slow
@pytest.mark.rule("13.a2a.push.shares")
def test_13_a2a_push_shares_fast_receivers_are_hardly_limited(world: World) -> None:
    assert world.sent("fast.example", "ALICE", takes=0.1, tries=300) == 300
    assert world.used() == [pytest.approx(30.0), pytest.approx(30.0)]


def test_what_is_reserved_counts_while_it_is_sent(world: World) -> None:
    with ExitStack() as held:
        for _ in range(12):
            held.enter_context(world.shares.hold("a.example", "ALICE", at(0)))
        with pytest.raises(ShareUsedError), world.shares.hold("a.example", "ALICE", at(0)):
            pass
    assert world.used() == [0.0, 0.0]


def test_a_refused_owner_gives_the_hosts_time_back(world: World) -> None:
    assert world.sent("a.example", "ALICE", takes=10.0) == 12
    assert world.sent("b.example", "ALICE", takes=10.0) == 12
    with pytest.raises(ShareUsedError, match="owner"):
        world.send("c.example", "ALICE", takes=1.0)
    assert world.used() == [0.0, 120.0, 120.0, 240.0]


def test_a_failed_notification_counts_with_its_time(world: World) -> None:
    def fail() -> None:
        with world.shares.hold("a.example", "ALICE", at(0)):
            world.clock.seconds += 7.0
            raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        fail()
    assert world.used() == [7.0, 7.0]


def test_a_table_that_fails_keeps_the_notification_before_it_is_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise THROTTLED

    monkeypatch.setattr(world.client, "update_item", fail)
    with pytest.raises(TaskStoreError, match="slow down"):
        world.send("a.example", "ALICE", takes=1.0)
    assert world.clock.seconds == 0.0


def test_time_that_cannot_be_given_back_is_logged_and_the_notification_stands(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise THROTTLED

    with world.shares.hold("a.example", "ALICE", at(0)):
        monkeypatch.setattr(world.client, "update_item", fail)
    assert len(world.logged) == 2
    assert "stays reserved for this minute" in world.logged[0]
