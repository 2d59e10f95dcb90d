"""Planted mistakes about ends: provisional ends, the deadline's backstop and the hand-over to x-sink (`protocol §11`, `§13`)."""

from typing import Any

from msgspec.structs import replace

from asya.capabilities.dead_letters import letters
from asya.capabilities.dead_letters.lambdas import dlq
from asya.ends.aws.end_claims import Claim, ClaimResult, EndClaims
from asya.function.aws.outbox import Outbox
from asya.function.aws.receipt import Receipt
from asya.function.hop import Delivery
from asya.gateway.lambdas import task_sweeps
from asya.protocol.events import TaskEvent
from asya.protocol.task import TaskRecord
from asya.senders.aws.entry_items import LetterSenders
from asya.tasks.aws import tasks
from asya.testing.dynamo.tables import MemoryDynamo
from asya.testing.services.process import current_process
from tests.simulation.ends.actors import NAME
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake, wrap

ENDS: Features = frozenset({"ends"})
DEADLINES: Features = frozenset({"deadlines"})
MOVES: Features = frozenset({"moves"})


def _claim_as_final(real: Any, *args: Any, **more: Any) -> ClaimResult:
    result: ClaimResult = real(*args, **more | {"is_provisional": False})
    return result


def _letter_end_as_final(real: Any, *args: Any, **more: Any) -> Any:
    end = real(*args, **more)
    if end is None or end.event is None:
        return end
    event = replace(end.event, data=replace(end.event.data, provisional=False))
    return letters.LetterEnd(end.envelope, event, end.deliveries)


def _claim_provisionally_over_all(real: Any, self: MemoryDynamo, **request: Any) -> Any:
    if request.get("ExpressionAttributeValues", {}).get(":provisional") == {"BOOL": True}:
        request["ConditionExpression"] += " OR attribute_exists(phase)"
    return real(self, **request)


def _keep_provisional(real: Any, self: EndClaims, claim: Claim, **more: Any) -> ClaimResult:
    holder = self.holder(claim.envelope_id)
    if holder is not None and holder.is_provisional and holder.generation == claim.generation:
        return ClaimResult("refused", holder, holder.generation)
    result: ClaimResult = real(self, claim, **more)
    return result


def _merge_as_final(real: Any, record: TaskRecord | None, event: TaskEvent, **more: Any) -> TaskRecord:
    is_end = event.status in ("succeeded", "failed")
    final = replace(record, provisional=False) if record is not None and is_end else record
    merged: TaskRecord = real(final, event, **more)
    return merged


def _fail_finally(real: Any, record: TaskRecord, *args: Any) -> TaskRecord:
    failed: TaskRecord = real(record, *args)
    return replace(failed, provisional=False)


def _send_without_end_actors(real: Any, self: Outbox, delivery: Delivery) -> Receipt:
    if delivery.kind != "sink" or not current_process().name.startswith(NAME):
        return real(self, delivery)  # type: ignore[no-any-return]
    receipt = Receipt(delivery.kind)
    receipt.resolve()
    return receipt


def _note_dead_letters_only(
    real: Any, self: LetterSenders, body: bytes, sender: str, now: Any, actor: str | None = None
) -> None:
    if actor is None:
        real(self, body, sender, now)


MISTAKES = (
    Mistake(
        "notes the senders of dead letters only after x-dlq has seen them",
        wrap(LetterSenders, "note", _note_dead_letters_only),
        "poison",
        seed=8,
        features=MOVES,
    ),
    Mistake(
        "claims the ends of the DLQ function for good",
        wrap(dlq, "claim_end", _claim_as_final),
        "poison",
        features=MOVES,
        seed=0,
    ),
    Mistake(
        "reports the ends of the DLQ function as final",
        wrap(letters, "letter_end", _letter_end_as_final),
        "poison",
        features=MOVES,
        seed=0,
    ),
    Mistake(
        "lets a provisional end take the place of a final one",
        wrap(MemoryDynamo, "update_item", _claim_provisionally_over_all),
        "mixed",
        seed=783,
        features=DEADLINES | MOVES | {"pauses", "cancels"},
    ),
    Mistake(
        "keeps a provisional claim although the re-run has ended",
        wrap(EndClaims, "take", _keep_provisional),
        "poison",
        seed=0,
        features=MOVES,
    ),
    Mistake(
        "keeps a provisional end in the record although the re-run has ended",
        wrap(tasks, "merge", _merge_as_final),
        "poison",
        features=MOVES,
        seed=0,
    ),
    Mistake(
        "fails overdue tasks for good",
        wrap(task_sweeps, "fail_if_overdue", _fail_finally),
        "crashes",
        seed=28,
        features=DEADLINES,
    ),
    Mistake(
        "sends no envelope from a user's end actor to x-sink",
        wrap(Outbox, "send", _send_without_end_actors),
        "fault-free",
        features=ENDS,
    ),
)
