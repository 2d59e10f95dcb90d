"""The envelope in memory: the whole state of a pipeline (`protocol §1`)."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from asya.protocol import headers as header_names
from asya.protocol.route import Route
from asya.protocol.status import Status

NULL = Raw(b"null")
# With as many digits as the keys made of a generation have.
GENERATION_LIMIT = 9_999


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder()


class UnknownMembers(dict[str, Raw]):
    """Members of an object that are not ours, as the JSON text they came in.

    As a type of its own it is nothing that JSON can hold: so a message with a key of the name of such a field does not decode into
    an `Envelope` at once, like one with any other unknown key.
    """


NO_UNKNOWN_MEMBERS = UnknownMembers()


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A message that parsed: what it may hold, in the order that people read it in.

    The payload and every header are kept as the JSON bytes they came in, so that a relay changes nothing. `extra` holds
    unknown top-level keys, `status_extra` unknown keys of the status; both are carried along, to children too.
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
        """0 but for redriven envelopes (`protocol §12`); a header that is no such number counts as 0."""
        value = self.header(header_names.GENERATION)
        return value if type(value) is int and 0 < value <= GENERATION_LIMIT else 0

    @property
    def is_stealth(self) -> bool:
        """Whether the producer switched all reporting off (`protocol §3`)."""
        return self.header(header_names.MESH_STATUS) == "off"

    @property
    def root_id(self) -> str | None:
        """The task that the whole tree belongs to, on children only."""
        value = self.header(header_names.ROOT)
        return value if isinstance(value, str) and value else None

    def header(self, name: str) -> object:
        """The value of a header; None if it is absent or null."""
        raw = self.headers.get(name)
        return None if raw is None else _decoder.decode(raw)

    def with_headers(self, changes: dict[str, object]) -> "Envelope":
        """A copy with headers set, or removed where the new value is None."""
        raws = {name: None if value is None else json_text(value) for name, value in changes.items()}
        return msgspec.structs.replace(self, headers=changed(self.headers, raws))


def changed(members: Mapping[str, Raw], changes: Mapping[str, Raw | None]) -> dict[str, Raw]:
    """A copy with members set, or removed where the new one is None."""
    copy = dict(members)
    for name, raw in changes.items():
        if raw is None:
            copy.pop(name, None)
        else:
            copy[name] = raw
    return copy


def json_text(value: object) -> Raw:
    """A value of ours as JSON; what users make goes through `strict_json`."""
    return Raw(_encoder.encode(value))
