"""Keeps refused reports in the mesh's bucket, one object for each message (`protocol §5`, reports)."""

from typing import TYPE_CHECKING

import msgspec

from asya.gateway.report_messages import RefusedReport
from asya.protocol.keys import refused_reports_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class RefusedReports(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was refused, from whom, and why.

    Attributes:
        queue: `x-reports` or `x-ends`.
        sender: the `SenderId` of the message.
        sent_at: when the message was sent.
        reports: the refused reports of the message, in order.
        problem, body: set if the message as a whole cannot be read.
    """

    queue: str
    message_id: str
    sender: str
    sent_at: str
    reports: tuple[RefusedReport, ...] = ()
    problem: str | None = None
    body: str | None = None


class RefusedReportStore:
    """Writes the objects `reports/refused/{message id}.json`."""

    def __init__(self, s3: "S3Client", bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def save(self, refused: RefusedReports) -> str:
        """Write the object of a message and return its key; a redelivery writes the same one.

        Raises:
            ClientError, BotoCoreError: the object cannot be written.
        """
        key = refused_reports_key(refused.message_id)
        self._s3.put_object(
            Bucket=self._bucket, Key=key, Body=msgspec.json.encode(refused), ContentType="application/json"
        )
        return key
