"""The items of waiting calls, with crashes and AWS failures (`protocol §13.waits`)."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from asya.function.aws.table import Table
from asya.function.lambdas.environment import REAL
from asya.gateway.aws.long_poll_permits import LongPollPermits
from asya.gateway.long_polls import LEASE
from asya.protocol.api_errors import ApiError
from asya.protocol.mesh_table import Gateway
from asya.tasks.aws.task_store import TaskStoreError
from tests.doubles.dynamo import emulated_tasks
from tests.doubles.tasks import at

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def client() -> "Iterator[DynamoDBClient]":
    with emulated_tasks() as client:
        yield client


def permits(client: Any, long_polls: int = 50, long_polls_per_caller: int = 10) -> LongPollPermits:
    limits = Gateway(long_polls=long_polls, long_polls_per_caller=long_polls_per_caller)
    return LongPollPermits(Table(client, "tasks"), limits, REAL, pytest.fail)


def items(client: "DynamoDBClient") -> list[tuple[str, str]]:
    found = client.scan(TableName="tasks")["Items"]
    return sorted((item["pk"]["S"], item["sk"]["S"]) for item in found)


class Died(BaseException):
    """The process crashes; nothing frees its permits."""


class Failing:
    """The client of a table; one of its calls fails."""

    def __init__(self, client: "DynamoDBClient", call: str, error: BaseException) -> None:
        self._client, self._call, self._error = client, call, error

    def __getattr__(self, name: str) -> Any:
        if name != self._call:
            return getattr(self._client, name)

        def fail(**_: object) -> None:
            raise self._error

        return fail


THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "PutItem")


@pytest.mark.rule("13.waits")
def test_13_waits_a_caller_gets_so_many_permits_and_others_get_theirs(client: "DynamoDBClient") -> None:
    pool = permits(client, long_polls=5, long_polls_per_caller=2)
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(pool.hold("ALICE", at(0)))
        with pytest.raises(ApiError, match=r"gateway\.long_polls_per_caller") as refused, pool.hold("ALICE", at(1)):
            pytest.fail("a third call waits")
        assert (refused.value.status, refused.value.retry_after) == (429, 5)
        for _ in range(2):
            held.enter_context(pool.hold("BOB", at(1)))
        held.enter_context(pool.hold("CAROL", at(1)))
        with pytest.raises(ApiError, match=r"gateway\.long_polls\)"), pool.hold("DAVE", at(1)):
            pytest.fail("a sixth call waits")
        # The refused calls hold nothing: five permits of callers, and five of the mesh.
        assert len(items(client)) == 10
    assert items(client) == []
    with pool.hold("ALICE", at(2)):
        assert len(items(client)) == 2


@pytest.mark.rule("13.waits")
def test_13_waits_the_permits_of_a_process_that_died_expire(client: "DynamoDBClient") -> None:
    pool = permits(client, long_polls=1)
    dead = LongPollPermits(
        Table(Failing(client, "delete_item", Died()), "tasks"), Gateway(long_polls=1), REAL, pytest.fail
    )  # type: ignore[arg-type]
    with pytest.raises(Died), dead.hold("ALICE", at(0)):
        pass
    with pytest.raises(ApiError), pool.hold("BOB", at(LEASE - 1)):
        pass
    with pool.hold("BOB", at(LEASE + 1)):
        pass
    with pool.hold("BOB", at(LEASE + 1)):
        pass


def test_a_call_that_outlives_its_permit_does_not_free_that_of_the_next(client: "DynamoDBClient") -> None:
    pool = permits(client, long_polls=1, long_polls_per_caller=1)
    with ExitStack() as held:
        with pool.hold("ALICE", at(0)):
            held.enter_context(pool.hold("ALICE", at(LEASE + 1)))
        assert len(items(client)) == 2
        with pytest.raises(ApiError), pool.hold("ALICE", at(LEASE + 2)):
            pass


def test_a_failed_call_frees_its_permits(client: "DynamoDBClient") -> None:
    with pytest.raises(ValueError, match="bad"), permits(client).hold("ALICE", at(0)):
        raise ValueError("bad")
    assert items(client) == []


def test_a_permit_that_cannot_be_freed_is_logged_and_the_answer_stands(client: "DynamoDBClient") -> None:
    logged: list[str] = []
    failing: Any = Failing(client, "delete_item", THROTTLED)
    with LongPollPermits(Table(failing, "tasks"), Gateway(), REAL, logged.append).hold("ALICE", at(0)):
        pass
    assert len(logged) == 2
    assert all("stays taken for up to 35 s" in line and "slow down" in line for line in logged)


def test_an_unavailable_table_is_an_error(client: "DynamoDBClient") -> None:
    failing: Any = Failing(client, "put_item", THROTTLED)
    with pytest.raises(TaskStoreError, match="slow down"), permits(failing).hold("ALICE", at(0)):
        pass


def test_a_task_with_the_name_of_the_pool_does_no_harm(client: "DynamoDBClient") -> None:
    client.put_item(TableName="tasks", Item={"pk": {"S": "POLL"}, "sk": {"S": "record"}})
    with (
        permits(client, long_polls=1).hold("ALICE", at(0)),
        pytest.raises(ApiError),
        permits(client, long_polls=1).hold("BOB", at(0)),
    ):
        pass


@pytest.mark.slow
def test_a_full_pool_is_taken_to_the_last_permit(client: "DynamoDBClient") -> None:
    with ExitStack() as held:
        for _ in range(30):
            held.enter_context(permits(client, long_polls=30, long_polls_per_caller=30).hold("ALICE", at(0)))
        with pytest.raises(ApiError), permits(client, long_polls=30, long_polls_per_caller=30).hold("ALICE", at(0)):
            pass
