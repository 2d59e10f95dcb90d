"""Which webhooks were sent."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asya.tasks.aws.task_store import TaskStoreError
from asya.testing.dynamo.tables import MemoryDynamo, Table
from asya.triggers.aws.webhook_queue import KEPT, SentWebhooks
from tests.doubles.secret_stores import service_error

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
TABLE = "asya-shop-tasks"


@pytest.mark.rule("16.webhooks.once")
def test_16_a_webhook_is_known_for_seven_days() -> None:
    tables = MemoryDynamo({TABLE: Table()})
    sent = SentWebhooks(tables, TABLE)  # type: ignore[arg-type]
    assert not sent.has("hook", "a", NOW)
    sent.note("hook", "a", NOW)
    assert timedelta(days=7) == KEPT
    for seconds, known in ((0, True), (KEPT.total_seconds() - 1, True), (KEPT.total_seconds(), False)):
        assert sent.has("hook", "a", NOW + timedelta(seconds=seconds)) is known
    assert not sent.has("hook", "b", NOW)
    assert not sent.has("other", "a", NOW)
    [key] = tables.tables[TABLE].items
    assert str(key).count("WEBHOOK#") == 1


@pytest.mark.rule("16.webhooks.once")
def test_16_an_outage_of_the_table_is_told() -> None:
    class Down:
        def get_item(self, **_: Any) -> None:
            raise service_error("InternalServerError", 500)

        put_item = get_item

    sent = SentWebhooks(Down(), TABLE)  # type: ignore[arg-type]
    with pytest.raises(TaskStoreError, match="webhook was sent"):
        sent.has("hook", "a", NOW)
    with pytest.raises(TaskStoreError, match="webhook was sent"):
        sent.note("hook", "a", NOW)
