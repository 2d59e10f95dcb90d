"""What S3 and EventBridge tell of triggers, for `Mesh.fire` (`protocol §16.objects`, `§16.events`)."""

import json
from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid5

from asya.capabilities.triggers.messages import UnusableMessageError
from asya.capabilities.triggers.sources.new_objects import Buckets
from asya.capabilities.triggers.sources.service_messages import read_service_message
from asya.function.hop import Arrival
from asya.protocol.mesh_table import MeshTable
from asya.protocol.times import format_time
from asya.protocol.triggers import ObjectSource
from asya.testing.errors import TestKitError
from asya.testing.services.functions import ACCOUNT, REGION, RESULTS_URI

SERVICE_SENDER = "AIDAOFAWS"
"""The `SenderId` of what S3 and EventBridge send: an id of AWS, and no role of the mesh."""
_IDS = UUID("5b2f3a52-5c0e-4a64-9a51-0f3a5d2f8c11")


class Sources:
    """The sources of triggers of a mesh that a test has. Each object and each event is a new one.

    Args:
        table: the table of the mesh.
        data_uri: the base of references.
    """

    def __init__(self, table: MeshTable, data_uri: str) -> None:
        self._table = table
        self._buckets = Buckets(data_uri, RESULTS_URI)
        self._numbers = count(1)

    def start_of(self, name: str, at: datetime, *, key: str | None, event: Mapping[str, Any] | None) -> tuple[str, str]:
        """The body of the message about a new object or an event, and the id of the task that it starts.

        Args:
            name: the name of the trigger.
            at: when it happens.
            key: the key of the object, below the place of the trigger's bucket.
            event: members of the event.

        Raises:
            TestKitError: the trigger does not react to it.
        """
        trigger = self._table.triggers.get(name)
        if key is not None and event is None and trigger is not None and trigger.objects is not None:
            told = self._created(trigger.objects, key)
        elif key is None and event is not None and trigger is not None and trigger.event is not None:
            told = {"source": "test", "detail-type": "Test", "detail": {}, **event}
        else:
            given = "key needs a trigger with s3" if event is None else "event needs a trigger with event, and no key"
            raise TestKitError(f"{given}; {name!r} is none")
        number = next(self._numbers)
        base = {"version": "0", "id": str(uuid5(_IDS, str(number))), "account": ACCOUNT, "time": format_time(at)}
        body = json.dumps({"trigger": name, "event": {**base, "region": REGION, "resources": [], **told}})
        arrival = Arrival(
            body=body.encode(), message_id="", sent_at=at, receive_count=1, sender=SERVICE_SENDER, size=len(body)
        )
        try:
            occurrences = read_service_message(arrival, self._table, self._buckets)
        except UnusableMessageError as error:
            raise TestKitError(f"the trigger {name!r}: {error}") from None
        if not occurrences:
            raise TestKitError(f"the trigger {name!r} does not ask for the key {key!r}")
        return body, occurrences[0].task_id

    def _created(self, source: ObjectSource, key: str) -> dict[str, Any]:
        place = self._buckets.place(source.bucket)
        written = {"key": f"{place.prefix}{key}", "size": 0, "etag": "", "sequencer": f"{next(self._numbers):016X}"}
        detail = {"bucket": {"name": place.bucket}, "object": written}
        return {"source": "aws.s3", "detail-type": "Object Created", "detail": detail}
