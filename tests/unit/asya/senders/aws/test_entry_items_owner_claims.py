"""The owners of ids, over moto's conditions (`protocol §4.entry.claim`)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from asya.senders.aws.entry_items import OwnerClaims
from tests.doubles.mesh_world import emulated_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

UNTIL = datetime(2026, 12, 20, tzinfo=UTC)
TABLE = "asya-shop-sink"


@pytest.fixture
def table() -> "Iterator[DynamoDBClient]":
    with emulated_table("sink") as client:
        yield client


@pytest.mark.rule("4.entry.claim")
def test_the_first_owner_keeps_an_id_and_may_take_it_again(table: "DynamoDBClient") -> None:
    claims = OwnerClaims(table, TABLE)
    assert claims.claim("order-7", "AIDABOB", UNTIL, "infer")
    assert not claims.claim("order-7", "AIDAEVE", UNTIL + timedelta(days=9), "infer")
    assert claims.claim("order-7", "AIDABOB", UNTIL + timedelta(days=1), "infer")
    assert claims.claim("order-8", "AIDAEVE", UNTIL, "infer")
    item = table.get_item(TableName=TABLE, Key={"pk": {"S": "OWNER#order-7"}, "sk": {"S": "owner"}})["Item"]
    assert item["owner"] == {"S": "AIDABOB"}
    assert item["expires_at"] == {"N": str(int((UNTIL + timedelta(days=1)).timestamp()))}


@pytest.mark.rule("4.entry.claim")
def test_a_later_message_with_an_earlier_end_shortens_no_claim(table: "DynamoDBClient") -> None:
    claims = OwnerClaims(table, TABLE)
    assert claims.claim("order-7", "AIDABOB", UNTIL, "infer")
    assert claims.claim("order-7", "AIDABOB", UNTIL - timedelta(days=300), "infer")
    assert ends_at(table) == {"N": str(int(UNTIL.timestamp()))}
    assert not claims.claim("order-7", "AIDAEVE", UNTIL + timedelta(days=1), "infer")


@pytest.mark.rule("4.entry.claim")
def test_a_claim_for_ever_has_no_end_and_gets_none(table: "DynamoDBClient") -> None:
    claims = OwnerClaims(table, TABLE)
    assert claims.claim("order-7", "AIDABOB", UNTIL, "infer")
    assert claims.claim("order-7", "AIDABOB", None, "infer")
    assert ends_at(table) is None
    assert claims.claim("order-7", "AIDABOB", UNTIL, "infer")
    assert ends_at(table) is None
    assert not claims.claim("order-7", "AIDAEVE", None, "infer")
    assert not claims.claim("order-7", "AIDAEVE", UNTIL, "infer")


def ends_at(table: "DynamoDBClient") -> object:
    """When the table may delete the claim; None for never."""
    item = table.get_item(TableName=TABLE, Key={"pk": {"S": "OWNER#order-7"}, "sk": {"S": "owner"}})["Item"]
    assert item["owner"] == {"S": "AIDABOB"}
    return item.get("expires_at")


@pytest.mark.rule("4.entry.claim", "4.keys.entry")
def test_an_item_of_another_form_is_that_of_somebody_else(table: "DynamoDBClient") -> None:
    """Code of users may write these items as it likes, and a function of the crew reads them for a whole batch."""
    claims = OwnerClaims(table, TABLE)
    for sort in ("owner", "children"):
        item = {"pk": {"S": "OWNER#order-7"}, "sk": {"S": sort}, "owner": {"N": "5"}, "entered_at": {"S": "infer"}}
        table.put_item(TableName=TABLE, Item=item)
    assert not claims.claim("order-7", "AIDABOB", UNTIL, "infer")
    assert not claims.claim_numbered("order-7", "AIDABOB", UNTIL)
    assert not claims.has_entered_at("order-7", "infer")
    assert claims.numbered_claimant("order-7") is None
