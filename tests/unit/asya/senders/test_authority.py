"""protocol §1.authority: an actor runs only if a chain of allowed edges leads to it, in meshes and routes made up at random."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, json

from asya.function.hop import Arrival, Hop
from asya.function.targets import TargetError, actual_actor, check_way
from asya.protocol import headers, names
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.mesh_table import Actor, FanIn, MeshTable
from asya.protocol.pause import Pause
from asya.protocol.wait import Wait
from asya.senders.authority import check_sender, is_trusted

USERS = ("intake", "model", "clerk", "payout")
NODES = ("approve", "nap", "gather")
CREW = ("x-pause", "x-resume", "x-checkpoint", "x-fan-in")
EVERYBODY = (*USERS, *NODES, *CREW)
SENDERS = (*USERS, None, "x-own-capability", "removed")

_targets = st.none() | st.lists(st.sampled_from(EVERYBODY), max_size=3, unique=True).map(tuple)
_led = st.lists(st.sampled_from((*USERS, *NODES)), max_size=1).map(tuple)


@st.composite
def meshes(draw: st.DrawFn) -> MeshTable:
    """A mesh with actors of users, a pause, a wait, a fan-in actor and the crew, with edges at random."""
    actors = {
        name: Actor(kind="handler", handler="m.h", can_send_to=draw(_targets), leads_to=draw(_led)) for name in USERS
    }
    actors["approve"] = Actor(kind="pause", pause=Pause(), can_send_to=draw(_targets))
    actors["x-pause"] = Actor(kind="pause", pause=Pause(), can_send_to=draw(_targets))
    actors["nap"] = Actor(kind="wait", wait=Wait(seconds=60), can_send_to=draw(_targets))
    actors |= {
        name: Actor(kind="fan_in", fan_in=FanIn(), can_send_to=draw(_targets)) for name in ("gather", "x-fan-in")
    }
    actors |= {name: Actor(kind="crew") for name in ("x-resume", "x-checkpoint")}
    return MeshTable(namespace="bank", actors=actors)


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    """An envelope with a route at random, which its sender has written, and perhaps an override."""
    way = draw(st.lists(st.sampled_from(EVERYBODY), min_size=1, max_size=6))
    override = draw(st.dictionaries(st.sampled_from(EVERYBODY), st.sampled_from(EVERYBODY), max_size=2))
    own = {headers.ROUTE_OVERRIDE: Raw(json.encode(override))} if override else {}
    return Envelope(id="t", route=Route(("somewhere",), way[0], tuple(way[1:])), headers=own, payload=NULL)


@dataclass
class Journey:
    """Follows an envelope through the crew as the functions do: each one checks its sender, or trusts it."""

    mesh: MeshTable

    def runs(self, envelope: Envelope, sender: str | None) -> Iterator[str]:
        """Yield each actor that takes the envelope, up to the first one with code of users."""
        while envelope.route.curr:
            actor = actual_actor(envelope, envelope.route.curr)
            spec = self.mesh.actors[actor]
            hop = Hop.of(envelope, actor, spec, self.mesh, Arrival(b"", "m", datetime(2026, 1, 1, tzinfo=UTC)))
            try:
                check_sender(hop, sender)
            except TargetError:
                return
            yield actor
            if not spec.continues:
                return
            ahead = envelope.route.next
            if spec.kind in ("wait", "fan_in") and ahead:
                try:
                    check_way(self.mesh, envelope, (actor,), ahead)  # as the send of this actor does
                except TargetError:
                    return
            # A pause is released by x-resume, which believes the gateway alone.
            sender = names.GATEWAY_API if spec.kind == "pause" else actor
            envelope = _shifted(envelope)


def _shifted(envelope: Envelope) -> Envelope:
    route = envelope.route
    return Envelope(id=envelope.id, route=route.shifted(route.next), headers=envelope.headers, payload=envelope.payload)


def declared(mesh: MeshTable, sender: str, target: str) -> bool:
    """Whether the mesh file gives an edge, directly or through the crew. Written again, not taken from the code."""
    spec = mesh.actors[sender]
    return spec.can_send_to is None or target in {sender, *spec.can_send_to, *spec.leads_to}


def chain_leads_to(mesh: MeshTable, sender: str | None, first: str, taken: list[str]) -> bool:
    """Whether edges of the mesh file lead from a sender through the actors on the way to the last one."""
    reached = {sender} if sender in mesh.actors else set()
    way = taken
    if sender is None:  # AWS has let him put messages on the first queue
        reached, way = ({first} if mesh.actors[first].kind in ("pause", "wait") else set()), taken[1:]
    for actor in way:
        is_given = any(declared(mesh, each, actor) for each in reached if each is not None)
        if not is_given and actor not in CREW:
            return False
        kind, targets = mesh.actors[actor].kind, mesh.actors[actor].can_send_to
        if is_given and (
            not mesh.actors[actor].continues or kind == "pause" or (kind == "wait" and targets is not None)
        ):
            reached = reached | {actor}
    return True


@pytest.mark.rule("1.authority", "1.authority.nodes", "1.authority.edges")
@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(meshes(), envelopes(), st.sampled_from(SENDERS))
def test_an_actor_runs_only_if_a_chain_of_edges_leads_to_it(
    mesh: MeshTable, envelope: Envelope, sender: str | None
) -> None:
    first = actual_actor(envelope, envelope.route.curr)
    if not mesh.actors[first].continues:
        return  # IAM lets nobody else send there
    taken = list(Journey(mesh).runs(envelope, sender))
    for end in range(1, len(taken) + 1):
        last = taken[end - 1]
        if not mesh.actors[last].continues or last in NODES:
            assert chain_leads_to(mesh, sender, first, taken[:end]), (sender, taken[:end])


@pytest.mark.slow
@pytest.mark.rule("1.authority.first")
@settings(max_examples=200, deadline=None)
@given(meshes(), envelopes(), st.sampled_from(USERS))
def test_what_the_sidecar_lets_leave_the_first_of_the_crew_takes(
    mesh: MeshTable, envelope: Envelope, sender: str
) -> None:
    actor = actual_actor(envelope, envelope.route.curr)
    hop = Hop.of(envelope, actor, mesh.actors[actor], mesh, Arrival(b"", "m", datetime(2026, 1, 1, tzinfo=UTC)))
    try:
        check_way(mesh, envelope, (sender,), (envelope.route.curr, *envelope.route.next))
    except TargetError:
        return
    check_sender(hop, sender)


@pytest.mark.rule("1.authority.first")
@pytest.mark.parametrize(
    ("function", "trusted"),
    [
        ("x-checkpoint", True),
        ("x-fan-in", True),
        # It sends to itself and to the ends alone; the release of its pause comes from the gateway.
        ("approve", False),
        ("x-completion", True),
        ("x-triggers", True),
        ("intake", False),
        ("removed", False),
        ("x-own-capability", False),
    ],
)
def test_the_crew_trusts_functions_without_code_of_users(function: str, trusted: bool) -> None:
    actors = {
        "intake": Actor(kind="handler"),
        "approve": Actor(kind="pause", pause=Pause()),
        "x-checkpoint": Actor(kind="crew"),
        "x-fan-in": Actor(kind="fan_in"),
    }
    assert is_trusted(MeshTable(namespace="bank", actors=actors), function) is trusted


@pytest.mark.rule("1.authority.retries")
@pytest.mark.parametrize(
    ("sender", "curr", "allowed"),
    [
        ("intake", "intake", True),
        ("intake", "payout", False),
        ("x-completion", "payout", True),
        (None, "intake", False),
        ("removed", "intake", False),
    ],
)
def test_x_wait_takes_from_an_actor_its_own_retries_only(sender: str | None, curr: str, allowed: bool) -> None:
    actors = {"intake": Actor(kind="handler"), "payout": Actor(kind="handler"), "x-wait": Actor(kind="wait")}
    mesh = MeshTable(namespace="bank", actors=actors)
    envelope = Envelope(id="t", route=Route((), curr, ()), headers={}, payload=NULL)
    hop = Hop.of(envelope, "x-wait", actors["x-wait"], mesh, Arrival(b"", "m", datetime(2026, 1, 1, tzinfo=UTC)))
    if allowed:
        check_sender(hop, sender)
        return
    with pytest.raises(TargetError, match="only the retries of an actor itself wait there"):
        check_sender(hop, sender)


@pytest.mark.rule("1.authority.sets")
@pytest.mark.parametrize(("index", "allowed"), [(0, False), (1, True)])
def test_only_slice_0_leads_on(index: int, allowed: bool) -> None:
    actors = {
        "intake": Actor(kind="handler", can_send_to=()),
        "x-fan-in": Actor(kind="fan_in"),
        "payout": Actor(kind="handler"),
    }
    place = {"actor": "x-fan-in", "set_id": "s", "origin_id": "t", "slice_index": index, "slice_count": 2}
    own = {headers.FAN_IN: Raw(json.encode(place | {"aggregation_key": "/results"}))}
    envelope = Envelope(id="t", route=Route((), "x-fan-in", ("payout",)), headers=own, payload=NULL)
    mesh = MeshTable(namespace="bank", actors=actors)
    hop = Hop.of(envelope, "x-fan-in", actors["x-fan-in"], mesh, Arrival(b"", "m", datetime(2026, 1, 1, tzinfo=UTC)))
    if allowed:
        check_sender(hop, "intake")
        return
    with pytest.raises(TargetError, match="actor 'intake' may not send to 'payout'"):
        check_sender(hop, "intake")
