"""The first senders of dead letters (`protocol §4.entry.moved`)."""

from datetime import UTC, datetime, timedelta

import pytest

from asya.senders.aws.entry_items import LetterSenders
from asya.testing.dynamo.tables import MemoryDynamo, Table

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.rule("4.entry.moved")
def test_a_dead_letter_is_known_by_its_body_as_long_as_it_can_stay() -> None:
    dynamodb = MemoryDynamo({"asya-shop-sink": Table()})
    senders = LetterSenders(dynamodb, "asya-shop-sink")
    senders.note(b"body", "AROAINFER", NOW)
    assert senders.sender_of(b"body", "infer") == "AROAINFER"
    assert senders.sender_of(b"body ", "infer") is None
    (item,) = dynamodb.tables["asya-shop-sink"].items.values()
    assert item["expires_at"] == {"N": str(int((NOW + timedelta(days=18)).timestamp()))}


@pytest.mark.rule("4.entry.moved.unseen")
def test_the_note_of_an_actor_counts_on_its_own_queue() -> None:
    senders = LetterSenders(MemoryDynamo({"asya-shop-sink": Table()}), "asya-shop-sink")
    senders.note(b"body", "AROAPREP", NOW, "infer")
    assert [senders.sender_of(b"body", actor) for actor in ("infer", "post", "inf")] == ["AROAPREP", None, None]
