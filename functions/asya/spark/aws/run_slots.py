"""The slots of active job runs that all dispatchers of a mesh share, on an application that the mesh does not own.

An application of the mesh's own has a limit, and EMR Serverless queues further runs. The mesh cannot set the limit of
another application, so each run takes a slot before it starts. The slot of an ended run is taken over by the next run
that needs one; so its end frees nothing, and a crash loses no slot. A run that EMR Serverless rejects gives its slot back,
because it might never start.
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
            holders = _holders(item)
            if run_id in holders:
                return True
            if len(holders) >= self._most:
                holders = [holder for holder in holders if is_active(holder)]
            if len(holders) >= self._most:
                return False
            if self._put([*holders, run_id], item):
                return True
        return False

    def give_back(self, run_id: str) -> None:
        """Gives back the slot of a run that EMR Serverless has not accepted; idempotent.

        If other dispatchers win each write, the run keeps its slot until its next try.
        """
        if self._most is None:
            return
        for _ in range(_TRIES):
            item = self._dynamodb.get_item(TableName=self._table, Key=_KEY, ConsistentRead=True).get("Item")
            others = [holder for holder in _holders(item) if holder != run_id]
            if len(others) == len(_holders(item)) or self._put(others, item):
                return

    def _put(self, holders: list[str], previous: "dict[str, AttributeValueTypeDef] | None") -> bool:
        version = int(previous["version"]["N"]) if previous else 0
        condition = "version = :version" if previous else "attribute_not_exists(pk)"
        values = {"ExpressionAttributeValues": {":version": {"N": str(version)}}} if previous else {}
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                # DynamoDB has no empty sets.
                Item={
                    **_KEY,
                    **({"holders": {"SS": holders}} if holders else {}),
                    "version": {"N": str(version + 1)},
                },
                ConditionExpression=condition,
                **values,  # type: ignore[arg-type]
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            return False
        return True


def _holders(item: "dict[str, AttributeValueTypeDef] | None") -> list[str]:
    """The ids of the runs with a slot."""
    return list(item["holders"]["SS"]) if item and "holders" in item else []
