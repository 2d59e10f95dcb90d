"""Sends state change events to the completion queue, in the format of EventBridge.

EventBridge refuses events with a source of `aws.*`, and so does MiniStack. The stand-in therefore sends directly to the target
of the mesh's rule, the completion queue. Delivery is best effort, as on AWS.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya_local.emr.clients import client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asya_local.emr.faults import Faults
    from asya_local.emr.runs import StateChange
    from asya_local.emr.settings import EmrSettings

_logger = logging.getLogger(__name__)


def state_change_event(change: StateChange, region: str, account_id: str) -> dict[str, Any]:
    """Return the event that EventBridge delivers for a state change."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "EMR Serverless Job Run State Change",
        "source": "aws.emr-serverless",
        "account": account_id,
        "time": change.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": [],
        "detail": {
            "jobRunId": change.run_id,
            "jobRunName": change.name,
            "applicationId": change.application_id,
            "arn": change.arn,
            "releaseLabel": change.release_label,
            "state": str(change.state),
            "previousState": str(change.previous),
            "createdBy": change.created_by,
            "updatedAt": _instant(change.at),
            "createdAt": _instant(change.created_at),
        },
    }


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class EventSender:
    """Sends events to the queues of the settings."""

    def __init__(self, settings: EmrSettings, faults: Faults) -> None:
        self._settings = settings
        self._faults = faults
        self._sqs: Any = client("sqs", settings)
        self._urls: dict[str, str] = {}

    def send(self, changes: Sequence[StateChange]) -> None:
        """Send one event for each change."""
        for change in changes:
            body = json.dumps(state_change_event(change, self._settings.region, self._settings.account_id))
            for delay in self._faults.event_delays():
                if delay:
                    timer = threading.Timer(delay, self._deliver, (body,))
                    timer.daemon = True
                    timer.start()
                else:
                    self._deliver(body)

    def _deliver(self, body: str) -> None:
        for queue in self._settings.event_queues:
            try:
                if queue not in self._urls:
                    self._urls[queue] = self._sqs.get_queue_url(QueueName=queue)["QueueUrl"]
                self._sqs.send_message(QueueUrl=self._urls[queue], MessageBody=body)
            except (ClientError, BotoCoreError) as error:
                self._urls.pop(queue, None)
                _logger.warning("event for queue %s not sent: %s", queue, error)
