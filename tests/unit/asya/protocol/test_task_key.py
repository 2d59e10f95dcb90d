"""The key of a task is that of one id in one generation (`protocol §4.keys`)."""

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Raw

from asya.protocol import ids
from asya.protocol.envelope import NULL, Envelope, Route
from asya.protocol.headers import GENERATION, KEY
from asya.protocol.task_key import (
    PATH_LIMIT,
    Step,
    WrongKeyError,
    actor_secret,
    child_key,
    entered,
    fingerprint,
    sealed,
    subject_of,
    verified,
    without_key,
)

SECRET = b"s" * 32
IDS = st.one_of(st.uuids().map(str), st.text(min_size=1, max_size=20))
INDEXES = st.integers(1, 50)
STEPS = st.lists(
    st.one_of(st.tuples(st.none(), INDEXES), st.tuples(st.integers(0, 50), INDEXES | st.just("error"))), max_size=5
)


def envelope_of(envelope_id: str, generation: int = 0, parent_id: str | None = None) -> Envelope:
    headers = {GENERATION: Raw(str(generation).encode())} if generation else {}
    return Envelope(id=envelope_id, parent_id=parent_id, route=Route((), "a", ()), headers=headers, payload=NULL)


def child_of(parent: Envelope, step: Step) -> Envelope:
    raw = child_key(parent, step)
    assert raw is not None
    child = envelope_of(step.child_id(parent.generation), parent.generation, parent.id)
    return msgspec.structs.replace(child, headers=child.headers | {KEY: raw})


def descendant(root: Envelope, steps: list[Any]) -> Envelope:
    for position, index in steps:
        root = child_of(root, Step(root.id, position, index))
    return root


def problem_of(envelope: Envelope, secret: bytes = SECRET, **changes: Any) -> str | None:
    try:
        verified(secret, envelope.headers.get(KEY), msgspec.structs.replace(subject_of(envelope), **changes))
    except WrongKeyError as error:
        return str(error)
    return None


@pytest.mark.rule("4.keys.root", "4.keys.child")
@given(IDS, st.integers(0, 9), st.none() | IDS, STEPS)
def test_each_descendant_holds_its_own_task(root: str, generation: int, parent: str | None, steps: list[Any]) -> None:
    child = descendant(sealed(envelope_of(root, generation, parent), SECRET), steps)
    assert problem_of(child) is None
    assert problem_of(child, parent_id=msgspec.UNSET) is None
    assert problem_of(sealed(without_key(child), SECRET)) is None


@pytest.mark.rule("4.keys")
@given(IDS, st.integers(0, 9), STEPS, IDS, st.integers(0, 9))
def test_a_key_is_that_of_no_other_task(root: str, generation: int, steps: list[Any], other: str, later: int) -> None:
    child = descendant(sealed(envelope_of(root, generation), SECRET), steps)
    assume(other not in (child.id, child.parent_id) and later != generation)
    for changes in ({"id": other}, {"generation": later}, {"parent_id": other}, {"id": other, "parent_id": child.id}):
        assert problem_of(child, **changes) is not None
    assert problem_of(child, b"t" * 32) is not None
    assert problem_of(without_key(child)) == f"it bears no {KEY}"


@pytest.mark.rule("4.keys.child")
@given(IDS, IDS)
def test_the_holder_of_a_task_cannot_call_another_one_its_child(own: str, victim: str) -> None:
    """A code derives for each text; an id only for the children that a hop can have."""
    key = msgspec.json.decode(sealed(envelope_of(own), SECRET).headers[KEY])
    for position, index in ((0, 1), (None, 1), (0, "error")):
        step = Step(own, position, index)
        assume(step.child_id(0) != victim)
        child = child_key(sealed(envelope_of(own), SECRET), step)
        forged = msgspec.structs.replace(envelope_of(victim, parent_id=own), headers={KEY: child})
        assert problem_of(forged) is not None
    assert key.keys() == {"mac"}


@pytest.mark.rule("4.keys.entry")
@given(IDS, STEPS)
def test_a_message_enters_at_one_actor(root: str, steps: list[Any]) -> None:
    assume(not ids.is_reserved(root))
    child = descendant(entered(envelope_of(root), actor_secret(SECRET, "greet"), "greet", "m-1"), steps)
    assert verified(SECRET, child.headers[KEY], subject_of(child)).entry == "greet"
    other = entered(envelope_of(root), actor_secret(SECRET, "eve"), "greet", "m-1")
    assert problem_of(other) is not None


@pytest.mark.rule("4.keys.entry")
def test_an_id_of_the_mesh_enters_only_as_that_of_its_message() -> None:
    secret = actor_secret(SECRET, "greet")
    derived = envelope_of(ids.id_of_message("m-1"))
    assert problem_of(entered(derived, secret, "greet", "m-1")) is None
    task = envelope_of(ids.child_id("order-7", 0, 0, 1))
    assert "has not entered" in str(problem_of(entered(task, secret, "greet", "m-1")))
    forged = msgspec.json.decode(entered(task, secret, "greet", "m-1").headers[KEY]) | {"message": "m-1"}
    named = msgspec.structs.replace(task, headers={KEY: Raw(msgspec.json.encode(forged))})
    assert "has not entered" in str(problem_of(named))


@pytest.mark.rule("4.keys.child")
def test_a_path_is_bounded() -> None:
    child = descendant(sealed(envelope_of("root"), SECRET), [(0, 1)] * (PATH_LIMIT + 1))
    assert f"{PATH_LIMIT} at most" in str(problem_of(child))


@pytest.mark.rule("4.keys")
@pytest.mark.parametrize(
    "raw", [b"null", b"7", b'"x"', b"{}", b'{"mac":"zz"}', b'{"mac":"","path":1}', b'{"mac":"00","more":1}']
)
def test_a_malformed_key_is_named(raw: bytes) -> None:
    envelope = msgspec.structs.replace(envelope_of("a"), headers={KEY: Raw(raw)})
    assert problem_of(envelope) == f"headers.{KEY} is malformed" or raw == b'{"mac":""}'
    assert child_key(envelope, Step("a", 0, 1)) == Raw(raw)


@pytest.mark.rule("4.keys.marks")
def test_envelopes_with_one_id_and_two_keys_have_two_fingerprints() -> None:
    true, forged = sealed(envelope_of("a"), SECRET), sealed(envelope_of("a"), b"t" * 32)
    assert len({fingerprint(true), fingerprint(forged), fingerprint(envelope_of("a"))}) == 3
