"""The rounds of tenants: pending envelopes of a heavy actor are taken round by round, one of each tenant (`protocol §10.fair`).

Each envelope gets a round when it becomes pending: the one after the last round of its tenant, and after the last round that a
run has reached. So a tenant that was idle begins in the present round, and one with many envelopes is far ahead of it.

Keys in the table `asya-{namespace}-pending`:

- tenant: `ROUND#{actor}#{SHA-256 of the tenant}` / `tenant`, with its last round. Without it a tenant begins in the present
  round, so it may expire.
- actor: `ROUND#{actor}` / `reached`, with the highest round of a run.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import is_condition_failure

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

_TRIES = 3
_LIFETIME = timedelta(days=15)


class TenantRounds:
    """The rounds of all heavy actors of a mesh."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    def take(self, actor: str, counts: Mapping[str, int], *, now: datetime) -> dict[str, int]:
        """Takes rounds for envelopes; a repetition takes later ones, which delays this tenant only.

        Args:
            counts: the number of envelopes of each tenant, 1 at least.

        Returns:
            The first round of each tenant; the next envelopes have the rounds after it.

        Raises:
            ClientError, BotoCoreError: the table cannot be read or written.
        """
        item = self._dynamodb.get_item(TableName=self._table, Key=_actor_key(actor)).get("Item")
        reached = int(item["round"]["N"]) if item else 0
        return {tenant: self._take(actor, tenant, count, reached, now) for tenant, count in counts.items()}

    def reach(self, actor: str, round_number: int) -> None:
        """Notes the highest round of a run that was formed.

        Raises:
            ClientError, BotoCoreError: the table cannot be written.
        """
        self._update(
            _actor_key(actor),
            "SET #round = :round",
            "attribute_not_exists(#round) OR #round < :round",
            {":round": {"N": str(round_number)}},
        )

    def _take(self, actor: str, tenant: str, count: int, reached: int, now: datetime) -> int:
        key = _tenant_key(actor, tenant)
        expires: AttributeValueTypeDef = {"N": str(int((now + _LIFETIME).timestamp()))}
        numbers: dict[str, AttributeValueTypeDef] = {":reached": {"N": str(reached)}, ":expires": expires}
        for _ in range(_TRIES):  # two functions may begin with an idle tenant at the same time
            ahead = self._update(
                key,
                "SET #round = #round + :count, expires_at = :expires",
                "#round >= :reached",
                {**numbers, ":count": {"N": str(count)}},
            )
            if ahead is not None:
                return ahead - count + 1
            begun = self._update(
                key,
                "SET #round = :last, expires_at = :expires",
                "attribute_not_exists(#round) OR #round < :reached",
                {**numbers, ":last": {"N": str(reached + count)}},
            )
            if begun is not None:
                return reached + 1
        return reached + 1  # others won each write; the order is for fairness only

    def _update(
        self,
        key: "dict[str, AttributeValueTypeDef]",
        changes: str,
        condition: str,
        values: "dict[str, AttributeValueTypeDef]",
    ) -> int | None:
        """The new round; None if the condition fails."""
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression=changes,
                ConditionExpression=condition,
                ExpressionAttributeNames={"#round": "round"},
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise
            return None
        return int(answer["Attributes"]["round"]["N"])


def _actor_key(actor: str) -> "dict[str, AttributeValueTypeDef]":
    return {"pk": {"S": f"ROUND#{actor}"}, "sk": {"S": "reached"}}


def _tenant_key(actor: str, tenant: str) -> "dict[str, AttributeValueTypeDef]":
    digest = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()
    return {"pk": {"S": f"ROUND#{actor}#{digest}"}, "sk": {"S": "tenant"}}
