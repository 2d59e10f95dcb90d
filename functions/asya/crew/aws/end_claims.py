"""The claim on an id that x-sink takes before it writes: one end per envelope and generation (`protocol §11`)."""

from typing import TYPE_CHECKING, Literal

import msgspec
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_SORT_KEY = "claim"


class Claim(msgspec.Struct, frozen=True):
    """How an envelope ended, and where its object is (a key in the results bucket)."""

    envelope_id: str
    generation: int
    phase: str
    key: str


class ClaimResult(msgspec.Struct, frozen=True):
    """`taken`: go on, write and report. `refused`: it ended otherwise already, or in a later generation.

    Attributes:
        claim: the one that holds now. Taken again, it still names the key it was first taken with, so that what a
            redelivery finishes is the object that the first run began.
        replaced_key: where the object of the generation before is, if there was one; to be removed once the new one is written.
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
        """Take the claim, or learn who holds it. The same phase of the same generation may take it again and again.

        Raises:
            botocore.exceptions.ClientError: if the table cannot be written now.
        """
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key={"pk": {"S": claim.envelope_id}, "sk": {"S": _SORT_KEY}},
                # The right-hand sides are read before anything is written: the key there was is noted as replaced.
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


def _result(wanted: Claim, item: "dict[str, AttributeValueTypeDef]") -> ClaimResult:
    holds = Claim(wanted.envelope_id, int(item["generation"]["N"]), item["phase"]["S"], item["key"]["S"])
    is_ours = (holds.generation, holds.phase) == (wanted.generation, wanted.phase)
    replaced = item["replaced_key"]["S"]
    return ClaimResult("taken" if is_ours else "refused", holds, replaced if replaced not in ("", holds.key) else None)
