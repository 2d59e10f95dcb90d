"""What the tasks table knows about a webhook: its task is the memory."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.capabilities.triggers.aws.lane_items import decision_key
from asya.capabilities.triggers.aws.schedule_states import ScheduleStates
from asya.capabilities.triggers.aws.webhook_queue import KnownWebhook, WebhookMemory
from asya.function.aws import table
from asya.tasks.aws.items import record_key
from asya.tasks.aws.task_store import TaskStoreError
from asya.testing.dynamo.tables import MemoryDynamo, Table
from tests.doubles.secret_stores import service_error

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
TABLE = "asya-shop-tasks"


@pytest.fixture
def tables() -> MemoryDynamo:
    return MemoryDynamo({TABLE: Table()})


def read(tables: Any, seconds: float = 0.0) -> KnownWebhook:
    return WebhookMemory(tables, TABLE).read("hook", "task", NOW + timedelta(seconds=seconds))


@pytest.mark.rule("16.webhooks.once")
@pytest.mark.parametrize(
    ("key", "known"),
    [(record_key("task"), KnownWebhook(has_task=True)), (decision_key("task"), KnownWebhook(is_decided=True))],
)
def test_16_a_webhook_is_known_until_its_item_expires(tables: MemoryDynamo, key: Any, known: KnownWebhook) -> None:
    """DynamoDB may take days to remove an item."""
    assert read(tables) == KnownWebhook()
    expires_at = int(NOW.timestamp()) + 100
    table.Table(tables, TABLE).write(table.put(key, {"expires_at": expires_at, "state": "secret"}))  # type: ignore[arg-type]
    assert [read(tables, seconds) == known for seconds in (0, 99, 100)] == [True, True, False]
    assert read(tables).is_repeated


@pytest.mark.rule("16.webhooks.answer", "16.pause")
def test_16_a_paused_trigger_is_known(tables: MemoryDynamo) -> None:
    states = ScheduleStates(tables, TABLE)  # type: ignore[arg-type]
    states.pause("other", NOW)
    assert not read(tables).is_paused
    states.pause("hook", NOW)
    assert read(tables) == KnownWebhook(is_paused=True)
    states.resume("hook", NOW)
    assert read(tables) == KnownWebhook()


@pytest.mark.rule("16.webhooks.once")
@pytest.mark.parametrize(
    "answer", [None, {"Responses": {}, "UnprocessedKeys": {TABLE: {"Keys": [record_key("task").encoded()]}}}]
)
def test_16_an_outage_of_the_table_is_told(answer: Any) -> None:
    class Down:
        def batch_get_item(self, **_: Any) -> Any:
            if answer is None:
                raise service_error("InternalServerError", 500)
            return answer

    with pytest.raises(TaskStoreError):
        read(Down())
