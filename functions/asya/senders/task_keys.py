"""Checks the key of what enters a function, and gives keys to what leaves it (`protocol §4.keys`).

A function without code of users removes the key of a message at its door, once it has checked it, and seals what it sends. So
nothing in it shows, stores or logs a key. A function with code of users passes keys on unread.
"""

from collections.abc import Callable
from itertools import islice

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.function.hop import Arrival, Delivery
from asya.protocol import ids, task_key
from asya.protocol.codec import ParseError, decode, encode
from asya.protocol.envelope import UNKNOWN_HOP, Envelope
from asya.protocol.headers import KEY
from asya.protocol.mesh_table import MeshTable
from asya.protocol.slices import slice_header
from asya.protocol.task_key import Subject, TaskKey, WrongKeyError
from asya.senders.statements import Speaker, speaker_of

PLACES_LIMIT = 20_000
"""The most hops of an envelope, those of all its generations, that are looked at for the sets that it may have opened."""


def runs_code(mesh: MeshTable, function: str) -> bool:
    """Whether the role of a function is that of code of users; so it is for an actor that the mesh no longer has."""
    return speaker_of(mesh, function) in (Speaker.CODE, Speaker.OTHER_VERSION)


class EntryKeys(msgspec.Struct, frozen=True):
    """The keys of a function with code of users.

    Attributes:
        actor: its actor.
        secret: the secret of the actor, which a process reads once, when the first message enters.
    """

    actor: str
    secret: Callable[[], bytes]

    def enter(self, envelope: Envelope, message_id: str) -> Envelope:
        """The first envelope of a message that enters here, without a parent: nothing shows that it has one.

        One of the mesh that bears a key keeps it, unread.
        """
        if KEY in envelope.headers:
            return envelope
        return task_key.entered(replace(envelope, parent_id=None), self.secret(), self.actor, message_id)

    def seal(self, delivery: Delivery) -> Delivery:
        """The delivery as it is: what leaves bears the key with which it came, or one that derives from it."""
        return delivery

    def sealed(self, body: bytes) -> bytes:
        """The message as it is."""
        return body


class MeshKeys(msgspec.Struct, frozen=True):
    """The keys of a function without code of users.

    Attributes:
        secret: the secret of the mesh, which a process reads once.
        has_entered_at: whether the message with an id has entered the mesh at an actor.
        numbers_children: whether the children of an id have its numbered ids (`protocol §14.child_ids`).
    """

    secret: Callable[[], bytes]
    has_entered_at: Callable[[str, str], bool]
    numbers_children: Callable[[str], bool]

    def enter(self, envelope: Envelope, _message_id: str) -> Envelope:
        """The first envelope of a message that enters here: it gets its key when it leaves."""
        return envelope

    def check(self, envelope: Envelope) -> None:
        """Check that the sender of an envelope holds its task.

        Raises:
            WrongKeyError: it does not.
            ClientError, BotoCoreError: the table cannot be read.
        """
        key = self.check_subject(envelope.headers.get(KEY), task_key.subject_of(envelope))
        check_places(envelope, key.own_place)

    def check_subject(self, raw: Raw | None, subject: Subject) -> TaskKey:
        """The key of an envelope or of a report, checked.

        Raises:
            WrongKeyError: it is not that of the subject.
            ClientError, BotoCoreError: the table cannot be read.
        """
        key = task_key.verified(self.secret(), raw, subject)
        root = task_key.root_of(key, subject)
        if key.entry is not None and key.message is None and not self.has_entered_at(root, key.entry):
            raise WrongKeyError(f"task {root!r} has not entered the mesh at {key.entry!r}")
        for step in key.path:
            if step.position is None and not self.numbers_children(step.parent_id):
                raise WrongKeyError(f"{step.child_id(subject.generation)!r} is no child of {step.parent_id!r}")
        return key

    def seal(self, delivery: Delivery) -> Delivery:
        """The delivery with the key of its envelope."""
        return replace(delivery, body=self.sealed(delivery.body))

    def sealed(self, body: bytes) -> bytes:
        """The message with the key of its envelope; as it is without an envelope."""
        try:
            envelope = decode(body)
        except ParseError:
            return body
        return encode(task_key.sealed(envelope, self.secret()))


def check_places(envelope: Envelope, place: str) -> None:
    """Check that the sets of an envelope are its own: those that it has opened, and its place in one that its parent has opened.

    Args:
        place: its place, as who gave it the place says.

    Raises:
        WrongKeyError: a set belongs to another task.
    """
    try:
        header = slice_header(envelope)
    except ValueError:
        return  # it counts in no set
    own = _Sets(envelope, envelope.id)
    while header is not None:
        is_origin = header.slice_index == 0
        origin_id = envelope.id if is_origin else envelope.parent_id
        sets = own if is_origin else _Sets(envelope, header.origin_id)
        if header.origin_id != origin_id or header.set_id not in sets:
            raise WrongKeyError(f"set {header.set_id!r} is not one of {envelope.id!r}")
        if not is_origin and header.place != place:
            raise WrongKeyError(f"slice {header.slice_index} of set {header.set_id!r} is not {envelope.id!r}")
        header = header.enclosing if is_origin else None


class _Sets:
    """The sets that an origin can have opened, in the generation of an envelope or an earlier one, at hops behind the envelope.

    The search goes from the latest to the first. It is bounded, and the nested headers of one origin share it: generation, route
    and headers are what their sender writes.
    """

    def __init__(self, envelope: Envelope, origin_id: str) -> None:
        # Its own hop may have opened the set, if the hop failed afterwards.
        hops = task_key.PATH_LIMIT if envelope.route == UNKNOWN_HOP else envelope.route.position + 1
        every = (
            ids.set_id(origin_id, generation, position)
            for generation in reversed(range(envelope.generation + 1))
            for position in reversed(range(hops))
        )
        self._ahead = islice(every, PLACES_LIMIT)
        self._behind = set[str]()

    def __contains__(self, set_id: str) -> bool:
        if set_id in self._behind:
            return True
        for each in self._ahead:
            self._behind.add(each)
            if each == set_id:
                return True
        return False


def unsealed(arrival: Arrival, envelope: Envelope) -> Arrival:
    """The message without the key of its envelope."""
    return replace(arrival, body=encode(task_key.without_key(envelope))) if KEY in envelope.headers else arrival


def unsealed_body(arrival: Arrival) -> bytes:
    """The body of a message as it is kept: without a key, but of one that is no envelope as it came."""
    try:
        return unsealed(arrival, arrival.envelope()).body
    except ParseError:
        return arrival.body
