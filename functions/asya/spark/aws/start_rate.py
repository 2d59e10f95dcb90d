"""A token bucket for StartJobRun that all dispatchers of a mesh share.

It only saves calls: EMR Serverless enforces the quota of the account.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_condition_failure

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_TRIES = 5


@dataclass(frozen=True, slots=True)
class QuotaBucket:
    """The number of tokens at a time (epoch seconds)."""

    tokens: float
    at: float

    def filled(self, now: float, per_second: float, burst: int) -> "QuotaBucket":
        """The bucket at `now`."""
        return QuotaBucket(min(burst, self.tokens + max(0.0, now - self.at) * per_second), max(now, self.at))

    def wait(self, per_second: float) -> float:
        """Seconds until the next token."""
        return max(0.0, (1 - self.tokens) / per_second)


class StartRate:
    """The token bucket in the pending table, item `QUOTA#start-job-run` / `bucket`."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, per_second: float, burst: int) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._per_second = per_second
        self._burst = burst

    def take(self, *, now: datetime) -> float:
        """Takes a token; returns 0, or the seconds until the next token if the bucket is empty."""
        wait = 1 / self._per_second
        for _ in range(_TRIES):
            item = self._dynamodb.get_item(TableName=self._table, Key=_KEY, ConsistentRead=True).get("Item")
            bucket = _bucket(item) if item else QuotaBucket(self._burst, now.timestamp())
            filled = bucket.filled(now.timestamp(), self._per_second, self._burst)
            if filled.tokens < 1:
                return filled.wait(self._per_second)
            if self._put(QuotaBucket(filled.tokens - 1, filled.at), item):
                return 0.0
        return wait  # other dispatchers won each write

    def _put(self, bucket: QuotaBucket, previous: "dict[str, AttributeValueTypeDef] | None") -> bool:
        unchanged = "#tokens = :tokens AND #at = :at" if previous else "attribute_not_exists(pk)"
        names = {"ExpressionAttributeNames": {"#tokens": "tokens", "#at": "at"}} if previous else {}
        values = (
            {"ExpressionAttributeValues": {":tokens": previous["tokens"], ":at": previous["at"]}} if previous else {}
        )
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item={**_KEY, "tokens": {"N": f"{bucket.tokens:.6f}"}, "at": {"N": f"{bucket.at:.6f}"}},
                ConditionExpression=unchanged,
                **names,  # type: ignore[arg-type]
                **values,  # type: ignore[arg-type]
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            return False
        return True


_KEY: "dict[str, AttributeValueTypeDef]" = {"pk": {"S": "QUOTA#start-job-run"}, "sk": {"S": "bucket"}}


def _bucket(item: "dict[str, AttributeValueTypeDef]") -> QuotaBucket:
    return QuotaBucket(float(item["tokens"]["N"]), float(item["at"]["N"]))
