"""The triggers of a mesh: what starts a task without a caller (`protocol §16`). Durations are in seconds."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from asya.protocol.mesh_keys import Seconds

OWNER_PREFIX = "trigger:"
"""What the owners of triggered tasks begin with. No principal of IAM or of a token does."""

SLOT_KEY = "slot "
"""What the keys of slots begin with."""

Overlap = Literal["allow", "skip", "queue", "cancel-previous"]
Signature = Literal["github", "stripe", "slack", "standard-webhooks", "hmac-sha256"]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The slots of a schedule: Unix cron with five fields, in a time zone.

    Attributes:
        catch_up: how late a slot may start.
    """

    cron: str
    timezone: str = "UTC"
    catch_up: float = 600.0


class ObjectSource(msgspec.Struct, frozen=True, kw_only=True):
    """New objects of a bucket.

    Attributes:
        bucket: the name of the bucket.
        prefix, suffix: what their keys begin and end with.
    """

    bucket: str
    prefix: str = ""
    suffix: str = ""


class EventPattern(msgspec.Struct, frozen=True, kw_only=True):
    """Events of an EventBridge bus.

    Attributes:
        pattern: the pattern of a rule: `source`, `detail-type`, `detail` and others.
        bus: the name of the bus.
    """

    pattern: dict[str, object]
    bus: str = "default"


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """Signed calls of another system.

    Attributes:
        secret: the id of the secret in Secrets Manager that has the key.
        signature: the scheme of the signature.
        header: the header with the digest, for `hmac-sha256`.
        id: the JSON pointer into the body, or the header, with what is the same in a repetition; None for that of the scheme.
    """

    secret: str
    signature: Signature
    header: str = "X-Signature-256"
    id: str | None = None


class TriggerBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Many occurrences in one task."""

    size: Annotated[int, Meta(ge=1, le=1000)]
    window: Annotated[Seconds, Meta(ge=1, le=900)]


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """One trigger: a source, and the task that each occurrence starts.

    Attributes:
        tool: the tool that it calls; None for a route.
        route: the actors in order; empty for a tool.
        timeout: seconds to the deadline of a task on a route; None for no deadline. A tool has its own.
        enabled: whether it starts anything.
        payload: the template of the payload; None for what the source gives.
        input: the JSON pointer to the part of an event or a body that becomes the payload; empty for all of it.
        overlap: what happens to an occurrence while an earlier task of the trigger runs.
        by: the JSON pointer into the payload to the key of `overlap`, `debounce` and `batch`; None for one key.
        debounce: seconds of silence after which the last occurrence starts; None to start each.
    """

    tool: str | None = None
    route: tuple[str, ...] = ()
    timeout: float | None = None
    enabled: bool = True
    payload: object = None
    input: str = ""
    overlap: Overlap = "allow"
    by: str | None = None
    debounce: float | None = None
    batch: TriggerBatch | None = None
    schedule: Schedule | None = None
    objects: ObjectSource | None = None
    event: EventPattern | None = None
    webhook: Webhook | None = None

    @property
    def has_lanes(self) -> bool:
        """Whether its occurrences go through lanes."""
        return self.overlap != "allow" or self.debounce is not None or self.batch is not None
