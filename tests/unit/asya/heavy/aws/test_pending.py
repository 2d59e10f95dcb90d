"""Pending envelopes: a requeue is repeated after a death, and meets other writes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec import Raw

from asya.heavy.aws.pending import Pending
from asya.protocol.job_runs import Member
from asya.testing.dynamo.queries import new_table
from asya.testing.dynamo.tables import MemoryDynamo

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)


class Conflicts(MemoryDynamo):
    """Tables of which another transaction holds an item for the first so many writes."""

    left = 0

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        if not self.left:
            return super().transact_write_items(**request)
        self.left -= 1
        reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
        error = {
            "Error": {"Code": "TransactionCanceledException", "Message": "on demand"},
            "CancellationReasons": reasons,
        }
        raise ClientError(error, "TransactWriteItems")  # type: ignore[arg-type]


@pytest.fixture
def tables() -> Conflicts:
    return Conflicts({"pending": new_table("pending")})


@pytest.fixture
def pending(tables: Conflicts) -> Pending:
    return Pending(tables, None, table="pending", bucket="")  # type: ignore[arg-type]


def returned(*numbers: int) -> Sequence[Member]:
    """Members that run 1 has returned."""
    return [
        Member(
            id=f"e{number}",
            generation=0,
            position=0,
            attempt=1,
            admitted_at=f"2026-11-20T09:00:0{number}.000000Z",
            envelope=Raw(b"{}"),
            returned_by=1,
        )
        for number in numbers
    ]


@pytest.mark.rule("10.death.once")
def test_10_members_beside_a_requeued_one_are_requeued(pending: Pending) -> None:
    """A process dies after a part of its requeue; the next one has another part, or more members in it."""
    pending.requeue("clean", returned(2), now=NOW)
    pending.requeue("clean", returned(1, 2, 3), now=NOW)
    assert [member.id for member in pending.members("clean")] == ["e1", "e2", "e3"]
    pending.remove("clean", returned(1, 2, 3))
    pending.requeue("clean", returned(1, 2, 3), now=NOW)
    assert not pending.has_any("clean")


@pytest.mark.rule("10.death.once")
def test_10_a_requeue_that_meets_another_write_fails(pending: Pending, tables: Conflicts) -> None:
    """Another transaction at the same item is no repetition: the run stays open, and its routing is repeated."""
    tables.left = 1
    with pytest.raises(ClientError, match="TransactionCanceled"):
        pending.requeue("clean", returned(1), now=NOW)
    pending.requeue("clean", returned(1), now=NOW)
    assert pending.has_any("clean")
