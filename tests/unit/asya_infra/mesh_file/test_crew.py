"""Which actors of the crew a mesh has."""

from collections.abc import Callable
from pathlib import Path

import pytest

from asya.protocol import mesh_table as table
from asya.protocol.mesh_table import MeshTable
from asya.protocol.pause import Pause
from asya_infra.mesh_file import to_table
from tests.unit.asya_infra.mesh_file import loading

Load = Callable[[str], MeshTable]
ACTORS = "a: {handler: shop.one}"
ENDS = {"x-sink", "x-sump"}


@pytest.fixture
def load(folder: Path) -> Load:
    return lambda text: to_table(loading.load(text))


def crew(mesh: MeshTable) -> set[str]:
    return {name for name in mesh.actors if name.startswith("x-")}


def mesh_of(more: str = "", actors: str = ACTORS) -> str:
    return f"namespace: shop\nactors: {{{actors}}}\n{more}"


@pytest.mark.rule("1.crew")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        (mesh_of(), set()),
        (mesh_of("tools: {t: {route: [a, x-checkpoint]}}"), {"x-checkpoint"}),
        (mesh_of("triggers: {t: {cron: 0 3 * * *, route: [x-fan-in, a]}}"), {"x-fan-in"}),
        (mesh_of(actors="a: {handler: shop.one, can_send_to: [x-pause]}"), {"x-pause", "x-resume"}),
        (
            mesh_of(actors="a: {handler: shop.one, resiliency: {policies: {p: {then_route: [x-resume]}}}}"),
            {"x-resume"},
        ),
        (mesh_of(actors=f"{ACTORS}, x-pause: {{kind: pause}}"), {"x-pause", "x-resume"}),
        (mesh_of(actors=f"{ACTORS}, ask: {{kind: pause}}"), {"x-resume"}),
        (mesh_of(actors=f"{ACTORS}, nap: {{kind: wait, wait: {{for: 1h}}}}"), set()),
        (mesh_of(actors=f"{ACTORS}, nap: {{kind: wait, wait: {{for: 1h, deadline: stands}}}}"), {"x-resume"}),
        (mesh_of(actors=f"{ACTORS}, gather: {{kind: fan_in}}"), set()),
        (mesh_of("crew: {routable: [x-checkpoint, x-pause]}"), {"x-checkpoint", "x-pause", "x-resume"}),
    ],
)
def test_a_mesh_has_the_crew_that_its_file_names(load: Load, text: str, found: set[str]) -> None:
    assert crew(load(text)) == ENDS | found


@pytest.mark.rule("1.crew")
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from asya import fan_out\n", {"x-fan-in"}),
        ("fan_out_lists = True\n", set()),
        ("ROUTE = ['x-pause']\n", {"x-pause", "x-resume"}),
        ("ROUTE = ['x-sink', 'x-index', 'x-checkpoint']\n", {"x-checkpoint"}),
    ],
)
def test_a_mesh_has_the_crew_that_its_code_names(load: Load, folder: Path, code: str, found: set[str]) -> None:
    """A handler may put an actor into a route, from any module."""
    (folder / "functions" / "handlers" / "routes.py").write_text(code)
    assert crew(load(mesh_of())) == ENDS | found


def test_the_settings_of_the_crew_are_the_defaults(load: Load) -> None:
    actors = load(mesh_of("crew: {routable: [x-checkpoint, x-fan-in, x-pause]}")).actors
    assert {name: actors[name] for name in actors.keys() - {"a", *ENDS}} == {
        "x-checkpoint": table.Actor(kind="crew"),
        "x-resume": table.Actor(kind="crew"),
        "x-pause": table.Actor(kind="pause", pause=Pause()),
        "x-fan-in": table.Actor(kind="fan_in", fan_in=table.FanIn()),
    }
