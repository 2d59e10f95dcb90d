"""Claims on ends: one end per envelope and generation (`protocol §11`).

The item of an envelope also holds the position of its last pause. A pause actor writes it, also before any end is claimed.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from asya.function.aws.table import Table, update
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol import states
from asya.protocol.times import format_time, parse_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NOT_STALE = (
    "(attribute_not_exists(pause_epoch) OR pause_generation < :generation "
    "OR (pause_generation = :generation AND pause_epoch < :position))"
)
_FREE = "attribute_not_exists(phase) OR generation < :generation"
_REPLACES_PROVISIONAL = "(generation = :generation AND provisional = :yes)"
# The envelope has paused after that end, so a cancellation ends what goes on.
_HAS_PAUSED_SINCE = "(pause_generation = :generation AND end_hop <= pause_epoch)"

_IS_OF_OWNER = "(attribute_not_exists(#owner) OR #owner = :owner)"

_IS_LAST_PAUSE = (
    "(attribute_not_exists(pause_epoch) OR pause_generation < :generation "
    "OR (pause_generation = :generation AND pause_epoch <= :epoch))"
)

ClaimOutcome = Literal["taken", "refused", "stale"]


class Claim(msgspec.Struct, frozen=True):
    """The end of an envelope.

    Attributes:
        key: of its object, below the results prefix. A provisional end has none: the holder keeps the key before it.
        position: where the envelope ended: the number of hops done.
        is_provisional: whether an end by x-sink, x-sump or a fan-in actor replaces this one: its message is a dead
            letter, and a redrive may still end the envelope.
        hop: the position of the hop that ended it, if it is not `position`: a dead letter of a pause actor is claimed beyond
            its own pause.
        is_by_call: whether it is the cancellation of a call, which replaces a provisional end too.
        owner: whose the envelope is (`protocol §3.owner`); None if it does not say.
    """

    envelope_id: str
    generation: int
    phase: str
    key: str
    position: int = 0
    is_provisional: bool = False
    hop: int | None = None
    owner: str | None = None
    is_by_call: bool = False


class ClaimResult(msgspec.Struct, frozen=True):
    """The result of a claim.

    Attributes:
        outcome: `taken`: write and report the end. `refused`: the envelope has another end, or a later generation.
            `stale`: the envelope has paused at or after this position, in this or a later generation.
        claim: the claim that holds now; of a stale end without any, the one that was made. A repeated claim has the key of
            the first one, so a redelivery finishes its object. Its position is that of the caller's claim.
        generation: of the end that holds; for a stale end the later one of that and of the pause.
        replaced_key: the object of the claim that this one replaced, to remove once the new one is written; None without one.
        claimed_at: when the end that holds was first claimed; None of a stale end.
        is_of_other_owner: whether it was refused because the envelope belongs to another owner.
    """

    outcome: ClaimOutcome
    claim: Claim
    generation: int
    replaced_key: str | None = None
    claimed_at: datetime | None = None
    is_of_other_owner: bool = False


class EndClaims:
    """The table `asya-{namespace}-sink`: pk = envelope id, sk = `claim`."""

    def __init__(self, dynamodb: "DynamoDBClient", table: str, keep_seconds: float) -> None:
        self._table = Table(dynamodb, table)
        self._keep_seconds = keep_seconds

    def take(self, claim: Claim, *, epoch_seconds: float) -> ClaimResult:
        """Take the claim, or return the claim that holds. The same phase and generation may take it repeatedly.

        A provisional claim gives way to any other end of its generation: to a cancellation only if a call made it, or if the
        envelope has paused since.

        An end at or below the last pause is refused as stale, whatever else the item says. The end of an envelope of
        another owner than the first one is refused.

        Raises:
            botocore.exceptions.ClientError: the table cannot be written.
        """
        # DynamoDB evaluates all values before it writes, so replaced_key becomes the earlier key. A provisional end has no
        # object, so the key of the object that a later end has to remove stays. A repetition fails the condition, so it changes
        # nothing: neither the key nor the time of the claim.
        keys = (
            "replaced_key = if_not_exists(replaced_key, :none), #key = if_not_exists(#key, :key)"
            if claim.is_provisional
            else "replaced_key = if_not_exists(#key, :none), #key = :key"
        )
        may_replace = not claim.is_provisional
        replaces = (
            f"({_REPLACES_PROVISIONAL} AND {_HAS_PAUSED_SINCE})"
            if claim.phase == states.CANCELED and not claim.is_by_call
            else _REPLACES_PROVISIONAL
        )
        free = f"{_FREE} OR {replaces}" if may_replace else _FREE
        values: dict[str, Value] = {
            "key": claim.key,
            "generation": claim.generation,
            "position": claim.position,
            "hop": claim.position if claim.hop is None else claim.hop,
            "phase": claim.phase,
            "provisional": claim.is_provisional,
            "claimed_at": format_time(datetime.fromtimestamp(epoch_seconds, UTC)),
            "expires_at": int(epoch_seconds + self._keep_seconds),
            "none": "",
        }
        condition, owner = f"{_NOT_STALE} AND ({free})", ""
        if may_replace:
            values["yes"] = True
        if claim.owner is not None:
            # A dead letter may not say whose it is, so an end without an owner claims for nobody.
            condition, owner = f"{_IS_OF_OWNER} AND {condition}", "#owner = :owner, "
            values["owner"] = claim.owner
        change = update(
            _item_key(claim.envelope_id),
            f"SET {keys}, {owner}generation = :generation, end_hop = :hop, "
            "phase = :phase, provisional = :provisional, claimed_at = :claimed_at, expires_at = :expires_at",
        )
        written = self._table.write(change.only_if(condition, **values), returns="ALL_NEW", shows_present=True)
        return _result(claim, written.item)

    def note_pause(self, envelope_id: str, generation: int, epoch: int, *, epoch_seconds: float) -> Claim | None:
        """Note a pause, so that no end at or below its position counts; an earlier pause changes nothing.

        A pause actor notes its pause before it reports it. Of a pause and an end of one generation the first one counts.

        Returns:
            None if the task may pause, else the end that the envelope has in this generation or a later one.

        Raises:
            botocore.exceptions.ClientError: the table cannot be written.
        """
        note = update(
            _item_key(envelope_id),
            "SET pause_generation = :generation, pause_epoch = :epoch, expires_at = :expires_at",
            generation=generation,
            epoch=epoch,
            expires_at=int(epoch_seconds + self._keep_seconds),
        ).only_if(f"{_IS_LAST_PAUSE} AND ({_FREE} OR {_REPLACES_PROVISIONAL})", yes=True)
        written = self._table.write(note, shows_present=True)
        holder = None if written else _holder(envelope_id, written.item)
        if holder is None or holder.generation < generation:
            return None
        return None if holder.generation == generation and holder.is_provisional else holder

    def holder(self, envelope_id: str) -> Claim | None:
        """The claim that holds now, or None; a consistent read.

        Raises:
            botocore.exceptions.ClientError: the table cannot be read.
        """
        return _holder(envelope_id, self._table.get(_item_key(envelope_id)))


def _item_key(envelope_id: str) -> Key:
    return Key(envelope_id, "claim")


def _result(claim: Claim, item: Item) -> ClaimResult:
    holder, pause = _holder(claim.envelope_id, item, claim.position), _last_pause(item)
    if holder is not None and claim.owner is not None and item.text("owner", claim.owner) != claim.owner:
        return ClaimResult("refused", holder, holder.generation, is_of_other_owner=True)
    if pause is not None and (claim.generation, claim.position) <= pause:
        return ClaimResult("stale", holder or claim, max(pause[0], holder.generation if holder else 0))
    if holder is None:
        raise ValueError(f"the claim of envelope {claim.envelope_id} was refused, but nobody holds it")
    is_taken = (holder.generation, holder.phase) == (claim.generation, claim.phase)
    replaced = item.text("replaced_key")
    replaced_key = replaced if replaced not in ("", holder.key) else None
    outcome: ClaimOutcome = "taken" if is_taken else "refused"
    return ClaimResult(outcome, holder, holder.generation, replaced_key, parse_time(item.text("claimed_at")))


def _holder(envelope_id: str, item: Item, position: int = 0) -> Claim | None:
    """The claim in an item; None if the item does not exist, or holds a pause only."""
    if "phase" not in item:
        return None
    is_provisional = item.flag("provisional", False)
    return Claim(
        envelope_id, item.integer("generation"), item.text("phase"), item.text("key"), position, is_provisional
    )


def _last_pause(item: Item) -> tuple[int, int] | None:
    """Generation and epoch of the last pause; None without one."""
    if "pause_epoch" not in item:
        return None
    return item.integer("pause_generation"), item.integer("pause_epoch")
