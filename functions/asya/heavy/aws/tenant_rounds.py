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

from asya.function.aws.table import Change, Table, update
from asya.function.aws.table_items import Key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TRIES = 3
_LIFETIME = timedelta(days=15)


class TenantRounds:
    """The rounds of all heavy actors of a mesh."""

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str) -> None:
        self._table = Table(dynamodb, table)

    def take(self, actor: str, counts: Mapping[str, int], *, now: datetime) -> dict[str, int]:
        """Takes rounds for envelopes; a repetition takes later ones, which delays this tenant only.

        Args:
            counts: the number of envelopes of each tenant, 1 at least.

        Returns:
            The first round of each tenant; the next envelopes have the rounds after it.

        Raises:
            ClientError, BotoCoreError: the table cannot be read or written.
        """
        reached = self._table.get(_actor_key(actor), consistent=False).integer("round", 0)
        return {tenant: self._take(actor, tenant, count, reached, now) for tenant, count in counts.items()}

    def reach(self, actor: str, round_number: int) -> None:
        """Notes the highest round of a run that was formed.

        Raises:
            ClientError, BotoCoreError: the table cannot be written.
        """
        reached = update(_actor_key(actor), "SET #round = :round", round=round_number)
        self._table.write(reached.only_if("attribute_not_exists(#round) OR #round < :round"))

    def _take(self, actor: str, tenant: str, count: int, reached: int, now: datetime) -> int:
        key, expires = _tenant_key(actor, tenant), int((now + _LIFETIME).timestamp())
        further = update(key, "SET #round = #round + :count, expires_at = :expires", count=count, expires=expires)
        first = update(key, "SET #round = :last, expires_at = :expires", last=reached + count, expires=expires)
        for _ in range(_TRIES):  # two functions may begin with an idle tenant at the same time
            ahead = self._write(further.only_if("#round >= :reached", reached=reached))
            if ahead is not None:
                return ahead - count + 1
            begun = self._write(first.only_if("attribute_not_exists(#round) OR #round < :reached", reached=reached))
            if begun is not None:
                return reached + 1
        return reached + 1  # others won each write; the order is for fairness only

    def _write(self, change: Change) -> int | None:
        """The new round; None if the condition fails."""
        return self._table.write(change, returns="ALL_NEW").item.integer("round", None)


def _actor_key(actor: str) -> Key:
    return Key(f"ROUND#{actor}", "reached")


def _tenant_key(actor: str, tenant: str) -> Key:
    digest = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()
    return Key(f"ROUND#{actor}#{digest}", "tenant")
