"""Who may say a statement, by the actor table and the list of roles."""

import pytest
from msgspec import structs

from asya import registry
from asya.protocol import names
from asya.protocol.mesh_table import Actor, FanIn, MeshTable
from asya.protocol.pause import Pause
from asya.protocol.wait import Wait
from asya.senders.statements import UNLISTED, Proof, Speaker, Statement, named_in, problem, proof_of, speaker_of
from asya.senders.task_keys import runs_code

MESH = MeshTable(
    namespace="bank",
    actors={
        "intake": Actor(kind="handler"),
        "own-end": Actor(kind="end"),
        "stamp": Actor(kind="stamp", own_code=True),  # of a capability that the mesh file names
        "crunch": Actor(kind="spark"),
        "approve": Actor(kind="pause", pause=Pause()),
        "nap": Actor(kind="wait", wait=Wait(seconds=60)),
        "gather": Actor(kind="fan_in", fan_in=FanIn()),
        "x-sink": Actor(kind="crew"),
    },
)
SAYS = Statement(
    name="says",
    text="say that of {about}",
    by=(Speaker.PAUSE, Speaker.ITSELF, "x-clock"),
    shown={Speaker.SUBJECT: Proof.KEY, Speaker.CODE: Proof.EDGE},
)


@pytest.mark.rule("4.statements", "4.statements.version")
@pytest.mark.parametrize(
    ("function", "speaker"),
    [
        (None, Speaker.OUTSIDE),
        ("intake", Speaker.CODE),
        ("own-end", Speaker.CODE),
        ("stamp", Speaker.CODE),
        ("crunch", Speaker.HEAVY),
        ("approve", Speaker.PAUSE),
        ("nap", Speaker.CONTINUING),
        ("gather", Speaker.CONTINUING),
        ("removed", Speaker.OTHER_VERSION),
        ("x-sink", None),
        ("x-clock", None),
    ],
)
def test_a_group_has_the_actors_that_run_the_same_code(function: str | None, speaker: Speaker | None) -> None:
    assert speaker_of(MESH, function) is speaker


@pytest.mark.rule("4.statements")
@pytest.mark.parametrize("function", [*registry.PRODUCT.functions, *registry.PRODUCT.steps])
def test_no_function_of_the_product_is_code_of_users(function: str) -> None:
    """A step of the clock has no role of its own, and judges messages by its name: as code of users it would read no key."""
    crew = {name: Actor(kind="crew") for name in (*names.END_ACTORS, *names.ROUTABLE_CREW, names.WAIT)}
    assert not runs_code(structs.replace(MESH, actors=MESH.actors | crew), function)


@pytest.mark.rule("4.statements")
@pytest.mark.parametrize(
    ("function", "about", "proof"),
    [
        ("approve", None, Proof.ROLE),
        ("x-clock", None, Proof.ROLE),
        ("here", None, Proof.ROLE),
        ("intake", None, Proof.EDGE),
        ("removed", None, Proof.EDGE),  # it may have had code of users
        ("intake", "intake", Proof.KEY),
        ("crunch", "crunch", Proof.KEY),
        ("crunch", "intake", None),
        ("x-sink", None, None),
        (None, None, None),
        (UNLISTED, None, Proof.ROLE),
    ],
)
def test_a_sender_shows_what_its_role_leaves_open(function: str | None, about: str | None, proof: Proof | None) -> None:
    assert proof_of(SAYS, MESH, function, at="here", about=about) is proof
    assert (problem(SAYS, MESH, function, at="here", about=about) is None) == (proof is not None)


@pytest.mark.rule("4.statements.refused")
def test_a_refusal_names_the_sender_and_what_it_may_not_do() -> None:
    assert problem(SAYS, MESH, "crunch", about="intake") == "crunch may not say that of intake"
    assert problem(SAYS, MESH, None) == "a sender outside may not say that of no actor"


def test_the_functions_that_need_their_role_alone() -> None:
    assert named_in([SAYS], "here") == {"x-clock", "here"}
    assert named_in([Statement(name="n", text="t", by=("x-sink",))], "here") == {"x-sink"}
