"""protocol §13.states: a pre-flight reads the states of tasks, and nothing else of their records."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ConnectTimeoutError, EndpointConnectionError, NoCredentialsError
from msgspec.structs import replace

from asya.protocol.table_keys import STATE_ATTRIBUTES
from asya.protocol.task import TaskRecord
from asya.protocol.times import format_time
from asya.tasks.aws.items import put_record
from asya.tasks.aws.state_reader import NoAnswerError, StateReader
from asya.tasks.aws.task_store import TaskStoreError
from asya.tasks.task_state import StateQuery, TaskState
from asya.testing.dynamo.tables import MemoryDynamo, Table
from tests.doubles.task_states import SILENT, THROTTLED
from tests.doubles.tasks import at, route_at

TABLE = "asya-shop-tasks"
LATER = int((at(0) + timedelta(days=1)).timestamp())
RECORD = TaskRecord(
    id="t",
    status="running",
    created_at=format_time(at(0)),
    updated_at=format_time(at(0)),
    route=route_at(0),
    owner="AIDA",
)


class Client:
    """Answers from tables in memory, after its errors; notes what it is asked for."""

    def __init__(self) -> None:
        self.tables = MemoryDynamo({TABLE: Table()})
        self.errors: list[Exception] = []
        self.requests: list[dict[str, Any]] = []
        self.left_out: list[dict[str, Any]] = []

    def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        self.requests.append(RequestItems[TABLE])
        if self.errors:
            raise self.errors.pop(0)
        answer = self.tables.batch_get_item(RequestItems=RequestItems)
        return answer | ({"UnprocessedKeys": {TABLE: {"Keys": self.left_out}}} if self.left_out else {})

    def put(self, record: TaskRecord, expires_at: int = LATER, **more: Any) -> None:
        self.tables.put_item(TableName=TABLE, Item=put_record(record, 1, expires_at).request(TABLE)["Item"] | more)


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def reader(client: Client) -> StateReader:
    return StateReader(client, TABLE)  # type: ignore[arg-type]


def query(*ids: str, root: str | None = None) -> list[StateQuery]:
    return [StateQuery(id=task_id, root_id=root) for task_id in ids]


@pytest.mark.rule("13.states")
@pytest.mark.parametrize(
    ("epochs", "pause_epoch"),
    [({}, None), ({"pause_epoch": 2}, 2), ({"resumed_epoch": 1}, 1), ({"pause_epoch": 3, "resumed_epoch": 1}, 3)],
)
def test_the_state_of_a_record(
    client: Client, reader: StateReader, epochs: dict[str, int], pause_epoch: int | None
) -> None:
    client.put(replace(RECORD, status="paused", generation=4, **epochs))
    assert reader.read(query("t"), at(50)) == {
        "t": TaskState(id="t", status="paused", generation=4, pause_epoch=pause_epoch)
    }


@pytest.mark.rule("13.states")
def test_a_task_without_a_record_is_unknown(client: Client, reader: StateReader) -> None:
    client.put(replace(RECORD, id="gone"), expires_at=int(at(50).timestamp()))
    client.put(replace(RECORD, id="of another version"), generation={"S": "four"})
    client.put(replace(RECORD, id="root", status="canceled"))
    assert reader.read(query("gone", "of another version", "never", root="root"), at(50)) == {
        task_id: TaskState(id=task_id, status="unknown", root_status="canceled")
        for task_id in ("gone", "of another version", "never")
    }
    assert reader.read(query("root", root="never"), at(50))["root"].root_status == "unknown"


@pytest.mark.rule("13.states", "5.4.one-call")
def test_one_consistent_call_names_each_task_once_and_no_other_attribute(client: Client, reader: StateReader) -> None:
    client.put(RECORD)
    reader.read([*query("t", "u", root="t"), *query("u")], at(50))
    (request,) = client.requests
    assert [key["pk"]["S"] for key in request["Keys"]] == ["t", "u"]
    assert request["ConsistentRead"] is True
    assert set(request["ExpressionAttributeNames"].values()) == set(STATE_ATTRIBUTES)


@pytest.mark.rule("5.4.go-on")
@pytest.mark.parametrize("left_out", ["t", "root"])
def test_what_a_busy_table_leaves_out_is_not_known(client: Client, reader: StateReader, left_out: str) -> None:
    client.left_out = [{"pk": {"S": left_out}, "sk": {"S": "record"}}]
    states = reader.read([*query("t", root="root"), *query("u")], at(50))
    assert states.keys() == {"u"}


@pytest.mark.rule("5.4.go-on")
@pytest.mark.parametrize(
    "silence", [SILENT, ConnectTimeoutError(endpoint_url="d"), EndpointConnectionError(endpoint_url="d")]
)
def test_silence_is_no_answer(client: Client, reader: StateReader, silence: Exception) -> None:
    client.errors = [silence]
    with pytest.raises(NoAnswerError, match="no answer from the tasks table"):
        reader.read(query("t"), at(50))
    assert len(client.requests) == 1


@pytest.mark.rule("5.4.go-on")
@pytest.mark.parametrize("refusal", [THROTTLED, NoCredentialsError()])
def test_a_refusal_is_an_error(client: Client, reader: StateReader, refusal: Exception) -> None:
    client.errors = [refusal]
    with pytest.raises(TaskStoreError, match="cannot read the states of tasks") as raised:
        reader.read(query("t"), at(50))
    assert not isinstance(raised.value, NoAnswerError)


@pytest.mark.rule("5.4.go-on")
def test_a_connection_that_was_closed_meanwhile_is_opened_again(client: Client, reader: StateReader) -> None:
    """A frozen function keeps connections that AWS has closed."""
    closed = ConnectionClosedError(endpoint_url="d")
    client.errors = [closed]
    assert reader.read(query("t"), at(50)).keys() == {"t"}
    client.errors = [closed, closed]
    with pytest.raises(NoAnswerError):
        reader.read(query("t"), at(50))
