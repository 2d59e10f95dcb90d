"""The owners of ids that senders outside have chosen, in DynamoDB (`protocol §4.entry.claim`)."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_condition_failure
from asya.protocol.table_keys import OWNER_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_SORT_KEY = "owner"


class OwnerClaims:
    """Items of the table `asya-{namespace}-sink`: pk = `OWNER#{id}`, sk = `owner`, and the principal that owns the id."""

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def claim(self, envelope_id: str, owner: str, until: datetime | None) -> bool:
        """Take an id for an owner; a repetition by the same owner takes it for longer, and never for less long.

        Args:
            until: the end of the claim; None for ever.

        Returns:
            Whether the owner has the id; False if it belongs to another one.

        Raises:
            ClientError, BotoCoreError: the table cannot be written, so nobody knows; keep the message.
        """
        values: dict[str, AttributeValueTypeDef] = {":owner": {"S": owner}}
        if until is None:
            update, is_shorter = "SET #owner = :owner REMOVE expires_at", ""
        else:
            # An item without an end fails this too, so it keeps none.
            update, is_shorter = "SET #owner = :owner, expires_at = :until", " AND expires_at < :until"
            values[":until"] = {"N": str(int(until.timestamp()))}
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key={"pk": {"S": OWNER_PREFIX + envelope_id}, "sk": {"S": _SORT_KEY}},
                UpdateExpression=update,
                ConditionExpression=f"attribute_not_exists(#owner) OR (#owner = :owner{is_shorter})",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues=values,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            holder: Mapping[str, AttributeValueTypeDef] = error.response["Item"]  # type: ignore[typeddict-item]
            return holder["owner"]["S"] == owner
        return True
