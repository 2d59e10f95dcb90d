"""The S3 keys of results and of copies in the mesh's bucket, and buckets with a prefix (`protocol §11`)."""

import hashlib
import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from asya.protocol import states
from asya.protocol.envelope import Envelope
from asya.protocol.headers import is_managed
from asya.protocol.mesh_table import Sink
from asya.protocol.names import LABEL_LIMIT
from asya.protocol.status import end_phase
from asya.protocol.times import format_time, parse_time


@dataclass(frozen=True)
class S3Prefix:
    """A bucket and a prefix in it. The prefix is empty or ends with a slash."""

    bucket: str
    prefix: str

    @classmethod
    def from_uri(cls, uri: str) -> "S3Prefix":
        """Parse `s3://bucket/prefix/`."""
        parts = urlsplit(uri)
        return cls(parts.netloc, parts.path.lstrip("/"))

    @property
    def uri(self) -> str:
        """The prefix in the form `s3://bucket/prefix/`."""
        return f"s3://{self.bucket}/{self.prefix}"


DATA_PREFIX = "data/"
RESULTS_PREFIX = "results/"
# Among the results.
SUMP_PREFIX = "sump/"
CANCELED_PREFIX = "canceled/"
PAUSED_PREFIX = "paused/"
CHECKPOINT_PREFIX = "checkpoint/"
SUPERSEDED_PREFIX = "superseded/"
# In the mesh's own bucket, beside these two.
PAYLOADS_PREFIX = "payloads/"
INBOX_PREFIX = "inbox/"
SLICES_PREFIX = "slices/"
BUFFERED_PREFIX = "buffered/"
INPUTS_PREFIX = "hops/"
DEAD_LETTERS_PREFIX = "dlq/"
PAUSES_PREFIX = "paused/"
WAITS_PREFIX = "waiting/"
REPORTS_PREFIX = "reports/"
REFUSED_REPORTS_PREFIX = f"{REPORTS_PREFIX}refused/"

_INPUT_NAME = re.compile(r"(0|[1-9][0-9]{0,3})/(0|[1-9][0-9]{0,8})\.([a-z0-9-]+)\.json")

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_SINGLE_DOT_WITHIN = re.compile(r"(?<=[^.])\.(?=[^.])")


def safe_segment(text: str) -> str:
    """Percent-encode all but `[A-Za-z0-9_-]` and single inner dots, so no id escapes its prefix."""
    inner_dots = {match.start() for match in _SINGLE_DOT_WITHIN.finditer(text)}
    return "".join(
        character if index in inner_dots or not _UNSAFE.match(character) else _percent(character)
        for index, character in enumerate(text)
    )


def result_key(envelope: Envelope, sink: Sink) -> str:
    """The key under which x-sink writes this envelope, by its phase and the layout of the mesh.

    The layout `by-id` is `{prefix}{id}.json`; `by-time` is `{prefix}{updated_at}/{last_actor}/{id}.json`.
    """
    status = envelope.status
    phase = status.phase if status else states.SUCCEEDED
    if phase == states.CANCELED:
        return canceled_key(envelope.id)
    name = f"{safe_segment(envelope.id)}.json"
    if phase == states.PAUSED:
        return PAUSED_PREFIX + name
    prefix = sink.failed_prefix if phase == states.FAILED else sink.succeeded_prefix
    if sink.layout == "by-time":
        ended_at = status.updated_at if status else None
        timestamp = format_time(parse_time(ended_at)) if ended_at else "unknown"
        return f"{prefix}{timestamp}/{last_actor(envelope)}/{name}"
    return prefix + name


def canceled_key(envelope_id: str) -> str:
    """The key of a canceled envelope, in every layout."""
    return f"{CANCELED_PREFIX}{safe_segment(envelope_id)}.json"


def task_of_key(key: str) -> str | None:
    """The id of the task whose result, or copy, has a key; None if the key is none of an end actor."""
    if not key.endswith(".json"):
        return None
    for prefix in (SUPERSEDED_PREFIX, CHECKPOINT_PREFIX):
        if key.startswith(prefix):
            return unquote(key.removeprefix(prefix).partition("/")[0])
    return unquote(key.rpartition("/")[2].removesuffix(".json"))


def sump_key(envelope_id: str) -> str:
    """The key of x-sump's copy."""
    return f"{SUMP_PREFIX}{safe_segment(envelope_id)}.json"


def superseded_key(envelope: Envelope) -> str:
    """The key of an end that does not count, by its hop, its phase and a digest of what it holds.

    Times, spans and other managed headers are not part of the digest, so a redelivery has the same key.
    """
    end = envelope.status
    phase = end_phase(end)
    users = {name: value for name, value in envelope.headers.items() if not is_managed(name)}
    parts = (envelope.route, users, envelope.payload, end.reason if end else None, end.error if end else None)
    digest = hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()
    hop = f"{safe_segment(envelope.id)}/{envelope.generation}/{envelope.route.position}"
    return f"{SUPERSEDED_PREFIX}{hop}-{phase}-{digest[:32]}.json"


def refused_reports_key(message_id: str) -> str:
    """The key of the refused reports of one message (`protocol §5`, reports)."""
    return f"{REFUSED_REPORTS_PREFIX}{safe_segment(message_id)}.json"


def checkpoint_key(envelope: Envelope) -> str:
    """The key of x-checkpoint's copy at this position."""
    return f"{CHECKPOINT_PREFIX}{safe_segment(envelope.id)}/{envelope.route.position}.json"


def hop_key(prefix: str, envelope: Envelope, fingerprint: str = "") -> str:
    """The key of an object that belongs to a hop, by id, generation and position.

    Args:
        fingerprint: what tells the envelope from a forged one; empty if nobody can forge it here.
    """
    name = f"{envelope.route.position}-{fingerprint}" if fingerprint else f"{envelope.route.position}"
    return f"{prefix}{safe_segment(envelope.id)}/{envelope.generation}/{name}.json"


class InputName(NamedTuple):
    """What the key of a kept input says: the hop, and the actor that alone may write it."""

    generation: int
    position: int
    actor: str


def inputs_folder(envelope_id: str) -> str:
    """The folder of an envelope's kept inputs."""
    return f"{INPUTS_PREFIX}{safe_segment(envelope_id)}/"


def input_key(envelope: Envelope, actor: str) -> str:
    """The key of the input that an actor keeps of an envelope.

    The name of the actor is between the last two dots, because a role may write `hops/*.{actor}.json`, and a name has no dots.
    """
    return f"{inputs_folder(envelope.id)}{envelope.generation}/{envelope.route.position}.{actor}.json"


def read_input_name(name: str) -> InputName | None:
    """Read the key of a kept input below the folder of its envelope; None for any other name."""
    match = _INPUT_NAME.fullmatch(name)
    return InputName(int(match[1]), int(match[2]), match[3]) if match is not None else None


def buffered_prefix(actor: str) -> str:
    """The key prefix of the buffered frames of an actor's hops."""
    return f"{BUFFERED_PREFIX}{actor}/"


def pause_key(envelope_id: str, generation: int, epoch: int) -> str:
    """The key of an envelope that paused at this position (`epoch`)."""
    return f"{PAUSES_PREFIX}{safe_segment(envelope_id)}/{generation}/{epoch}.json"


def wait_key(envelope_id: str, generation: int, position: int, attempt: int) -> str:
    """The key of an envelope that waits at this position before, or instead of, this attempt."""
    return f"{WAITS_PREFIX}{safe_segment(envelope_id)}/{generation}/{position}-{attempt}.json"


def last_actor(envelope: Envelope) -> str:
    """The last actor of an envelope, encoded for a key."""
    return safe_segment(last_actor_name(envelope))


def last_actor_name(envelope: Envelope) -> str:
    """The last actor of an envelope: `curr`, or the last of `prev` if `curr` is empty, or `unknown`.

    A sender may write any text there. What is longer than the name of an actor would exceed the metadata of S3, and its keys.
    """
    route = envelope.route
    name = route.curr or (route.prev[-1] if route.prev else "")
    return name if 0 < len(name.encode("utf-8", "surrogatepass")) <= LABEL_LIMIT else "unknown"


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
