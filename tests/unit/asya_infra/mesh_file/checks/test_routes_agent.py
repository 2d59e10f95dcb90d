"""`agent` in the mesh file: skills that are no tools."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.rule("13.a2a.card")
@pytest.mark.parametrize(
    ("skills", "problem"),
    [
        ("{id: order}", []),
        ("{id: ordr}", ["5: agent.skills[0].id: there is no tool 'ordr'; did you mean 'order'?"]),
        ("{name: Order}", ["5: agent.skills[0]: has no id; set it to the name of a tool"]),
    ],
)
def test_skills_of_the_agent_are_tools(skills: str, problem: list[str]) -> None:
    text = "namespace: shop\nactors:\n  a: {handler: shop.one}\ntools: {order: {route: [a]}}\n"
    assert problems_of(f"{text}agent: {{skills: [{skills}]}}\n") == problem
