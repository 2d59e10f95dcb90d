"""The owners of ids that senders outside have chosen, in DynamoDB (`protocol §4.entry.claim`)."""

from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_condition_failure

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

OWNER_PREFIX = "OWNER#"
_SORT_KEY = "owner"


class OwnerClaims:
    """Items of the table `asya-{namespace}-sink`: pk = `OWNER#{id}`, sk = `owner`, and the principal that owns the id."""

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def claim(self, envelope_id: str, owner: str, until: datetime) -> bool:
        """Take an id for an owner; a repetition by the same owner takes it for longer.

        Returns:
            Whether the owner has the id; False if it belongs to another one.

        Raises:
            ClientError, BotoCoreError: the table cannot be written, so nobody knows; keep the message.
        """
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key={"pk": {"S": OWNER_PREFIX + envelope_id}, "sk": {"S": _SORT_KEY}},
                UpdateExpression="SET #owner = :owner, expires_at = :until",
                ConditionExpression="attribute_not_exists(#owner) OR #owner = :owner",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": owner}, ":until": {"N": str(int(until.timestamp()))}},
            )
        except ClientError as error:
            if is_condition_failure(error):
                return False
            raise
        return True
