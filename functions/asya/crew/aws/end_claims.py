"""Claims on ends: one end per envelope and generation (`protocol §11`)."""

from typing import TYPE_CHECKING, Literal

import msgspec
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_SORT_KEY = "claim"


class Claim(msgspec.Struct, frozen=True):
    """The end of an envelope, and the key of its object below the results prefix."""

    envelope_id: str
    generation: int
    phase: str
    key: str


class ClaimResult(msgspec.Struct, frozen=True):
    """The result of a claim.

    Attributes:
        outcome: `taken`: write and report the end. `refused`: the envelope has another end, or a later generation.
        claim: the claim that holds now. A repeated claim has the key of the first one, so a redelivery finishes its object.
        replaced_key: the object of an earlier generation, to remove once the new one is written; None without one.
    """

    outcome: Literal["taken", "refused"]
    claim: Claim
    replaced_key: str | None = None


class EndClaims:
    """The table `asya-{namespace}-sink`: pk = envelope id, sk = `claim`."""

    def __init__(self, dynamodb: "DynamoDBClient", table: str, keep_seconds: float) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._keep_seconds = keep_seconds

    def take(self, claim: Claim, *, epoch_seconds: float) -> ClaimResult:
        """Take the claim, or return the claim that holds. The same phase and generation may take it repeatedly.

        Raises:
            botocore.exceptions.ClientError: the table cannot be written.
        """
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key={"pk": {"S": claim.envelope_id}, "sk": {"S": _SORT_KEY}},
                # DynamoDB evaluates all values before it writes, so replaced_key becomes the earlier key.
                UpdateExpression=(
                    "SET replaced_key = if_not_exists(#key, :none), #key = :key, generation = :generation, "
                    "phase = :phase, expires_at = :expires_at"
                ),
                ConditionExpression="attribute_not_exists(pk) OR generation < :generation",
                ExpressionAttributeNames={"#key": "key"},
                ExpressionAttributeValues={
                    ":key": {"S": claim.key},
                    ":generation": {"N": str(claim.generation)},
                    ":phase": {"S": claim.phase},
                    ":expires_at": {"N": str(int(epoch_seconds + self._keep_seconds))},
                    ":none": {"S": ""},
                },
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item: dict[str, AttributeValueTypeDef] = error.response["Item"]  # type: ignore[typeddict-item]
            return _result(claim, item)
        return _result(claim, answer["Attributes"])


def _result(claim: Claim, item: "dict[str, AttributeValueTypeDef]") -> ClaimResult:
    holder = Claim(claim.envelope_id, int(item["generation"]["N"]), item["phase"]["S"], item["key"]["S"])
    is_taken = (holder.generation, holder.phase) == (claim.generation, claim.phase)
    replaced = item["replaced_key"]["S"]
    return ClaimResult(
        "taken" if is_taken else "refused", holder, replaced if replaced not in ("", holder.key) else None
    )
