"""The envelope, the whole state of a pipeline with its route, and the frames that a handler gives (`protocol §1`, `§6`, `§7`)."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw

from asya.protocol import headers as header_names
from asya.protocol import ids, names, states
from asya.protocol.exact_json import encode_json
from asya.protocol.states import Phase
from asya.protocol.status import Status, end_phase

_WEIGHTS = {states.RECEIVED: 30, states.PROCESSING: 45, states.COMPLETED: 100}
HIGHEST_BEFORE_END = 99


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A route: the actors that are done (oldest first), the actor at work, and the actors ahead.

    An empty `curr` marks the end of the route.
    """

    prev: tuple[str, ...]
    curr: str
    next: tuple[str, ...]

    @property
    def position(self) -> int:
        """The number of hops done. Id, generation and position together name one hop."""
        return len(self.prev)

    def actor_at(self, position: int) -> str:
        """The actor at a position; empty if the route has none there."""
        actors = (*self.prev, self.curr, *self.next)
        return actors[position] if 0 <= position < len(actors) else ""

    def shifted(self, next_actors: Iterable[str] | None = None) -> "Route":
        """The route after `curr` is done; `next_actors` replaces `next` unless it is None."""
        ahead = self.next if next_actors is None else tuple(next_actors)
        return Route((*self.prev, self.curr), ahead[0] if ahead else "", ahead[1:])


UNKNOWN_HOP = Route((), names.SUMP, ())
"""The route of a failure whose hop is unknown: its message was no envelope, or had no room for its route."""


def progress_percent(route: Route, status: str) -> int:
    """The progress of a task in percent, at most 99: `floor(100·(len(prev)+w) / (len(prev)+1+len(next)))`.

    Args:
        route: the route of the hop before the shift, with `next` as left for frame 0.
        status: received, processing or completed; it selects the weight `w`.
    """
    hops = len(route.prev) + 1 + len(route.next)
    return min(HIGHEST_BEFORE_END, (100 * len(route.prev) + _WEIGHTS[status]) // hops)


NULL = Raw(b"null")
# Keys have four digits for a generation.
GENERATION_LIMIT = 9_999


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder()


class UnknownMembers(dict[str, Raw]):
    """Unknown members of an object, as JSON text.

    JSON never decodes into this type. So a message with a key `extra` or `status_extra` takes the careful pass of the
    codec, like a message with any other unknown key.
    """


NO_UNKNOWN_MEMBERS = UnknownMembers()


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A valid envelope. Its fields are in the order in which the mesh writes them.

    The payload and the headers keep their JSON bytes, so a relay changes nothing. `extra` holds unknown top-level keys,
    `status_extra` unknown keys of the status. Both travel along, to children too.
    """

    id: str
    parent_id: str | None = None
    route: Route
    headers: dict[str, Raw] = {}
    status: Status | None = None
    payload: Raw
    extra: UnknownMembers = NO_UNKNOWN_MEMBERS
    status_extra: UnknownMembers = NO_UNKNOWN_MEMBERS

    @property
    def generation(self) -> int:
        """The generation; 0 if the envelope was never redriven or its header is malformed (`protocol §12`)."""
        value = self.header(header_names.GENERATION)
        return value if type(value) is int and 0 < value <= GENERATION_LIMIT else 0

    @property
    def has_failed(self) -> bool:
        """Whether its status says so; a canceled envelope has not failed."""
        return self.status is not None and self.status.phase == states.FAILED

    @property
    def end_phase(self) -> Phase:
        """Its phase at its end: success unless its status names a phase."""
        return end_phase(self.status)

    @property
    def is_stealth(self) -> bool:
        """Whether the producer turned all reports off (`protocol §3`)."""
        return self.header(header_names.MESH_STATUS) == "off"

    @property
    def root_id(self) -> str | None:
        """The id of the root task; None if the envelope is not a child, or names a root that no task can have."""
        value = self.header(header_names.ROOT)
        return value if ids.is_usable(value) else None

    @property
    def tool(self) -> str | None:
        """The tool that started the task or its root; None if no tool did, or the header holds no name."""
        value = self.header(header_names.TOOL)
        return value if isinstance(value, str) and 0 < len(value) <= header_names.TOOL_LIMIT else None

    def header(self, name: str) -> object:
        """The value of a header; None if the header is absent or null."""
        raw = self.headers.get(name)
        return None if raw is None else _decoder.decode(raw)

    def with_headers(self, changes: dict[str, object]) -> "Envelope":
        """A copy with headers set; the value None removes a header."""
        raws = {name: None if value is None else json_text(value) for name, value in changes.items()}
        return msgspec.structs.replace(self, headers=changed(self.headers, raws))


def changed(members: Mapping[str, Raw], changes: Mapping[str, Raw | None]) -> dict[str, Raw]:
    """A copy of an object's members with some of them set; the value None removes a member."""
    copy = dict(members)
    for name, raw in changes.items():
        if raw is None:
            copy.pop(name, None)
        else:
            copy[name] = raw
    return copy


def json_text(value: object) -> Raw:
    """JSON text of a value that the mesh made; values of users go through `strict_json`."""
    return Raw(encode_json(value))


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One output of a handler, as JSON text.

    Attributes:
        payload: the value that the handler returned or yielded; None stands for the received payload (a fan-out's origin).
        next: `route.next` as the handler left it for this frame; None if the handler did not change it.
        headers: headers that the handler set (JSON text) or deleted (None).
        status: status keys that the handler set (JSON text) or deleted (None).
        alone: whether this is certainly the only frame of its hop.
    """

    payload: Raw | None
    next: tuple[str, ...] | None = None
    headers: dict[str, Raw | None] = {}
    status: dict[str, Raw | None] = {}
    alone: bool = False

    @property
    def opens_set(self) -> bool:
        """Whether the frame is a slice of a set that its handler opened (`protocol §9`)."""
        return self.headers.get(header_names.FAN_IN) is not None
