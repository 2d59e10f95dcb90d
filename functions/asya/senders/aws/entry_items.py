"""Items of entry: first senders of dead letters, and owners of ids chosen outside (`protocol §4.entry`)."""

import hashlib
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put, update
from asya.function.aws.table_items import Item, Key, Value
from asya.protocol.table_keys import LETTER_PREFIX, OWNER_PREFIX, own_letters
from asya.senders.roles import KEEP_FORMER

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class LetterSenders:
    """Items of the table `asya-{namespace}-sink`: pk = `LETTER#{SHA-256 of the body}`, sk = `sender`, and who sent the letter.

    A function notes the messages that it receives again as `LETTER#{actor}#{SHA-256 of the body}`; they count at its own queue.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to the table fails.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def note(self, body: bytes, sender: str, now: datetime, actor: str | None = None) -> None:
        """Note who sent a dead letter. The note stays as long as the letter can.

        Args:
            actor: whose function notes a message that may become a dead letter; None for a dead letter.
        """
        expires_at = int((now + KEEP_FORMER).timestamp())
        self._table.write(put(_key(body, actor), {"sender": sender, "expires_at": expires_at}))

    def sender_of(self, body: bytes, actor: str | None) -> str | None:
        """The principal that sent a dead letter with this body first; None without such a letter.

        Args:
            actor: the actor on whose queue the message lies; None if its notes do not count.
        """
        for noted_by in dict.fromkeys((actor, None)):
            with suppress(ValueError):  # code of users writes the notes of its own queue
                sender = self._table.get(_key(body, noted_by)).text("sender", None)
                if sender is not None:
                    return sender
        return None


def _key(body: bytes, actor: str | None) -> Key:
    prefix = LETTER_PREFIX if actor is None else own_letters(actor)
    return Key(prefix + hashlib.sha256(body).hexdigest(), "sender")


class OwnerClaims:
    """Items of the table `asya-{namespace}-sink` with pk = `OWNER#{id}`.

    The item with sk = `owner` names the principal that owns the id. That with sk = `children` says who has its numbered ids
    (`protocol §14.child_ids`). Code of users may write anything there, so what has another form belongs to somebody else.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def claim(self, envelope_id: str, owner: str, until: datetime | None, entered_at: str) -> bool:
        """Take an id for an owner; a repetition by the same owner takes it for longer, and never for less long.

        Args:
            until: the end of the claim; None for ever.
            entered_at: the actor at which the owner's message has entered.

        Returns:
            Whether the owner has the id; False if it belongs to another one.

        Raises:
            ClientError, BotoCoreError: the table cannot be written, so nobody knows; keep the message.
        """
        key = Key(OWNER_PREFIX + envelope_id, "owner")
        present = self._take(key, owner, until, frozenset({entered_at}))
        if present is None or _owner(present) != owner:
            return present is None
        if entered_at not in _entered_at(present):
            self._table.write(update(key, "ADD entered_at :actors", actors=frozenset({entered_at})))
        return True

    def has_entered_at(self, envelope_id: str, actor: str) -> bool:
        """Whether the owner's message has entered at an actor.

        Raises:
            ClientError, BotoCoreError: the table cannot be read, so nobody knows; keep the message.
        """
        return actor in _entered_at(self._table.get(Key(OWNER_PREFIX + envelope_id, "owner")))

    def numbered_claimant(self, envelope_id: str) -> str | None:
        """Who has the numbered ids of an id; None if nobody has claimed them.

        Raises:
            ClientError, BotoCoreError: the table cannot be read, so nobody knows; keep the message.
        """
        return _owner(self._table.get(Key(OWNER_PREFIX + envelope_id, "children")))

    def claim_numbered(self, envelope_id: str, claimant: str, until: datetime | None) -> bool:
        """Take the numbered ids of an id, `{id}-1` and so on, as `claim` takes an id.

        Raises:
            ClientError, BotoCoreError: the table cannot be written, so nobody knows; keep the message.
        """
        present = self._take(Key(OWNER_PREFIX + envelope_id, "children"), claimant, until)
        return present is None or _owner(present) == claimant

    def _take(
        self, key: Key, owner: str, until: datetime | None, entered_at: frozenset[str] = frozenset()
    ) -> Item | None:
        """Write a claim; the present item if it is another owner's, or lasts for as long; None if it is written."""
        added = " ADD entered_at :actors" if entered_at else ""
        values: dict[str, Value] = {"actors": entered_at} if entered_at else {}
        if until is None:
            claim, is_shorter = update(key, f"SET #owner = :owner REMOVE expires_at{added}", **values), ""
        else:
            # An item without an end fails this too, so it keeps none.
            is_shorter = " AND expires_at < :until"
            values |= {"until": int(until.timestamp())}
            claim = update(key, f"SET #owner = :owner, expires_at = :until{added}", **values)
        condition = f"attribute_not_exists(#owner) OR (#owner = :owner{is_shorter})"
        written = self._table.write(claim.only_if(condition, owner=owner), shows_present=True)
        return None if written else written.item


def _owner(item: Item) -> str | None:
    with suppress(ValueError):
        return item.text("owner", None)
    return None


def _entered_at(item: Item) -> frozenset[str]:
    with suppress(ValueError):
        return item.texts("entered_at")
    return frozenset()
