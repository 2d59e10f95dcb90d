"""The resident runs of heavy actors, and which of them takes a formed run as its next batch (`protocol §10.resident`).

The item `HOST#{actor}` / `{number:010d}` of the pending table exists until the job run of a resident run has ended. The transaction
that places a run counts the batch there, so no two dispatchers give one batch number to two runs, and none places a run
twice. S3 then decides between the dispatcher and the driver: the manifest of a batch, or the mark that there will be none.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.messaging.aws.conditional_writes import failed_conditions, is_condition_failure
from asya.protocol.job_runs import Host
from asya.spark.aws.run_items import digits, host_key, run_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from asya.spark.aws.run_items import Item


@dataclass(frozen=True, slots=True)
class ResidentRun:
    """A resident run.

    Attributes:
        job_run_id: its id at EMR Serverless.
        fingerprint: names the code and the settings that it was started with.
        batch: the latest batch that was placed on it; 0 for the run itself.
        is_closed: whether it takes no further batch. It is listed until its job run has ended, which may need a look.
    """

    actor: str
    number: int
    job_run_id: str
    fingerprint: str
    batch: int = 0
    is_closed: bool = False

    @property
    def next(self) -> Host:
        """The place of the next batch."""
        return Host(self.number, self.batch + 1)


class Hosts:
    """The resident runs of a mesh, and the places of their batches.

    Args:
        retention: how long an item stays that nothing deletes.
    """

    def __init__(self, dynamodb: "DynamoDBClient", *, table: str, retention: timedelta) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._retention = retention

    def add(self, run: ResidentRun, *, now: datetime) -> None:
        """Adds a run that was started; one that is known stays as it is."""
        item: Item = {
            **host_key(run.actor, run.number),
            "job_run_id": {"S": run.job_run_id},
            "fingerprint": {"S": run.fingerprint},
            "placed": {"N": str(run.batch)},
            "expires_at": {"N": str(int((now + self._retention).timestamp()))},
        }
        try:
            self._dynamodb.put_item(TableName=self._table, Item=item, ConditionExpression="attribute_not_exists(pk)")
        except ClientError as error:
            if not is_condition_failure(error):
                raise

    def all(self, actor: str) -> list[ResidentRun]:
        """The resident runs of an actor, oldest first."""
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="pk = :actor",
            ExpressionAttributeValues={":actor": host_key(actor, 0)["pk"]},
            ConsistentRead=True,
        )
        return [_resident_run(actor, item) for page in pages for item in page["Items"]]

    def place(self, actor: str, number: int, host: Host | None) -> bool:
        """Decides which job run takes a formed run: a resident one, or one of its own for None.

        Returns:
            Whether this decision was made; False if there is one already, or the resident run has another batch or is gone.
        """
        update: TransactWriteItemTypeDef = {
            "Update": {
                "TableName": self._table,
                "Key": run_key(actor, digits(number)),
                "UpdateExpression": "SET host = :host, host_batch = :batch",
                "ConditionExpression": "#state = :formed AND attribute_not_exists(host)",
                "ExpressionAttributeNames": {"#state": "state"},
                "ExpressionAttributeValues": {
                    ":host": {"N": str(host.number if host else 0)},
                    ":batch": {"N": str(host.batch if host else 0)},
                    ":formed": {"S": "formed"},
                },
            }
        }
        count: list[TransactWriteItemTypeDef] = [
            {
                "Update": {
                    "TableName": self._table,
                    "Key": host_key(actor, host.number),
                    "UpdateExpression": "SET placed = :batch",
                    "ConditionExpression": "placed = :before AND attribute_not_exists(closed)",
                    "ExpressionAttributeValues": {
                        ":batch": {"N": str(host.batch)},
                        ":before": {"N": str(host.batch - 1)},
                    },
                }
            }
            for host in ([host] if host is not None else [])
        ]
        return self._transact([update, *count])

    def displace(self, actor: str, number: int, host: Host) -> None:
        """Takes back the place of a run whose batch will never be, and closes the resident run; idempotent."""
        self._transact(
            [
                {
                    "Update": {
                        "TableName": self._table,
                        "Key": run_key(actor, digits(number)),
                        "UpdateExpression": "REMOVE host, host_batch",
                        "ConditionExpression": "#state = :formed AND host = :host AND host_batch = :batch",
                        "ExpressionAttributeNames": {"#state": "state"},
                        "ExpressionAttributeValues": {
                            ":formed": {"S": "formed"},
                            ":host": {"N": str(host.number)},
                            ":batch": {"N": str(host.batch)},
                        },
                    }
                }
            ]
        )
        self.close(actor, host.number)

    def close(self, actor: str, number: int) -> None:
        """Notes that a run takes no batch any more; idempotent."""
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=host_key(actor, number),
                UpdateExpression="SET closed = :yes",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeValues={":yes": {"BOOL": True}},
            )
        except ClientError as error:
            if not is_condition_failure(error):
                raise

    def remove(self, actor: str, number: int) -> None:
        """Removes a run whose job run has ended; idempotent."""
        self._dynamodb.delete_item(TableName=self._table, Key=host_key(actor, number))

    def _transact(self, writes: "list[TransactWriteItemTypeDef]") -> bool:
        try:
            self._dynamodb.transact_write_items(TransactItems=writes)
        except ClientError as error:
            if not failed_conditions(error):
                raise
            return False
        return True


def _resident_run(actor: str, item: "Item") -> ResidentRun:
    return ResidentRun(
        actor,
        int(item["sk"]["S"]),
        item["job_run_id"]["S"],
        item["fingerprint"]["S"],
        int(item["placed"]["N"]),
        "closed" in item,
    )
