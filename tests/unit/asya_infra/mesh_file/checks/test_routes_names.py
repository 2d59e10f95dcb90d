"""The names of the namespace, of actors and of their queues: the messages of invalid ones."""

import pytest

from asya.registry import PRODUCT
from tests.unit.asya_infra.mesh_file.loading import light_actor_problems, problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.rule("1.names")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("A", "3: actors.A: actor name 'A' is not a DNS label: lower-case letters, digits and inner hyphens only"),
        ("x-sink", "3: actors.x-sink: the name 'x-sink' is reserved for the mesh's own actors; rename the actor"),
        ("x-fan-in", "3: actors.x-fan-in: the name 'x-fan-in' is reserved for the mesh's own actors; rename the actor"),
        (
            "happy-end",
            "3: actors.happy-end: the name 'happy-end' is reserved for the mesh's own actors; rename the actor",
        ),
    ],
)
def test_names(name: str, problem: str) -> None:
    assert light_actor_problems("", name) == [problem]


def test_crew_actors_that_may_be_redefined() -> None:
    assert problems_of("namespace: shop\nactors:\n  x-fan-in: {kind: fan_in, fan_in: {timeout: 2h}}\n") == []
    assert problems_of("namespace: shop\nactors:\n  x-pause: {kind: pause, pause: {prompt: Sure}}\n") == []


@pytest.mark.rule("4.80-characters")
def test_queue_names_have_80_characters_at_most() -> None:
    fits, too_long = "a" * 63, "b" * 63
    assert problems_of(f"namespace: shops\nactors:\n  {fits}: {{handler: shop.one}}\n") == []
    (problem,) = problems_of(f"namespace: shopping\nactors:\n  {too_long}: {{handler: shop.one}}\n")
    assert "has 81 characters, but the limit of SQS is 80; make the actor's name or the namespace 1 shorter" in problem


@pytest.mark.rule("4.80-characters")
def test_a_namespace_is_short_enough_for_the_queues_of_the_mesh_itself() -> None:
    longest = max(PRODUCT.own_queues, key=len)
    fits = "n" * (80 - len(f"asya--{longest}-dlq"))
    assert problems_of(f"namespace: {fits}\nactors:\n  a: {{handler: shop.one}}\n") == []
    (problem,) = problems_of(f"namespace: n{fits}\nactors:\n  a: {{handler: shop.one}}\n")
    assert problem == (
        f"1: namespace: the queue name 'asya-n{fits}-{longest}-dlq' has 81 characters, but the limit of SQS is 80; make the "
        "namespace 1 shorter"
    )


@pytest.mark.rule("4.stage")
def test_a_stage_counts_in_names() -> None:
    text = f"namespace: shop\nactors:\n  {'a' * 60}: {{handler: shop.one}}\n"
    assert problems_of(text) == []
    assert "asya-shop-testing-" in problems_of(text, stage="testing")[0]
    assert "namespace name 'shop-Test' is not a DNS label" in problems_of(text, stage="Test")[0]


@pytest.mark.rule("4.collisions")
def test_queues_that_would_collide() -> None:
    (problem,) = problems_of("namespace: shop\nactors:\n  foo: {handler: shop.one}\n  foo-dlq: {handler: shop.one}\n")
    assert (
        problem == "4: actors.foo-dlq: its queue 'asya-shop-foo-dlq' is also a queue of actor 'foo'; rename one of them"
    )
