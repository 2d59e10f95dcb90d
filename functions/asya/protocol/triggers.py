"""The triggers of a mesh: what starts a task without a caller (`protocol §16`). Durations are in seconds."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from asya.protocol.mesh_keys import Form, JsonOfFloats, Pointer, Seconds, TaskTimeout, Texts

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
    """New objects of a bucket."""

    bucket: str
    """`data` or `results`, which are the mesh's own, or the name of a bucket."""
    prefix: str = ""
    suffix: str = ""


class EventSource(msgspec.Struct, frozen=True, kw_only=True):
    """Events of an EventBridge bus. Each key but `bus` is one of the pattern."""

    source: Texts | None = None
    detail_type: Texts | None = msgspec.field(default=None, name="detail-type")
    detail: dict[str, JsonOfFloats] | None = None
    resources: Texts | None = None
    account: Texts | None = None
    region: Texts | None = None
    bus: str = "default"
    """The name of the bus."""

    @property
    def pattern(self) -> dict[str, object]:
        """The pattern of a rule, in the JSON form of EventBridge."""
        lists = {
            "source": self.source,
            "detail-type": self.detail_type,
            "detail": self.detail,
            "resources": self.resources,
            "account": self.account,
            "region": self.region,
        }
        return {key: list(each) if isinstance(each, tuple) else each for key, each in lists.items() if each is not None}


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """Signed calls of another system at a URL of the trigger's own."""

    secret: Annotated[str, Form("secret")]
    """The name of the secret in Secrets Manager that has the keys, or `ssm:` and that of a parameter."""
    signature: Signature
    """The scheme of the signature."""
    header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,100}$")] = "X-Signature-256"
    """The header with the digest, for `hmac-sha256`."""
    id: Annotated[str, Form("webhook id")] | None = None
    """The JSON pointer into the body, or the header, with what is the same in a repetition; by default that of the scheme."""


class TriggerBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Many occurrences in one task."""

    size: Annotated[int, Meta(ge=1, le=1000)]
    window: Annotated[Seconds, Meta(ge=1, le=900)]


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """A trigger: one source, and the task that each occurrence starts."""

    tool: str | None = None
    """The tool that it calls."""
    route: tuple[str, ...] = ()
    """The actors in order, if it calls no tool."""
    timeout: TaskTimeout | None = None
    """The deadline of a task on a route. A tool has its own."""
    enabled: bool = True
    payload: dict[str, object] | None = None
    """The payload, with placeholders such as `{date}`; by default what the source gives."""
    input: Pointer = ""
    """The JSON pointer to the part of an event or a body that becomes the payload."""
    overlap: Overlap = "allow"
    """What happens while an earlier task of the trigger runs."""
    by: Pointer | None = None
    """The JSON pointer into the payload to the key of `overlap`, `debounce` and `batch`."""
    debounce: Annotated[Seconds, Meta(ge=1, le=900)] | None = None
    """One task for a burst: it starts after this silence, with the last payload."""
    batch: TriggerBatch | None = None
    """Many occurrences in one task, with the payload `{"items": […]}`."""
    cron: Annotated[str, Form("cron")] | None = None
    """Unix cron with five fields."""
    timezone: Annotated[str, Form("zone")] = "UTC"
    catch_up: Annotated[Seconds, Meta(ge=120)] = 600.0
    """How late a slot may start."""
    objects: ObjectSource | None = msgspec.field(default=None, name="s3")
    event: EventSource | None = None
    webhook: Webhook | None = None

    @property
    def schedule(self) -> Schedule | None:
        """The schedule; None for a trigger with another source."""
        if self.cron is None:
            return None
        return Schedule(cron=self.cron, timezone=self.timezone, catch_up=self.catch_up)

    @property
    def has_lanes(self) -> bool:
        """Whether its occurrences go through lanes."""
        return self.overlap != "allow" or self.debounce is not None or self.batch is not None
