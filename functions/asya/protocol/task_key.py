"""The key of a task: shows that who speaks about an envelope holds it (`protocol §4.keys`).

A message authentication code stands for an id in a generation. That of a root comes from a secret: the mesh's, or that of the
actor at which a message has entered. That of a child comes from its parent's code, so an actor derives it without a secret.
"""

import hashlib
import hmac

import msgspec
from msgspec import Raw

from asya.protocol import headers, ids
from asya.protocol.envelope import Envelope, json_text
from asya.protocol.slices import own_place

SECRET_BYTES = 32
PATH_LIMIT = 1_000
"""The most ids between a root and a child. Each one is a hop, so only a mesh with more `max_hops` could have more."""


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a child derives from its parent. Without it the holder of any task could call each other one its child.

    Attributes:
        parent_id: the id of the parent.
        position: that of the parent's hop; None for a child with a numbered id (`protocol §14.child_ids`).
        index: the index of the frame, or `error` for the failed child of a streamed hop.
        place: the place of the child in the set that its parent has opened; empty for a child that is no slice.
    """

    parent_id: str
    position: int | None
    index: int | str
    place: str = ""

    def child_id(self, generation: int) -> str:
        """The id of the child."""
        if self.position is None:
            return f"{self.parent_id}-{self.index}"
        return ids.child_id(self.parent_id, generation, self.position, self.index)

    @property
    def is_possible(self) -> bool:
        """Whether a hop can give a child this id. Text behind an id of a sender could make each id that the mesh gives out."""
        if self.position is not None:
            return True
        is_number = isinstance(self.index, int) and self.index > 0
        return is_number and (ids.is_reserved(self.parent_id) or not ids.is_reserved(self.child_id(0)))


class TaskKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The header `x-asya-key`.

    Attributes:
        mac: the code of the envelope's own id, 64 hexadecimal digits.
        path: how the envelope derives from the root; empty if it is the root.
        parent: the parent of the root; None without one, as where it has entered the mesh.
        entry: the actor where the root has entered the mesh; None if a function without code of users vouches for it.
        message: the SQS message id from which the id of the root derives; None if its sender has chosen the id.
        place: the place of the root in a set, as in `Step`.
    """

    mac: str
    path: tuple[Step, ...] = ()
    parent: str | None = None
    entry: str | None = None
    message: str | None = None
    place: str = ""

    @property
    def own_place(self) -> str:
        """The place of the envelope itself in the set of its parent."""
        return self.path[-1].place if self.path else self.place


class WrongKeyError(ValueError):
    """The sender of an envelope or of a report does not hold its task."""


class Subject(msgspec.Struct, frozen=True, gc=False):
    """What a key is about.

    Attributes:
        parent_id: None if the envelope has no parent; unset if a report does not name it.
    """

    id: str
    generation: int = 0
    parent_id: str | msgspec.UnsetType | None = None


_decoder = msgspec.json.Decoder(TaskKey)


def subject_of(envelope: Envelope) -> Subject:
    """What the key of an envelope is about."""
    return Subject(envelope.id, envelope.generation, envelope.parent_id)


def actor_secret(secret: bytes, actor: str) -> bytes:
    """The secret with which an actor vouches for the messages that enter at it."""
    return _code(secret, "actor", actor)


def sealed(envelope: Envelope, secret: bytes) -> Envelope:
    """The envelope with the key of the mesh, from a function that has checked it, or has made it."""
    key = TaskKey(mac="", parent=envelope.parent_id, place=own_place(envelope))
    mac = _root_code(secret, envelope.id, envelope.generation, key)
    return _with(envelope, json_text(msgspec.structs.replace(key, mac=mac.hex())))


def entered(envelope: Envelope, secret: bytes, actor: str, message_id: str) -> Envelope:
    """The first envelope of a message that enters at an actor with code of users.

    Args:
        secret: that of the actor.
        message_id: the SQS message id.
    """
    message = message_id if envelope.id == ids.id_of_message(message_id) else None
    key = TaskKey(mac="", parent=envelope.parent_id, entry=actor, message=message)
    mac = _root_code(secret, envelope.id, envelope.generation, key)
    return _with(envelope, json_text(msgspec.structs.replace(key, mac=mac.hex())))


def child_key(parent: Envelope, step: Step) -> Raw | None:
    """The key of a child; None if the parent bears none. A function with the secret seals the child when it sends it."""
    raw = parent.headers.get(headers.KEY)
    if raw is None:
        return None
    try:
        key = _decoder.decode(raw)
        mac = _child_code(bytes.fromhex(key.mac), step)
    except ValueError:
        return raw  # the function that checks it says what is wrong
    return json_text(msgspec.structs.replace(key, mac=mac.hex(), path=(*key.path, step)))


def without_key(envelope: Envelope) -> Envelope:
    """The envelope without its key."""
    return _with(envelope, None) if headers.KEY in envelope.headers else envelope


def verified(secret: bytes, raw: Raw | None, subject: Subject) -> TaskKey:
    """The key of an envelope or of a report, checked without a call.

    Args:
        raw: the header; None without one.

    Raises:
        WrongKeyError: the key is missing, malformed, or that of another task.
    """
    if raw is None:
        raise WrongKeyError(f"it bears no {headers.KEY}")
    try:
        key = _decoder.decode(raw)
        given = bytes.fromhex(key.mac)
    except ValueError:
        raise WrongKeyError(f"headers.{headers.KEY} is malformed") from None
    if len(key.path) > PATH_LIMIT:
        raise WrongKeyError(f"headers.{headers.KEY} has {len(key.path)} ids; {PATH_LIMIT} at most")
    root = root_of(key, subject)
    if key.entry is not None and key.parent is not None:
        raise WrongKeyError(f"task {root!r} has entered the mesh, and what enters has no parent")
    if key.entry is not None and ids.is_reserved(root) and not _is_of_message(root, key.message):
        raise WrongKeyError(f"task {root!r} has not entered the mesh at {key.entry!r}")
    code = _root_code(secret if key.entry is None else actor_secret(secret, key.entry), root, subject.generation, key)
    reached = root
    for step in key.path:
        if step.parent_id != reached or not step.is_possible:
            raise WrongKeyError(f"headers.{headers.KEY} does not lead from {root!r} to {subject.id!r}")
        code, reached = _child_code(code, step), step.child_id(subject.generation)
    if reached != subject.id or not hmac.compare_digest(code, given):
        raise WrongKeyError(f"headers.{headers.KEY} is not that of {subject.id!r} in generation {subject.generation}")
    parent = key.path[-1].parent_id if key.path else key.parent
    if subject.parent_id is not msgspec.UNSET and subject.parent_id != parent:
        raise WrongKeyError(f"{subject.parent_id!r} is not the parent of {subject.id!r}")
    return key


def root_of(key: TaskKey, subject: Subject) -> str:
    """The id that the secret of a key stands for."""
    return key.path[0].parent_id if key.path else subject.id


def fingerprint(envelope: Envelope) -> str:
    """What tells an envelope from a forged one with its id, in marks and stored frames; empty without a key."""
    raw = envelope.headers.get(headers.KEY)
    return hashlib.sha256(raw).hexdigest()[:16] if raw is not None else ""


def _is_of_message(envelope_id: str, message_id: str | None) -> bool:
    return message_id is not None and envelope_id == ids.id_of_message(message_id)


def _root_code(secret: bytes, root_id: str, generation: int, key: TaskKey) -> bytes:
    kind = "task" if key.entry is None else "raw"
    return _code(secret, kind, root_id, generation, key.parent or "", key.message or "", key.place)


def _child_code(parent_code: bytes, step: Step) -> bytes:
    position = "" if step.position is None else step.position
    return _code(parent_code, "child", step.parent_id, position, step.index, step.place)


def _code(secret: bytes, *parts: object) -> bytes:
    # Length prefixes keep different lists of parts from making the same text.
    text = "".join(f"{len(str(part))}:{part}" for part in parts)
    return hmac.digest(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256)


def _with(envelope: Envelope, raw: Raw | None) -> Envelope:
    own = dict(envelope.headers)
    if raw is None:
        own.pop(headers.KEY, None)
    else:
        own[headers.KEY] = raw
    return msgspec.structs.replace(envelope, headers=own)
