"""The keys of `triggers` in the mesh file: what starts a task without a caller (`protocol §16`)."""

import re
from functools import cache
from importlib import resources
from typing import Annotated

from msgspec import Meta, Struct, field
from pydantic import AfterValidator, JsonValue

from asya.protocol.json_pointer import check_pointer
from asya.protocol.mesh_keys import Texts
from asya.protocol.triggers import Overlap, Signature, TriggerBatch
from asya.triggers.slots import check_cron
from asya_infra.mesh_file.actor_model import check_reference
from asya_infra.mesh_file.problems import did_you_mean
from asya_infra.mesh_file.sections import Written, plain
from asya_infra.mesh_file.units import Duration, TaskTimeout


@cache
def _zones() -> frozenset[str]:
    """The zones of the package `tzdata`, which the functions have. A machine may have others, such as `localtime`."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


def _check_zone(name: str) -> str:
    if name in _zones():
        return name
    # Zones without a place are fixed offsets and old names: CEST is not EST.
    places = (zone for zone in sorted(_zones()) if "/" in zone)
    hint = did_you_mean(name.removeprefix("posix/").removeprefix("right/"), places)
    raise ValueError(f"should be a time zone such as Europe/Oslo; got {name!r}{hint}")


def _check_webhook_id(text: str) -> str:
    if text.startswith("/"):
        return check_pointer(text)
    if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", text):
        raise ValueError(f"should be a JSON pointer such as /id or a header such as X-GitHub-Delivery; got {text!r}")
    return text


Cron = Annotated[str, AfterValidator(check_cron)]
Zone = Annotated[str, AfterValidator(_check_zone)]
Pointer = Annotated[str, AfterValidator(check_pointer)]
WebhookId = Annotated[str, AfterValidator(_check_webhook_id)]
SecretName = Annotated[str, AfterValidator(check_reference)]

SOURCES = ("cron", "s3", "event", "webhook")


class ObjectsSection(Struct, frozen=True, kw_only=True):
    """New objects of a bucket."""

    bucket: str
    """`data` or `results`, which are the mesh's own, or the name of a bucket."""
    prefix: str = ""
    suffix: str = ""


class EventSection(Struct, frozen=True, kw_only=True):
    """Events of an EventBridge bus. Each key but `bus` is one of the pattern."""

    source: Texts | None = None
    detail_type: Texts | None = field(default=None, name="detail-type")
    detail: dict[str, JsonValue] | None = None
    resources: Texts | None = None
    account: Texts | None = None
    region: Texts | None = None
    bus: str = "default"
    """The name of the bus."""

    def pattern(self) -> dict[str, object]:
        """Return the pattern of a rule."""
        return {key: value for key, value in plain(self).items() if key != "bus" and value is not None}


class WebhookSection(Struct, frozen=True, kw_only=True):
    """Signed calls of another system at a URL of the trigger's own."""

    secret: SecretName
    """The name of the secret in Secrets Manager that has the keys, or `ssm:` and that of a parameter."""
    signature: Signature
    """The scheme of the signature."""
    header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,100}$")] = "X-Signature-256"
    """The header with the digest, for `hmac-sha256`."""
    id: WebhookId | None = None
    """The JSON pointer into the body, or the header, with what is the same in a repetition; by default that of the scheme."""


class TriggerSection(Struct, frozen=True, kw_only=True):
    """A trigger: one source, and the task that each occurrence starts."""

    tool: str | None = None
    """The tool that it calls."""
    route: tuple[str, ...] = ()
    """The actors in order, if it calls no tool."""
    timeout: TaskTimeout | None = None
    """The deadline of a task on a route. A tool has its own."""
    enabled: bool = True
    payload: dict[str, JsonValue] | None = None
    """The payload, with placeholders such as `{date}`; by default what the source gives."""
    input: Pointer = ""
    """The JSON pointer to the part of an event or a body that becomes the payload."""
    overlap: Overlap = "allow"
    """What happens while an earlier task of the trigger runs."""
    by: Pointer | None = None
    """The JSON pointer into the payload to the key of `overlap`, `debounce` and `batch`."""
    debounce: Annotated[Duration, Meta(ge=1.0, le=900.0)] | None = None
    """One task for a burst: it starts after this silence, with the last payload."""
    batch: TriggerBatch | None = None
    """Many occurrences in one task, with the payload `{"items": […]}`."""
    cron: Cron | None = None
    """Unix cron with five fields."""
    timezone: Zone = "UTC"
    catch_up: Annotated[Duration, Meta(ge=120)] = 600.0
    """How late a slot may start."""
    s3: ObjectsSection | None = None
    event: EventSection | None = None
    webhook: WebhookSection | None = None
    written: Written = {}

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that the trigger names."""
        return tuple(name for name in SOURCES if getattr(self, name) is not None)
