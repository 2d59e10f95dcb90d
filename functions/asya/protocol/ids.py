"""Derived ids: a redelivery derives the same ids (`protocol §4`)."""

import hashlib
import re
import uuid
from typing import TypeGuard

ID_LIMIT = 256
_NUMBERED_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(-[1-9][0-9]*)*", re.ASCII)


def child_id(envelope_id: str, generation: int, position: int, index: int | str) -> str:
    """The id of a child; the index `error` stands for the failed child of a streamed hop."""
    return _uuid4_of("child", envelope_id, generation, position, index)


def may_number_children(envelope_id: str) -> bool:
    """Whether nobody else has a numbered id of this one: it is a UUID, or a numbered id of one.

    Another sender may have chosen `order-7-1`, and the mesh cannot know.
    """
    return _NUMBERED_UUID.fullmatch(envelope_id) is not None


def suffixed_id(envelope_id: str, index: int) -> str | None:
    """The legacy id of a child, `{id}-{index}` (`protocol §14`); None if it is too long for an id."""
    child = f"{envelope_id}-{index}"
    return child if is_usable(child) else None


def hook_id(envelope_id: str, generation: int, hook: str) -> str:
    """The id of the copy that x-sink sends to a hook (`protocol §11`)."""
    return _uuid4_of("hook", envelope_id, generation, hook)


def set_id(origin_id: str, generation: int, position: int) -> str:
    """The id of the set of slices that an envelope opens at a hop (`protocol §9`)."""
    return _uuid4_of("set", origin_id, generation, position)


def repeat_id(old_set_id: str, what: str, number: int) -> str:
    """The id of the task that repeats a set (`protocol §12.set`)."""
    return _uuid4_of("repeat", old_set_id, what, number)


def id_of_message(message_id: str) -> str:
    """The id of an envelope without a usable id, derived from its SQS message id."""
    return _uuid4_of("message", message_id)


def is_usable(value: object) -> TypeGuard[str]:
    """Whether a value can be an envelope id: a string of 1 to 256 bytes of UTF-8."""
    return isinstance(value, str) and 0 < len(value.encode("utf-8", "surrogatepass")) <= ID_LIMIT


def _uuid4_of(*parts: object) -> str:
    # Length prefixes keep different lists of parts from making the same text.
    text = "".join(f"{len(str(part))}:{part}" for part in parts)
    digest = bytearray(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16])
    digest[6] = (digest[6] & 0x0F) | 0x40
    digest[8] = (digest[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))
