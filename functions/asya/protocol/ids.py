"""The ids that the mesh makes: a redelivery derives the same ones, and no sender outside may use them (`protocol §4`)."""

import hashlib
import re
import uuid
from typing import TypeGuard

from asya.protocol.table_keys import OUTAGE_KEY

ID_LIMIT = 256
ALLOWED = "an id has none of / \\ ? # %, no control characters and no line separators, begins with no '-', and is not '.' or '..'"
"""Which ids there may be, in the words of an error."""
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_REFUSED = re.compile(r"[/\\?#%\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_OF_THE_MESH = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(-[1-9][0-9]*)*", re.ASCII | re.IGNORECASE
)


def child_id(envelope_id: str, generation: int, position: int, index: int | str) -> str:
    """The id of a child; the index `error` stands for the failed child of a streamed hop."""
    return _uuid_of("child", envelope_id, generation, position, index)


def hook_id(envelope_id: str, generation: int, hook: str) -> str:
    """The id of the copy that x-sink sends to a hook (`protocol §11`)."""
    return _uuid_of("hook", envelope_id, generation, hook)


def set_id(origin_id: str, generation: int, position: int) -> str:
    """The id of the set of slices that an envelope opens at a hop (`protocol §9`)."""
    return _uuid_of("set", origin_id, generation, position)


def repeat_id(old_set_id: str, what: str, number: int) -> str:
    """The id of the task that repeats a set (`protocol §12.set`)."""
    return _uuid_of("repeat", old_set_id, what, number)


def occurrence_id(trigger: str, key: str) -> str:
    """The id of the task that an occurrence of a trigger starts (`protocol §16`)."""
    return _uuid_of("trigger", trigger, key)


def backfill_id(owner: str, key: str) -> str:
    """The id of the backfill that an idempotency key of an owner begins (`protocol §16.backfill`)."""
    return _uuid_of("backfill", owner, key)


def id_of_message(message_id: str) -> str:
    """The id of an envelope without a usable id, derived from its SQS message id."""
    return _uuid_of("message", message_id)


def mesh_id(content: bytes) -> str:
    """The id of the mesh with this content, 16 bytes: a UUID version 8, which RFC 9562 leaves to applications."""
    octets = bytearray(content)
    octets[6] = (octets[6] & 0x0F) | 0x80
    octets[8] = (octets[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(octets)))


def is_reserved(envelope_id: str) -> bool:
    """Whether only the mesh gives out such ids, so that no sender outside can take the id of a task or of its children."""
    return _OF_THE_MESH.fullmatch(envelope_id) is not None


def is_usable(value: object) -> TypeGuard[str]:
    """Whether a value can be an envelope id (`protocol §1.id`)."""
    return isinstance(value, str) and problem_of(value) is None


def problem_of(envelope_id: str) -> str | None:
    """Say why an envelope may not have an id, behind the word `id` (`protocol §1.id.characters`).

    Every other id is one part of a path, of a link and of a key, whoever decodes it, and an argument of a command.

    Returns:
        What is wrong with it; None for a usable one.
    """
    if envelope_id == OUTAGE_KEY:  # IAM would refuse the claim on its end
        return "is a key of the mesh's own tables; choose another one"
    if _PLAIN.fullmatch(envelope_id) is not None:
        return None
    if not envelope_id:
        return "is empty"
    if (size := len(envelope_id.encode("utf-8", "surrogatepass"))) > ID_LIMIT:
        return f"has {size} bytes; {ID_LIMIT} at most"
    if (refused := _REFUSED.search(envelope_id)) is not None:
        what = f"has {refused[0]!a}"
    elif envelope_id.startswith("-"):
        what = "begins with '-'"
    elif envelope_id in (".", ".."):
        what = f"is {envelope_id!r}"
    else:
        return None
    return f"{what}; {ALLOWED}"


def _uuid_of(*parts: object) -> str:
    # Length prefixes keep different lists of parts from making the same text.
    text = "".join(f"{len(str(part))}:{part}" for part in parts)
    return mesh_id(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16])
