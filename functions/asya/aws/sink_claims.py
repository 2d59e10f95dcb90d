"""The claim on an id that x-sink takes before it writes: one end per envelope and generation (`protocol §11`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_SORT_KEY = "claim"


@dataclass(frozen=True, slots=True)
class Claim:
    """How an envelope ended, and where its object is (a key in the results bucket)."""

    envelope_id: str
    generation: int
    phase: str
    key: str


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """`taken`: go on, write and report. `refused`: it ended otherwise already, or in a later generation (`holder`).

    Attributes:
        holder: the claim that was there before, if any.
    """

    outcome: Literal["taken", "refused"]
    holder: Claim | None = None

    @property
    def replaces(self) -> Claim | None:
        """The claim of an earlier generation that this one took over."""
        return self.holder if self.outcome == "taken" else None


class SinkClaims:
    """The table `asya-{namespace}-sink`: pk = envelope id, sk = `claim`."""

    def __init__(self, dynamodb: "DynamoDBClient", table: str, keep_seconds: float) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._keep_seconds = keep_seconds

    def take(self, claim: Claim, *, epoch_seconds: float) -> ClaimResult:
        """Take the claim, or learn who holds it. The same phase of the same generation may take it again and again.

        Raises:
            botocore.exceptions.ClientError: if the table cannot be written now.
        """
        try:
            answer = self._dynamodb.put_item(
                TableName=self._table,
                Item={
                    "pk": {"S": claim.envelope_id},
                    "sk": {"S": _SORT_KEY},
                    "generation": {"N": str(claim.generation)},
                    "phase": {"S": claim.phase},
                    "key": {"S": claim.key},
                    "expires_at": {"N": str(int(epoch_seconds + self._keep_seconds))},
                },
                ConditionExpression=(
                    "attribute_not_exists(pk) OR generation < :generation OR (generation = :generation AND phase = :phase)"
                ),
                ExpressionAttributeValues={
                    ":generation": {"N": str(claim.generation)},
                    ":phase": {"S": claim.phase},
                },
                ReturnValues="ALL_OLD",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            holder: dict[str, AttributeValueTypeDef] = error.response.get("Item", {})  # type: ignore[assignment]
            return ClaimResult("refused", _claim(claim.envelope_id, holder))
        return ClaimResult("taken", _claim(claim.envelope_id, answer.get("Attributes", {})))


def _claim(envelope_id: str, item: "dict[str, AttributeValueTypeDef]") -> Claim | None:
    if not item:
        return None
    return Claim(envelope_id, int(item["generation"]["N"]), item["phase"]["S"], item["key"]["S"])
