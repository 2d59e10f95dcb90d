"""Who may say what to a function with a queue, as data (`protocol §4.statements`).

A message on a queue is a *statement*: an envelope goes on, a task has ended, a slice is lost. Each capability declares the
statements that its functions hear, in `statements.py` beside its manifest, and the functions themselves read the declaration.
SQS vouches for the role of a sender, and the list of roles tells its function. What a role shared with code of users says is
not believed for that alone: `shown` names what else shows it.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

import msgspec

from asya.protocol import names
from asya.protocol.mesh_table import Actor, MeshTable

REDRIVES = names.GATEWAY_API
"""Sends dead letters again, so it may say what is heard there. For a letter its first sender counts (`protocol §12.redrive`)."""
UNLISTED = "x-unlisted"
"""Stands for the function of a sender while the list of roles is not complete: it may be any (`protocol §4.roles.first`)."""


class Speaker(Enum):
    """Senders that only the actor table knows. Other functions of the mesh are named one by one."""

    OUTSIDE = "a sender outside"
    CODE = "an actor with code of users"
    HEAVY = "a heavy actor"
    PAUSE = "a pause actor"
    CONTINUING = "an actor that continues routes (wait, fan-in)"
    OTHER_VERSION = "an actor that only another version of the mesh has"
    ITSELF = "the function itself"
    SUBJECT = "the actor that it is about"


class Proof(Enum):
    """What shows a statement, besides the role of its sender."""

    ROLE = "the role, which runs no code of users"
    EDGE = "an edge of the mesh file to the actor; the task is not checked"
    CLAIM = "the claim on the id of the task"
    KEY = "the key of the task"
    SERVICE = "the service of AWS, which the function asks"
    POLICY = "the policy of the queue"


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """What a message on a queue says.

    Attributes:
        name: its name, unique on its queue.
        text: what the sender does by it: `end a task`. `{about}` stands for the actor that it is about.
        by: who may say it by its role alone: functions by name, and groups of functions without code of users.
        shown: who else may say it, and what shows it.
        queue: the queue, if the function has several.
    """

    name: str
    text: str
    by: tuple[Speaker | str, ...] = ()
    shown: Mapping[Speaker, Proof] = msgspec.field(default_factory=dict)
    queue: str | None = None


def speaker_of(mesh: MeshTable, function: str | None) -> Speaker | None:
    """The group of a sender by the actor table; None for a function that statements name.

    Args:
        function: the function whose role has sent a message; None for a sender outside.
    """
    if function is None:
        return Speaker.OUTSIDE
    if (spec := mesh.actors.get(function)) is not None:
        return _speaker_of_actor(spec)
    return None if names.runner_of(function) in names.SYSTEM_FUNCTIONS else Speaker.OTHER_VERSION


def _speaker_of_actor(spec: Actor) -> Speaker | None:
    if spec.kind == "crew":
        return None
    if not spec.continues:
        return Speaker.HEAVY if spec.kind == "spark" else Speaker.CODE
    return Speaker.PAUSE if spec.kind == "pause" else Speaker.CONTINUING


def proof_of(
    statement: Statement, mesh: MeshTable, function: str | None, *, at: str = "", about: str | None = None
) -> Proof | None:
    """What has to show a statement of a sender; None if it may not say it.

    Args:
        function: the function whose role has sent the message; None for a sender outside.
        at: the function that hears the statement.
        about: the actor that the statement is about.
    """
    if function == UNLISTED:
        return Proof.ROLE
    speaker = speaker_of(mesh, function)
    found = {function, speaker}
    if function is not None:
        found |= {Speaker.ITSELF} if function == at else set()
        found |= {Speaker.SUBJECT} if function == about else set()
    if not found.isdisjoint(statement.by):
        return Proof.ROLE
    # Such an actor may have code of users.
    found |= {Speaker.CODE} if speaker is Speaker.OTHER_VERSION else set()
    return next((proof for each, proof in statement.shown.items() if each in found), None)


def named_in(heard: Iterable[Statement], at: str) -> frozenset[str]:
    """The functions by name that may say something by their role alone.

    Args:
        at: the function that hears the statements.
    """
    found = {who for each in heard for who in each.by}
    named = {who for who in found if isinstance(who, str)}
    return frozenset(named | {at} if Speaker.ITSELF in found else named)


def problem(
    statement: Statement, mesh: MeshTable, function: str | None, *, at: str = "", about: str | None = None
) -> str | None:
    """Why a statement of this sender does not count; None if it may say it. The arguments are those of `proof_of`."""
    if proof_of(statement, mesh, function, at=at, about=about) is not None:
        return None
    who = function if function is not None else Speaker.OUTSIDE.value
    return f"{who} may not {statement.text.format(about=about or 'no actor')}"
