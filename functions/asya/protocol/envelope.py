"""The envelope in memory: the whole state of a pipeline (`protocol §1`)."""

import msgspec
from msgspec import Raw

from asya.protocol import headers as header_names
from asya.protocol.route import Route
from asya.protocol.status import Status

NULL = Raw(b"null")
# With as many digits as the keys made of a generation have.
GENERATION_LIMIT = 9_999


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A message that parsed.

    The payload and every header are kept as the JSON bytes they came in, so that a relay changes nothing. `extra` holds
    unknown top-level keys, `status_extra` unknown keys of the status; both are carried along, to children too.
    """

    id: str
    route: Route
    payload: Raw
    parent_id: str | None = None
    headers: dict[str, Raw] = {}
    status: Status | None = None
    extra: dict[str, Raw] = {}
    status_extra: dict[str, Raw] = {}

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
        return None if raw is None else msgspec.json.decode(raw)

    def with_headers(self, changes: dict[str, object]) -> "Envelope":
        """A copy with headers set, or removed where the new value is None."""
        changed = dict(self.headers)
        for name, value in changes.items():
            if value is None:
                changed.pop(name, None)
            else:
                changed[name] = Raw(msgspec.json.encode(value))
        return msgspec.structs.replace(self, headers=changed)
