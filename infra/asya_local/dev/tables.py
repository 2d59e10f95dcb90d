"""Tables of a mesh in the form of CreateTable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asya.stores import Table


def table_request(table: Table, name: str) -> dict[str, Any]:
    """Return the parameters of CreateTable for a table.

    Args:
        table: The table.
        name: Its name in AWS.
    """
    attributes = {"pk", "sk", *(key for index in table.indexes for key in (index.partition, index.sort))}
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": stream if table.streams_changes else {"StreamEnabled": False},
        "KeySchema": _schema("pk", "sk"),
        "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in sorted(attributes)],
    }
    if table.indexes:
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": index.name,
                "KeySchema": _schema(index.partition, index.sort),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.included)}
                if index.included
                else {"ProjectionType": "KEYS_ONLY"},
            }
            for index in table.indexes
        ]
    return request


def _schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
