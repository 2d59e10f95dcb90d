"""The resident runs of heavy actors, and their batches (`protocol §10.resident`).

Batch `k` of run `n` is the object `runs/{actor}/{n}/batches/{k}/manifest.json`. Dispatcher and driver write it only if it is
absent, so one of them wins: the dispatcher with a copy of a manifest, or either with the mark that the run is closed.

The item `RESIDENT#{actor}` / `{number:010d}` of the pending table exists until the job run of a resident run has ended. The
transaction that places a run counts the batch there, so no two dispatchers give one batch number to two runs, and none places a
run twice. S3 then decides between the dispatcher and the driver: the manifest of a batch, or the mark that there will be none.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from botocore.exceptions import ClientError

from asya.function.aws.bounded_reads import is_missing, is_unreadable
from asya.function.aws.conditional_writes import put_if_absent
from asya.function.aws.table import Table, delete, in_partition, put, update
from asya.function.aws.table_items import Item, Value
from asya.heavy.aws.run_records import digits, resident_key, run_key
from asya.heavy.results import UNREADABLE
from asya.heavy.run_formation import encode_manifest
from asya.protocol.job_runs import Closed, CloseReason, Manifest, Place, Presence, RunFolder, presence_key
from asya.protocol.times import parse_time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

# The first line of a batch has no envelope. A job may write anything there, so no more than this is read.
_HEAD_BYTES = 1024 * 1024
# A resident run says every 2 s that it is idle.
FRESH = timedelta(seconds=5)


class _Batch(msgspec.Struct, frozen=True):
    """What the first line of a batch says: the number of its run, or why there is none."""

    number: int = 0
    closed: str = ""


class Batches:
    """The batches in the mesh's bucket."""

    def __init__(self, s3: "S3Client", *, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def fill(self, manifest: Manifest, place: Place) -> bool:
        """Gives a resident run its next batch; idempotent.

        Returns:
            False if the resident run takes no batch any more.
        """
        folder = RunFolder(manifest.actor, manifest.number, place)
        return self._create(folder, encode_manifest(manifest)) or self._run_in(folder) == manifest.number

    def close(self, actor: str, place: Place, reason: CloseReason) -> bool:
        """Lets a resident run end in place of this batch; idempotent.

        Returns:
            False if it has the batch.
        """
        folder = RunFolder(actor, 0, place)
        return self._create(folder, msgspec.json.encode(Closed(reason))) or not self._run_in(folder)

    def presence(self, actor: str, number: int, *, now: datetime) -> Presence | None:
        """What a resident run that is idle has said last, unless that is more than `FRESH` ago, or as much ahead.

        Its job writes it, and with a time ahead a run that has died would stay idle.
        """
        try:
            content = self._s3.get_object(Bucket=self._bucket, Key=presence_key(actor, number))["Body"].read(
                _HEAD_BYTES
            )
            presence = msgspec.json.decode(content, type=Presence)
            return presence if abs(now - parse_time(presence.at)) <= FRESH else None
        except UNREADABLE:
            return None  # a job may write anything
        except ClientError as error:
            if is_missing(error) or is_unreadable(error):
                return None
            raise

    def _create(self, folder: RunFolder, body: bytes) -> bool:
        return put_if_absent(self._s3, bucket=self._bucket, key=_key(folder), body=body)

    def _run_in(self, folder: RunFolder) -> int:
        """The number of the run that is this batch; 0 if the resident run is closed."""
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=_key(folder))["Body"]
            return msgspec.json.decode(body.read(_HEAD_BYTES).partition(b"\n")[0], type=_Batch).number
        except UNREADABLE:
            return 0  # a job may write anything into the folders of its batches
        except ClientError as error:
            if is_unreadable(error):
                return 0
            raise


def _key(folder: RunFolder) -> str:
    return f"{folder.prefix}manifest.json"


@dataclass(frozen=True, slots=True)
class ResidentRun:
    """A resident run.

    Attributes:
        job_run_id: its id at EMR Serverless.
        fingerprint: names the code and the settings that it was started with.
        batch: the latest batch that was placed on it; 0 for the run itself.
        tenant: the only one whose batches it takes; empty if it takes every batch of its actor.
        is_closed: whether it takes no further batch. It is listed until its job run has ended, which may need a look.
    """

    actor: str
    number: int
    job_run_id: str
    fingerprint: str
    batch: int = 0
    is_closed: bool = False
    tenant: str = ""

    @property
    def next(self) -> Place:
        """The place of the next batch."""
        return Place(self.number, self.batch + 1)


class Residents:
    """The resident runs of a mesh, and the places of their batches.

    Args:
        retention: how long an item stays that nothing deletes.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, retention: timedelta) -> None:
        self._table = Table(dynamodb, table)
        self._retention = retention

    def add(self, run: ResidentRun, *, now: datetime) -> None:
        """Adds a run that was started; one that is known stays as it is."""
        attributes: dict[str, Value] = {
            "job_run_id": run.job_run_id,
            "fingerprint": run.fingerprint,
            "placed": run.batch,
            "tenant": run.tenant or None,
            "expires_at": int((now + self._retention).timestamp()),
        }
        self._table.write(put(resident_key(run.actor, run.number), attributes).if_absent())

    def all(self, actor: str) -> list[ResidentRun]:
        """The resident runs of an actor, oldest first."""
        items = self._table.query(in_partition(resident_key(actor, 0).pk))
        return [_resident_run(actor, item) for item in items]

    def place(self, actor: str, number: int, place: Place | None) -> bool:
        """Decides which job run takes a formed run: a resident one, or one of its own for None.

        Returns:
            Whether this decision was made; False if there is one already, or the resident run has another batch or is gone.
        """
        placed = update(
            run_key(actor, digits(number)),
            "SET place_run = :run, place_batch = :batch",
            run=place.number if place else 0,
            batch=place.batch if place else 0,
        ).only_if("#state = :formed AND attribute_not_exists(place_run)", formed="formed")
        if place is None:
            return bool(self._table.transact([placed]))
        count = update(resident_key(actor, place.number), "SET placed = :batch", batch=place.batch)
        is_next = count.only_if("placed = :before AND attribute_not_exists(closed)", before=place.batch - 1)
        return bool(self._table.transact([placed, is_next]))

    def displace(self, actor: str, number: int, place: Place) -> None:
        """Takes back the place of a run whose batch will never be, and closes the resident run; idempotent."""
        take_back = update(run_key(actor, digits(number)), "REMOVE place_run, place_batch")
        is_placed = "#state = :formed AND place_run = :run AND place_batch = :batch"
        self._table.transact([take_back.only_if(is_placed, formed="formed", run=place.number, batch=place.batch)])
        self.close(actor, place.number)

    def close(self, actor: str, number: int) -> None:
        """Notes that a run takes no batch any more; idempotent."""
        self._table.write(
            update(resident_key(actor, number), "SET closed = :yes", yes=True).only_if("attribute_exists(pk)")
        )

    def remove(self, actor: str, number: int) -> None:
        """Removes a run whose job run has ended; idempotent."""
        self._table.write(delete(resident_key(actor, number)))


def _resident_run(actor: str, item: Item) -> ResidentRun:
    return ResidentRun(
        actor,
        int(item.key.sk),
        item.text("job_run_id"),
        item.text("fingerprint"),
        item.integer("placed"),
        "closed" in item,
        item.text("tenant", ""),
    )
