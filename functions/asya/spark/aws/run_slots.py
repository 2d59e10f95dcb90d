"""The slots of active job runs that all dispatchers of a mesh share, on an application that the mesh does not own.

An application of the mesh's own has a limit, and EMR Serverless queues further runs. The mesh cannot set the limit of
another application, so each run takes a slot before it starts. A slot is given back when another run needs it and finds
that its run has ended; so no step frees it, and a crash loses none.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_condition_failure

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_TRIES = 5
_KEY: "dict[str, AttributeValueTypeDef]" = {"pk": {"S": "QUOTA#concurrent-runs"}, "sk": {"S": "slots"}}


class RunSlots:
    """The slots in the pending table, item `QUOTA#concurrent-runs` / `slots`.

    Args:
        most: the number of slots; None for an application that has its own limit.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, most: int | None) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._most = most

    def take(self, run_id: str, *, is_active: Callable[[str], bool]) -> bool:
        """Takes a slot for a run, or keeps the one that it has.

        Args:
            is_active: whether the run of a slot may still use the application; asked only when all slots are taken.

        Returns:
            False if all slots are taken, or other dispatchers won each write.
        """
        if self._most is None:
            return True
        for _ in range(_TRIES):
            item = self._dynamodb.get_item(TableName=self._table, Key=_KEY, ConsistentRead=True).get("Item")
            holders = item["holders"]["SS"] if item else []
            if run_id in holders:
                return True
            if len(holders) >= self._most:
                holders = [holder for holder in holders if is_active(holder)]
            if len(holders) >= self._most:
                return False
            if self._put([*holders, run_id], item):
                return True
        return False

    def _put(self, holders: list[str], previous: "dict[str, AttributeValueTypeDef] | None") -> bool:
        version = int(previous["version"]["N"]) if previous else 0
        condition = "version = :version" if previous else "attribute_not_exists(pk)"
        values = {"ExpressionAttributeValues": {":version": {"N": str(version)}}} if previous else {}
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item={**_KEY, "holders": {"SS": holders}, "version": {"N": str(version + 1)}},
                ConditionExpression=condition,
                **values,  # type: ignore[arg-type]
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            return False
        return True
