"""The first senders of dead letters, in DynamoDB: SQS's own redrive makes its caller the sender (`protocol §4.entry.moved`)."""

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING

from asya.function.aws.table import Table, put
from asya.function.aws.table_items import Key
from asya.protocol.table_keys import LETTER_PREFIX, own_letters
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

    def sender_of(self, body: bytes, actor: str) -> str | None:
        """The principal that sent a dead letter with this body first; None without such a letter.

        Args:
            actor: the actor on whose queue the message lies.
        """
        for noted_by in (actor, None):
            sender = self._table.get(_key(body, noted_by)).text("sender", None)
            if sender is not None:
                return sender
        return None


def _key(body: bytes, actor: str | None) -> Key:
    prefix = LETTER_PREFIX if actor is None else own_letters(actor)
    return Key(prefix + hashlib.sha256(body).hexdigest(), "sender")
