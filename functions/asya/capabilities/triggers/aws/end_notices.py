"""Tells `x-triggers` which tasks have ended (`protocol §16.ends`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya.capabilities.triggers.ends import EndNotice, encode_end_notice, end_notice
from asya.function.aws import clients
from asya.function.aws.table import chunks
from asya.function.lambdas.function import Function
from asya.function.sqs_limits import BATCH_ENTRIES
from asya.protocol import names
from asya.protocol.task import TaskRecord
from asya.protocol.triggers import Trigger

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class EndNotices:
    """Sends notices of ended tasks.

    A notice that is lost delays what waits for the end until the next sweep. So a failure is logged and has no other effect.

    Args:
        client: the client of SQS.
        url: the URL of the queue of triggers.
        triggers: the triggers of the mesh.
        warn: logs a warning.
    """

    def __init__(
        self, client: "SQSClient", url: str, triggers: Mapping[str, Trigger], warn: Callable[[str], None]
    ) -> None:
        self._client = client
        self._url = url
        self._triggers = triggers
        self._warn = warn

    def send(self, records: Sequence[TaskRecord]) -> None:
        """Send the notices of ended tasks; most tasks have none."""
        notices = [notice for record in records if (notice := end_notice(record, self._triggers)) is not None]
        for batch in chunks(notices, BATCH_ENTRIES):
            if problem := self._send(batch):
                self._warn(f"x-triggers was not told of the end of {len(batch)} tasks, the sweep finds them: {problem}")

    def _send(self, notices: Sequence[EndNotice]) -> str | None:
        entries = [(str(number), encode_end_notice(notice).decode()) for number, notice in enumerate(notices)]
        try:
            answer = self._client.send_message_batch(
                QueueUrl=self._url, Entries=[{"Id": number, "MessageBody": body} for number, body in entries]
            )
        except (ClientError, BotoCoreError) as error:
            return str(error)
        failed = answer.get("Failed", [])
        return failed[0].get("Message", failed[0]["Code"]) if failed else None


def build_end_notices(own: Function) -> Callable[[Sequence[TaskRecord]], None] | None:
    """Return the function that sends notices of ended tasks; None for a mesh without triggers."""
    settings = own.settings
    if not settings.table.triggers:
        return None
    return EndNotices(clients.sqs(), settings.queue_url(names.TRIGGERS), settings.table.triggers, own.warn).send
