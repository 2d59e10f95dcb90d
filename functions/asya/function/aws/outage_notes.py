"""The mesh's notes of outages: the errors that they cause name them (`protocol §4.outage.named`)."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from asya.function.aws.outages import Outage
from asya.function.aws.table import Table, update
from asya.function.aws.table_items import Item, Key
from asya.function.outage_words import present_sentence, sentence
from asya.protocol.table_keys import OUTAGE_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SERVICES = ("DynamoDB", "S3", "SQS")
_KEY = Key(OUTAGE_KEY, "outage")
# Calls that fail within this time belong to one outage: messages that it keeps return after a quarter of an hour.
_SAME_SECONDS = 1000.0
_KEEP_SECONDS = 15 * 86400
_CAUSE = re.compile(r"[^A-Za-z0-9 ._-]")


class OutageNotes:
    """The item `OUTAGE` of the table `asya-{namespace}-sink`: for each service its last outage.

    Every role of the mesh may write it, so a reader believes nothing but the names and the times.
    """

    def __init__(self, dynamodb: "DynamoDBClient", table: str) -> None:
        self._table = Table(dynamodb, table)

    def add(self, outages: Sequence[Outage]) -> None:
        """Note outages that this process has seen.

        Raises:
            ClientError, BotoCoreError: the table cannot be read or written.
        """
        seen = {outage.service for outage in outages}
        for outage in merged(self.read(), outages):
            if outage.service not in seen:
                continue
            since, until = round(outage.since, 3), round(outage.until, 3)
            self._table.write(
                update(
                    _KEY,
                    f"SET #{outage.service} = :outage, expires_at = :expires",
                    outage={"since": since, "until": until, "cause": _cause(outage.cause)},
                    expires=int(outage.until + _KEEP_SECONDS),
                )
            )

    def read(self) -> list[Outage]:
        """The last outage of each service.

        Raises:
            ClientError, BotoCoreError: the table cannot be read.
        """
        item = self._table.get(_KEY)
        found = (_outage(service, item) for service in SERVICES if service in item)
        return [outage for outage in found if outage is not None]


def words_about(outages: Sequence[Outage], since: datetime, now: datetime) -> str:
    """The sentence about the outages in a time, with a space before it; empty without any."""
    begin, end = since.timestamp(), now.timestamp()
    met = [outage for outage in outages if outage.since <= end and outage.until >= begin]
    return sentence(
        [(outage.service, _time(outage.since), _time(outage.until), outage.cause) for outage in met],
    )


def words_about_now(outages: Sequence[Outage], since: datetime, now: datetime) -> str:
    """What a task says about outages that were noted after a time and may last; empty without any."""
    earliest = max(since.timestamp(), now.timestamp() - _SAME_SECONDS)
    return present_sentence(
        [(outage.service, _time(outage.since), outage.cause) for outage in outages if outage.until >= earliest]
    )


def merged(*lists: Sequence[Outage]) -> list[Outage]:
    """One outage for each service: those that overlap or follow each other closely are one."""
    outages: dict[str, Outage] = {}
    for seen in (outage for each in lists for outage in each):
        before = outages.get(seen.service)
        outages[seen.service] = seen if before is None else _merged(before, seen)
    return list(outages.values())


def _merged(before: Outage, seen: Outage) -> Outage:
    first, last = sorted((before, seen), key=lambda outage: outage.until)
    if last.since - first.until > _SAME_SECONDS:
        return last
    return Outage(seen.service, min(before.since, seen.since), max(before.until, seen.until), last.cause)


def _outage(service: str, item: Item) -> Outage | None:
    """The note on a service; None if it has another form, or times that are none."""
    try:
        note = item.map(service)
        outage = Outage(service, note.number("since"), note.number("until"), _cause(note.text("cause")))
        _time(outage.since), _time(outage.until)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    return outage


def _cause(text: str) -> str:
    return _CAUSE.sub("", text)[:64]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
