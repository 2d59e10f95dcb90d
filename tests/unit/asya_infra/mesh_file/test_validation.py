"""Values that do not fit the model at all: the messages of missing, unknown, empty and mistyped keys."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import light_actor_problems, problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("namespace: shop\n", "1: actors: missing"),
        ("namespace: shop\nactors: {}\n", "2: actors: should not be empty"),
        ("namespace: shop\nactors: [a]\n", "2: actors: should be a mapping; got a list"),
        ("namespace: shop\nactors:\n  a:\n", "3: actors.a: should be a mapping; got nothing"),
    ],
)
def test_sections(text: str, problem: str) -> None:
    assert problem in problems_of(text)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("timeot: 3s", "4: actors.a.timeot: unknown key; did you mean 'timeout'?"),
        ("colour: red", "4: actors.a.colour: unknown key"),
    ],
)
def test_unknown_keys(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]
